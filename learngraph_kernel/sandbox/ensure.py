"""A sandboxd that answers: the one that runs, or one of our own that is started now.

Somebody who may use Docker may run containers anyway, so a private daemon gives them nothing new, and it goes on after
the process that first needed it. A daemon that was named (`LEARNGRAPH_SANDBOXD`) or that serves the whole host is its
administrator's: it is used and never started.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.sandbox.answers import Refusal
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.transport import HOST_WIDE, SOCKET_VARIABLE, SandboxUnavailable, default_socket

START_SECONDS = 30.0
LOG_FILE = "sandboxd.log"
_POLL = 0.05


def listening(path: Path | None = None) -> bool:
    """Whether something accepts connections on sandboxd's socket; costs a millisecond either way."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(default_socket() if path is None else path))
        except OSError:
            return False
    return True


def ensured() -> SandboxClient:
    """A client of a daemon that answers, which is started if need be.

    Raises:
        SandboxUnavailable: there is none and none may or can be started; the remedy says what to do.
    """
    path = default_socket()
    if not listening(path):
        _start(path)
    return SandboxClient(path)


def unavailable(error: LearnGraphError) -> Unavailable:
    """What the daemon could not give, as the state that a run is refused with; anything else stays as it is.

    The daemon's own code is in `details["cause"]`.
    """
    if isinstance(error, Unavailable):
        return error
    cause = error.code if isinstance(error, Refusal) else "sandbox_fault"
    return SandboxUnavailable(
        error.what, where=error.where, remedy=error.remedy, details={**error.details, "cause": cause}
    )


def engine_socket() -> Path | None:
    """The engine's socket as this user's environment has it; None when the engine is not local."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    return Path(host.removeprefix("unix://")) if host.startswith("unix://") else None


def _start(path: Path) -> None:
    if os.environ.get(SOCKET_VARIABLE) or path == HOST_WIDE:
        raise SandboxUnavailable(
            "sandboxd does not answer",
            where=str(path),
            remedy="start it (`systemctl start learngraph-sandboxd`), or unset LEARNGRAPH_SANDBOXD to use your own",
            details={"zh": {"reason": "sandboxd 没有响应", "remedy": "请启动 sandboxd，或取消 LEARNGRAPH_SANDBOXD"}},
        )
    engine = engine_socket()
    if engine is None or not os.access(engine, os.R_OK | os.W_OK):
        there = engine is not None and engine.exists()
        raise SandboxUnavailable(
            "you may not use Docker here" if there else "there is no Docker engine here",
            where=None if engine is None else str(engine),
            remedy="join the group `docker`, or ask for a host-wide sandboxd"
            if there
            else "install and start it (Debian: `apt-get install docker.io`), then `make image`",
            details={
                "zh": {
                    "reason": "没有使用 Docker 的权限" if there else "本机没有 Docker 引擎",
                    "remedy": "请加入 docker 用户组" if there else "请安装并启动 Docker，然后运行 make image",
                }
            },
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = path.parent / LOG_FILE
    with log.open("ab") as output:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "learngraph_kernel.cli", "sandboxd", "--socket", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=path.parent,
        )
    deadline = time.monotonic() + START_SECONDS
    while not listening(path):
        # One that ended may have found another, started at the same moment; that one will answer.
        if time.monotonic() > deadline or (daemon.poll() not in (None, 0) and not _soon(path)):
            raise SandboxUnavailable(
                "sandboxd did not start", where=str(log), remedy="its log says why; `learngraph sandboxd` shows it here"
            )
        time.sleep(_POLL)


def _soon(path: Path) -> bool:
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        if listening(path):
            return True
        time.sleep(_POLL)
    return False
