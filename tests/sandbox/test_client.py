"""The client without a daemon, and a daemon that is started because one is needed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.answers import Conflict, NotReady, from_answer
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.on_demand import running_client
from learngraph_kernel.sandbox.place import default_socket
from learngraph_kernel.sandbox.transport import SandboxUnavailable
from tests.sandbox.conftest import Engine
from tests.sandboxd.running import REPOSITORY


@pytest.fixture
def short() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="lg-c"))
    yield folder
    shutil.rmtree(folder)


def test_no_daemon_is_unavailable_with_a_remedy(short: Path) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        SandboxClient(short / "none.sock").health()
    assert caught.value.remedy and caught.value.details["zh"]["remedy"] and caught.value.code == "sandbox_unavailable"


def test_the_socket_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(short / "chosen.sock"))
    assert default_socket() == short / "chosen.sock"


@pytest.mark.parametrize(("status", "kind"), [(409, Conflict), (503, NotReady), (500, NotReady), (418, None)])
def test_an_answer_becomes_the_error_it_was(status: int, kind: type[Exception] | None) -> None:
    error = from_answer(status, {"code": "c", "reason": "r", "remedy": "m", "details": {"a": 1}})
    assert (error.code, error.what, error.remedy, error.details) == ("c", "r", "m", {"a": 1})
    assert kind is None or type(error) is kind


def test_without_an_engine_nothing_is_started(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    with pytest.raises(SandboxUnavailable, match="no Docker engine"):
        running_client(short / "s.sock", engine=short / "no-docker.sock")
    assert list(short.iterdir()) == []


def test_a_daemon_is_started_on_demand_and_used_again(
    short: Path, docker_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    (short / "sandboxd.toml").write_text("[sandbox]\nwarm_kernels = 0\n")
    first = running_client(short / "s.sock")
    try:
        assert running_client(short / "s.sock").health() == first.health()
    finally:
        words = ["pgrep", "-f", f"sandboxd --state {short} "]
        (pid,) = map(int, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    assert not (short / "s.sock").exists()


def test_a_daemon_that_cannot_start_says_why(
    short: Path, docker_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    (short / "sandboxd.toml").write_text("[sandbox]\nactive_per_usr = 2\n")
    with pytest.raises(SandboxUnavailable, match="active_per_user"):
        running_client(short / "s.sock")
