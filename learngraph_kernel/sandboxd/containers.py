"""The kinds of container: a workspace's and a web fetch's, which wait for commands, and a kernel's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from learngraph_kernel.broker.protocol import BROKER_VARIABLE, TICKET_FILE_VARIABLE
from learngraph_kernel.sandboxd import engine_port as label
from learngraph_kernel.sandboxd.hardening import ContainerSpec, Limits, Mount, container_config
from learngraph_kernel.sandboxd.settings import Settings

WORKSPACE = "/workspace"
EGRESS = "/egress"
"""Where a door is mounted in a container that has one."""
CONNECTION_FILE, BROKER_SOCKET, TICKET_FILE = "kernel.json", "broker.sock", "ticket"

COMMAND_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""All of a command's environment, with what the image sets for matplotlib: nothing of the host's."""

KERNEL_ENVIRONMENT = frozenset(
    {"LEARNGRAPH_LANGUAGE", "LEARNGRAPH_RUN", "MPLBACKEND", "PYTHONHASHSEED", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"}
)
"""Variables a caller may set for a kernel."""


KERNEL_START = """\
import os, sys
sys.path.remove("")
os.umask(0o007)
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""
"""As `python -m ipykernel_launcher`, with a umask that leaves the sockets' ACL its write bit: who may use the folder
may connect (a socket's mode is cut by the umask even where a default ACL applies: unix_bind in Linux's af_unix.c)."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all containers of this daemon share.

    Attributes:
        instance: the daemon's id.
        cgroup: parent control group; None for the engine's own.
        host_processors: of the machine.
    """

    settings: Settings
    instance: str
    cgroup: str | None
    host_processors: int


@cache
def runner_source() -> str:
    """The resident runner's text: handed to the interpreter, so that daemon and runner are always of one version."""
    return resources.files("learngraph_kernel.sandbox.inside").joinpath("runner.py").read_text(encoding="utf-8")


def workspace_container(
    around: Surroundings,
    row: Mapping[str, Any],
    name: str,
    image: str,
    folder: str,
    now: float,
    *,
    door: str | None = None,
) -> dict[str, Any]:
    """A workspace's container: the runner under the init, the workspace at `/workspace`, its input held by us.

    With a general egress policy `door` is its folder. Its output is the runner's stream, so the engine keeps no log
    of it; `StdinOnce` ends the runner, and with it the container, when this daemon goes away.
    """
    mounts = (Mount(folder, WORKSPACE, read_only=False), *([Mount(door, EGRESS)] if door else []))
    return _runner_container(around, "workspace", row, name, image, mounts, WORKSPACE, now)


def fetch_container(
    around: Surroundings, row: Mapping[str, Any], name: str, image: str, door: str, now: float
) -> dict[str, Any]:
    """A web-fetch container: the runner and its door, and no files of anybody's."""
    return _runner_container(around, "fetch", row, name, image, (Mount(door, EGRESS),), "/tmp", now)


def _runner_container(
    around: Surroundings,
    kind: str,
    row: Mapping[str, Any],
    name: str,
    image: str,
    mounts: tuple[Mount, ...],
    place: str,
    now: float,
) -> dict[str, Any]:
    labels = _labels(around, kind, row["owner"], now)
    labels |= {label.SANDBOX: row["id"], label.SESSION: row["session"], label.POLICY: row["policy"]}
    spec = ContainerSpec(
        name=name,
        image=image,
        command=("python3", "-I", "-B", "-S", "-c", runner_source()),
        labels=labels,
        environment=COMMAND_ENVIRONMENT,
        mounts=mounts,
        limits=_limits(around),
        working_dir=place,
        runtime=_runtime(around),
    )
    config = _placed(around, container_config(spec))
    config |= {"OpenStdin": True, "StdinOnce": True, "AttachStdin": True, "AttachStdout": True, "AttachStderr": True}
    config["Healthcheck"] = {"Test": ["NONE"]}  # the runner's stream is the health check
    config["HostConfig"]["LogConfig"] = {"Type": "none", "Config": {}}
    return config


def kernel_container(
    around: Surroundings, row: Mapping[str, Any], name: str, environment: Mapping[str, str], now: float
) -> dict[str, Any]:
    """A kernel's container: its folders at the same paths as outside, broker and ticket found by name in them."""
    labels = _labels(around, "warm-kernel" if row["warm"] else "kernel", row["owner"], now)
    labels |= {label.SANDBOX: row["id"], label.RUN: row["run"] or ""}
    folder, granted = row["folder"], row["granted"]
    spec = ContainerSpec(
        name=name,
        image=row["image"],
        command=(
            "python3",
            "-c",
            KERNEL_START,
            "-f",
            f"{folder}/{CONNECTION_FILE}",
            "--HistoryManager.hist_file=:memory:",
        ),
        labels=labels,
        environment={
            **COMMAND_ENVIRONMENT,
            "IPYTHONDIR": "/tmp/ipython",
            **environment,
            BROKER_VARIABLE: f"{folder}/{BROKER_SOCKET}",
            TICKET_FILE_VARIABLE: f"{folder}/{TICKET_FILE}",
        },
        mounts=(Mount(folder, folder, read_only=False), Mount(granted, granted)),
        limits=_limits(around),
        runtime=_runtime(around),
    )
    config = _placed(around, container_config(spec))
    config["Healthcheck"] = {"Test": ["NONE"]}  # a client's heartbeat is the health check
    return config


def _labels(around: Surroundings, kind: str, owner: str, now: float) -> dict[str, str]:
    return {label.INSTANCE: around.instance, label.KIND: kind, label.OWNER: owner, label.CREATED: str(int(now))}


def _limits(around: Surroundings) -> Limits:
    settings = around.settings
    # More processors than the machine has is an error of the engine's; more than their share is ours.
    processors = min(settings.container_cpus, settings.cpu_share * around.host_processors)
    return Limits(
        memory=settings.container_memory,
        cpus=round(processors, 2),
        pids=settings.container_pids,
        fsize=settings.workspace_bytes,
    )


def _runtime(around: Surroundings) -> str | None:
    return None if around.settings.runtime == "runc" else around.settings.runtime


def _placed(around: Surroundings, config: dict[str, Any]) -> dict[str, Any]:
    if around.cgroup is not None:
        config["HostConfig"]["CgroupParent"] = around.cgroup
    return config
