"""What every container of ours gets: one function from a few values to the engine's own description of a container.

Everything that could be forgotten is here and nowhere else, and all of it is data, so that a test can compare it with
what the engine says of a running container (`baseline`) and with what the container sees of itself
(`sandbox.inside.selfcheck`). The result is the body of the Engine API's `POST /containers/create`
(https://docs.docker.com/reference/api/engine/); docker-py takes it as it is (`create_container_from_config`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

from learngraph_kernel.errors import BadInput

MIB = 1024**2
UID = 65532
GID = 65532
BYTES_A_FILE = 4096
"""/tmp may hold one file or folder for each of these bytes of its size: a page, which is the least a file takes."""

MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
"""Not there for the container: what the engine hides by default, and what kernels were found to leak since."""

READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

FORBIDDEN_SOURCES = ("/", "/boot", "/dev", "/etc", "/lib", "/proc", "/root", "/run", "/sys", "/usr", "/var", "/var/run")
"""Host folders that are never mounted themselves; nor is anything that holds the engine's socket."""

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")


class UnsafeContainer(BadInput):
    """A container was asked for that the baseline does not allow."""

    code = "unsafe_container"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the host inside the container.

    Attributes:
        source: absolute path on the host; must exist.
        target: absolute path in the container.
        read_only: whether the container may only read it.
    """

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one container; bytes unless said otherwise.

    Attributes:
        memory: without swap.
        cpus: processors.
        cpu_shares: weight against other containers when processors are short (1024 is the engine's default).
        pids: processes and threads together.
        nofile: open files of one process.
        fsize: largest file one process may write.
        nproc: processes of the container's uid in all containers of this host together (the kernel counts by uid).
        tmp, shm: size of /tmp and /dev/shm.
        log: size of the engine's log of the container; one file is kept.
    """

    memory: int = 2048 * MIB
    cpus: float = 2.0
    cpu_shares: int = 512
    pids: int = 512
    nofile: int = 4096
    fsize: int = 256 * MIB
    nproc: int = 16384
    tmp: int = 64 * MIB
    shm: int = 64 * MIB
    log: int = 5 * MIB


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container.

    Attributes:
        name: of the container; also its host name, so that nothing of the host's is seen.
        image: an image id, `sha256:…`; never a tag, which may move.
        command: what runs under the init process.
        labels: what reconciliation and the reaper go by (docs/sandbox.md).
        environment: added to the image's own.
        mounts: of the host, bind-mounted.
        limits: resources.
        working_dir: where the command starts.
        runtime: None for the engine's default, or `runsc` (gVisor).
        stdin: whether somebody will attach to the command's standard input (the resident runner is spoken to that way).
    """

    name: str
    image: str
    command: tuple[str, ...]
    labels: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    limits: Limits = Limits()
    working_dir: str = "/tmp"
    runtime: str | None = None
    stdin: bool = False


@cache
def seccomp_profile() -> str:
    """The system calls a container may make, as the engine wants it: JSON, everything not named is refused."""
    text = resources.files("learngraph_kernel.sandboxd").joinpath("seccomp.json").read_text()
    return json.dumps(json.loads(text), separators=(",", ":"))


def container_config(spec: ContainerSpec) -> dict[str, Any]:
    """The body of `POST /containers/create`.

    Args:
        spec: what is wanted.

    Raises:
        UnsafeContainer: an image that is not an id, a mount of a host folder that must not be seen, a wrong name.
    """
    _check(spec)
    return {
        "Image": spec.image,
        "Cmd": list(spec.command),
        "Entrypoint": [],
        "User": f"{UID}:{GID}",
        "WorkingDir": spec.working_dir,
        "Hostname": spec.name[:63].rstrip("-."),
        "Env": [f"{name}={value}" for name, value in sorted(spec.environment.items())],
        "Labels": dict(sorted(spec.labels.items())),
        "NetworkDisabled": True,
        "Tty": False,
        "OpenStdin": spec.stdin,
        "StdinOnce": spec.stdin,  # the end of the one attached stream is the end of the command's input
        # Tells a container whose processes cannot be started any more; rare, because each is an exec of its own.
        "Healthcheck": {"Test": ["CMD", "/usr/bin/true"], "Interval": 600 * 10**9, "Timeout": 10 * 10**9, "Retries": 3},
        "HostConfig": _host_config(spec),
    }


def _host_config(spec: ContainerSpec) -> dict[str, Any]:
    limits = spec.limits
    # Without `nr_inodes` the kernel allows as many files as the host has pages for, each in kernel memory.
    tmpfs = f"rw,noexec,nosuid,nodev,size={limits.tmp},nr_inodes={limits.tmp // BYTES_A_FILE},mode=1777"
    config: dict[str, Any] = {
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": [],
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={seccomp_profile()}"],
        "ReadonlyRootfs": True,
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READONLY_PATHS),
        "NetworkMode": "none",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "PidMode": "",
        "UTSMode": "",
        "UsernsMode": "",
        "Memory": limits.memory,
        "MemorySwap": limits.memory,
        "NanoCpus": int(limits.cpus * 10**9),
        "CpuShares": limits.cpu_shares,
        "PidsLimit": limits.pids,
        "Ulimits": [_ulimit(name, value) for name, value in _ulimits(limits).items()],
        "OomKillDisable": False,
        "OomScoreAdj": 500,  # before the daemon and the host's own processes
        "Tmpfs": {"/tmp": tmpfs},
        "ShmSize": limits.shm,
        "Mounts": [_mount(mount) for mount in spec.mounts],
        "Devices": [],
        "DeviceRequests": [],
        "PublishAllPorts": False,
        "Init": True,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},  # a kernel serves one run only
        "LogConfig": {"Type": "json-file", "Config": {"max-size": str(limits.log), "max-file": "1"}},
    }
    if spec.runtime is not None:
        config["Runtime"] = spec.runtime
    return config


def _ulimits(limits: Limits) -> dict[str, int]:
    return {"core": 0, "fsize": limits.fsize, "nofile": limits.nofile, "nproc": limits.nproc}


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _mount(mount: Mount) -> dict[str, Any]:
    return {
        "Type": "bind",  # unlike `Binds`, a source that is missing is an error and not a new folder of root's
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
        "BindOptions": {"Propagation": "rprivate"},
    }


def _check(spec: ContainerSpec) -> None:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", spec.image):
        raise UnsafeContainer(f"{spec.image!r} is no image id", remedy="name the image by its id, sha256:…")
    if not _NAME.fullmatch(spec.name):
        raise UnsafeContainer(f"{spec.name!r} is no container name", remedy="use letters, digits, `.`, `_` and `-`")
    for mount in spec.mounts:
        for path in (mount.source, mount.target):
            if not path.startswith("/") or str(PurePosixPath(path)) != path or ".." in path.split("/"):
                raise UnsafeContainer(f"{path!r} is no plain absolute path", where="mounts")
        if mount.source in FORBIDDEN_SOURCES or mount.source.endswith((".sock", "/docker", "/containerd")):
            raise UnsafeContainer(f"{mount.source} of the host is never mounted", where="mounts")
