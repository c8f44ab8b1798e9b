"""A private daemon ends by itself, or when its user says so; whoever comes meanwhile gets a fresh one."""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox import on_demand
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.on_demand import running_client
from tests.sandboxd.running import Sandboxd


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of a private daemon, short; whatever is started for it is ended."""
    with tempfile.TemporaryDirectory(prefix="lg-e") as folder:
        monkeypatch.setenv("LEARNGRAPH_HOME", f"{folder}/home")
        path = Path(folder) / "home" / "sandboxd" / "sandboxd.sock"
        yield path
        end(path)


def listener(path: Path) -> int | None:
    """The process that serves this socket; None when nobody does."""
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(str(path)) != 0:
            return None
        return int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], "little")


def came_to(point: str, path: Path, pid: int | None) -> bool:
    return point == "at once" or (listener(path) != pid if point == "deaf" else not alive(pid))


def alive(pid: int | None) -> bool:
    return pid is not None and Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()


def end(path: Path) -> None:
    """SIGTERM to whoever listens, and waits until its process has gone."""
    pid = listener(path)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid))


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_daemon_with_nothing_to_do_ends_and_the_next_call_starts_another(
    place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine = tmp_path / "engine.sock"
    engine.touch()
    monkeypatch.setattr(on_demand, "IDLE_SECONDS", 0.4)
    first = running_client(place, engine=engine)
    instance = first.health()["instance"]
    first.close()
    until(lambda: not place.exists())
    again = running_client(place, engine=engine)
    assert again.health()["instance"] == instance  # the same state, another process
    again.close()


def test_whoever_comes_while_it_ends_is_answered(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = tmp_path / "engine.sock"
    engine.touch()
    monkeypatch.setattr(on_demand, "IDLE_SECONDS", 0.2)
    chance, instances = random.Random(7), set()
    for _ in range(12):
        client = running_client(place, engine=engine)
        assert client.health()["state"] == "ok"
        pid = listener(place)
        client.close()
        instances.add(pid)
        # Come back at any point of its way out: it listens, it listens no more, it is gone.
        point = chance.choice(("at once", "deaf", "gone"))
        until(partial(came_to, point, place, pid))
    assert len(instances) > 3


def test_a_workspace_in_use_keeps_it(base: Path, docker_engine: object, sandbox_image: str) -> None:
    with Sandboxd(base / "busy", sandbox_image, idle_end=2.0, container_idle=3600.0) as daemon:
        client = SandboxClient(daemon.socket)
        box = client.create("busy")
        client.start(box.id)
        client.close()
        assert daemon.process is not None
        with pytest.raises(AssertionError):
            until(lambda: daemon.process is not None and daemon.process.poll() is not None, seconds=4.0)
        client.stop(box.id)
        client.close()
        until(lambda: daemon.process is not None and daemon.process.poll() == 0)


def test_shutdown_ends_the_private_daemon_and_says_so(
    place: Path, learngraph: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(place))
    assert learngraph("sandbox", "shutdown", "--json").json["state"] == "not_running"
    engine = tmp_path / "engine.sock"
    engine.touch()
    running_client(place, engine=engine).close()
    said = learngraph("sandbox", "shutdown", "--json")
    assert said.code == 0 and said.json == {"state": "stopped", "kernels": []}
    assert not place.exists()
