"""Nothing gets out of the box; and everything that is tried would get out of a container without it.

Both containers run once, side by side, with the same probes. For the box every probe must be held; for the open
container every probe must succeed: one that is held there as well could not have told a hole.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandboxd.hardening import MIB, ContainerSpec, Limits, Mount, container_config
from tests.sandbox.conftest import Engine
from tests.sandbox.escape.brokers import brokers
from tests.sandbox.escape.catalogue import inside_probes
from tests.sandbox.escape.outside import READERS, meet
from tests.sandbox.escape.planting import World, planted

LIMITS = Limits(
    memory=192 * MIB, cpus=0.5, pids=64, nofile=256, fsize=8 * MIB, tmp=8 * MIB, shm=8 * MIB, log=256 * 1024
)
"""Tighter than the reference, so that a probe reaches them gently."""

LABELS = {"learngraph.instance": "tests", "learngraph.kind": "escape"}
SECONDS = 90.0
CATEGORIES = {**inside_probes(), **{name: reader.category for name, reader in READERS.items()}}
NAMES = sorted(CATEGORIES)

NEIGHBOUR = """
import socket, sys, time
for path in ("/tmp/secret", "/dev/shm/secret"):
    with open(path, "w") as file:
        file.write(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0" + sys.argv[1])
listener.listen(8)
print("ready", flush=True)
time.sleep(600)
"""

DEVICES = ("/dev/kmsg", "/dev/net/tun", "/dev/userfaultfd", "/dev/loop-control", "/dev/fuse")

Outcomes = dict[str, tuple[str, str]]


@contextlib.contextmanager
def running(engine: Engine, body: dict[str, Any], name: str) -> Iterator[str]:
    """A container that is removed again."""
    engine.ask("POST", f"/containers/create?name={name}", body)
    try:
        engine.ask("POST", f"/containers/{name}/start")
        yield name
    finally:
        engine.command.call("rm", "--force", "--volumes", name)


def new_name(kind: str) -> str:
    return f"lg-test-{kind}-{secrets.token_hex(6)}"


@pytest.fixture(scope="module")
def neighbour(
    docker_engine: Engine, sandbox_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Somebody else's sandbox, hardened like every one."""
    marker, name = f"neighbour-{secrets.token_hex(8)}", new_name("neighbour")
    workspace = tmp_path_factory.mktemp("neighbour")
    (workspace / "secret").write_text(marker)
    command = ("python3", "-I", "-B", "-c", NEIGHBOUR, marker)
    mounts = (Mount(str(workspace), "/workspace"),)
    spec = ContainerSpec(name, sandbox_image, command, LABELS, {"SECRET": marker}, mounts, LIMITS)
    with running(docker_engine, container_config(spec), name):
        until = time.monotonic() + 20
        while "ready" not in docker_engine.command.call("logs", name):
            assert time.monotonic() < until, "the neighbour did not start"
            time.sleep(0.05)
        pid = docker_engine.ask("GET", f"/containers/{name}/json")["State"]["Pid"]
        yield {"marker": marker, "neighbour": {"name": name, "pid": pid, "workspace": str(workspace)}}


def command_of(world: World) -> tuple[str, ...]:
    return ("python3", "-B", "-s", "/escape/run.py", "/escape/parameters.json", str(world.run / "results.json"))


def hardened_body(world: World, image: str, name: str) -> dict[str, Any]:
    mounts = (
        Mount(str(world.base / "inside"), "/escape"),
        Mount(str(world.folder.files), "/workspace", read_only=False),
        Mount(str(world.run), str(world.run), read_only=False),
        Mount(str(world.base / "granted"), str(world.base / "granted")),
    )
    return container_config(ContainerSpec(name, image, command_of(world), LABELS, mounts=mounts, limits=LIMITS))


def open_body(world: World, image: str) -> dict[str, Any]:
    """What no container should have. Of the host's files: the test's own, /sys, some devices, the engine's socket.

    Not `Privileged`, which fails where the engine itself lacks a capability, but all that it stands for.
    """
    binds = [(world.base, world.base), (world.folder.files, "/workspace"), (world.base / "inside", "/escape")]
    binds += [
        (Path(path), path) for path in ("/var/run/docker.sock", "/sys", world.parameters["neighbour"]["workspace"])
    ]
    devices = [path for path in DEVICES if os.path.exists(path)]
    host = {
        "CapAdd": ["ALL"],
        "CapDrop": world.parameters["missing capabilities"],
        "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined", "label=disable"],
        "MaskedPaths": [],
        "ReadonlyPaths": [],
        "Devices": [{"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm"} for path in devices],
        "DeviceCgroupRules": ["b *:* rwm", "c *:* rwm"],
        "NetworkMode": "host",
        "PidMode": "host",
        "IpcMode": "host",
        "UTSMode": "host",
        "CgroupnsMode": "host",
        "Ulimits": [{"Name": "nofile", "Soft": 4096, "Hard": 4096}],
        "Mounts": [{"Type": "bind", "Source": str(source), "Target": str(target)} for source, target in binds],
        "LogConfig": {"Type": "json-file", "Config": {}},
    }
    command = list(command_of(world))
    return {"Image": image, "Cmd": command, "Entrypoint": [], "User": "0:0", "Labels": LABELS, "HostConfig": host}


def wait_for(engine: Engine, name: str, path: Path) -> None:
    until = time.monotonic() + SECONDS
    while not path.exists():
        state = engine.ask("GET", f"/containers/{name}/json")["State"]
        log = "" if state["Running"] else engine.command.call("logs", "--tail", "20", name)
        assert state["Running"] or path.exists(), f"the container ended ({state['ExitCode']}): {log[-1500:]}"
        assert time.monotonic() < until, f"no {path.name} after {SECONDS} s"
        time.sleep(0.05)


def outcomes_of(world: World, engine: Engine, image: str, neighbour: dict[str, Any], place: Path) -> Outcomes:
    """Every probe's state and fact in one world."""
    world.parameters |= {"neighbour": neighbour["neighbour"], "neighbour marker": neighbour["marker"]}
    name = new_name("hardened" if world.hardened else "open")
    body = hardened_body(world, image, name) if world.hardened else open_body(world, image)
    with brokers(world, place):
        world.finish_parameters()
        with running(engine, body, name):
            wait_for(engine, name, world.run / "planted")
            met = {trap: meet(world, trap) for trap in READERS}
            (world.run / "read").touch()
            wait_for(engine, name, world.run / "results.json")
            logged = len(engine.command.call("logs", name))
        results = json.loads((world.run / "results.json").read_text())
    found: Outcomes = {probe: (state, fact) for probe, (state, fact, *_) in results.items()}
    found["flood-of-output"] = ("held" if logged <= 2 * LIMITS.log else "escaped", f"{logged} bytes in the log")
    return {**found, **met}


@pytest.fixture(scope="module")
def box(docker_engine: Engine, sandbox_image: str, neighbour: dict[str, Any], tmp_path_factory: Any) -> Outcomes:
    with planted(f"secret-{secrets.token_hex(8)}", hardened=True) as world:
        return outcomes_of(world, docker_engine, sandbox_image, neighbour, tmp_path_factory.mktemp("box"))


@pytest.fixture(scope="module")
def open_container(
    docker_engine: Engine, sandbox_image: str, neighbour: dict[str, Any], tmp_path_factory: Any
) -> Outcomes:
    with planted(f"secret-{secrets.token_hex(8)}", hardened=False) as world:
        return outcomes_of(world, docker_engine, sandbox_image, neighbour, tmp_path_factory.mktemp("open"))


@pytest.mark.parametrize("name", NAMES)
def test_the_box_holds(box: Outcomes, name: str) -> None:
    state, fact = box[name]
    assert state in ("held", "absent"), f"{CATEGORIES[name]}: {state}: {fact}"


@pytest.mark.parametrize("name", NAMES)
def test_the_probe_succeeds_where_there_is_no_box(open_container: Outcomes, name: str) -> None:
    state, fact = open_container[name]
    if state == "absent":
        pytest.skip(f"NOT ON THIS MACHINE: {name}: {fact}")
    assert state == "escaped", f"{CATEGORIES[name]}: this probe cannot fail: {state}: {fact}"


def test_every_category_has_its_probes() -> None:
    counts = Counter(CATEGORIES.values())
    assert len(NAMES) >= 60
    assert counts.keys() == {
        "information", "files", "network", "processes", "kernel surface", "resource exhaustion", "docker",
        "other sandboxes", "broker and ticket", "symlinks and races", "archives",
    }  # fmt: skip
    assert min(counts.values()) >= 7, counts


def test_sixty_probes_or_more_are_known_to_detect_a_hole(open_container: Outcomes) -> None:
    assert sum(state == "escaped" for state, _ in open_container.values()) >= 60
