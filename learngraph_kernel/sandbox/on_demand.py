"""A sandboxd when one is needed: the one that answers, else a private one started for this user.

A private daemon belongs to nobody's terminal: it is a process group of its own, writes `<state>/sandboxd.log`, and goes
on when the one who started it ends, until it has had nothing to do for a while. Two that start one at once get the
same: the state folder is locked.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.place import HOST_WIDE, SOCKET_VARIABLE, listening
from learngraph_kernel.sandbox.transport import SandboxUnavailable

START_SECONDS = 30.0
POLL_SECONDS = 0.05
IDLE_SECONDS = 600
"""A daemon that somebody needed for a moment does not stay for ever; its settings file may say otherwise."""
ENGINE_SOCKET = Path("/var/run/docker.sock")


def running_client(path: Path | None = None, *, engine: Path = ENGINE_SOCKET) -> SandboxClient:
    """A client of a daemon that answers, started if need be.

    Args:
        path: the daemon's socket; None: `default_socket()`.
        engine: Docker's socket.

    Raises:
        SandboxUnavailable: none answers and none can be started; the message says what is missing.
    """
    client = SandboxClient(path)
    named = path is None and bool(os.environ.get(SOCKET_VARIABLE))
    if named or client.path == HOST_WIDE:
        client.health()  # one that was named, or the host's, is its administrator's to start
        return client
    deadline = time.monotonic() + START_SECONDS
    process: subprocess.Popen[bytes] | None = None
    while True:
        if listening(client.path):
            with contextlib.suppress(SandboxUnavailable):  # it is just ending: the next one waits for its lock
                client.health()
                return client
        elif process is None:
            _check_possible(engine)
            process = _spawn(client.path)
        elif process.poll() is not None or time.monotonic() > deadline:
            raise SandboxUnavailable(
                f"sandboxd did not start: {_last_line(client.path.parent / 'sandboxd.log')}",
                where=str(client.path),
                remedy="run `learngraph sandboxd` in a terminal to see why",
            )
        time.sleep(POLL_SECONDS)


def _check_possible(engine: Path) -> None:
    if find_spec("docker") is None:
        raise SandboxUnavailable("the package `docker` is not installed", remedy="pip install 'learngraph[sandbox]'")
    if not engine.exists() and "DOCKER_HOST" not in os.environ:
        raise SandboxUnavailable(
            "there is no Docker engine on this machine",
            where=str(engine),
            remedy="install and start it (Debian: apt-get install docker.io), or run with --sandbox host",
            details={"zh": {"reason": "本机没有 Docker 引擎", "remedy": "请安装并启动 Docker，或使用 --sandbox host"}},
        )
    if engine.exists() and not os.access(engine, os.R_OK | os.W_OK):
        raise SandboxUnavailable(
            "you may not use the Docker engine",
            where=str(engine),
            remedy="join the group `docker`, or ask for a host-wide sandboxd",
            details={"zh": {"reason": "您无权使用 Docker 引擎", "remedy": "请加入 docker 用户组，或联系管理员"}},
        )


def _spawn(path: Path) -> subprocess.Popen[bytes]:
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "learngraph_kernel.cli", "sandboxd", "--state", str(folder), "--socket", str(path)]
    command += ["--idle-end", str(IDLE_SECONDS)]
    config = folder / "sandboxd.toml"
    if config.is_file():
        command += ["--config", str(config)]
    with (folder / "sandboxd.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return "it left no log"
    return lines[-1][:300] if lines else "its log is empty"
