"""The runtime beside a sandboxed kernel that belongs to no run: it makes `lg` work there, and starts when first used.

The broker's socket listens from the start, so that a notebook never finds it missing. The runtime, a process of the
host's with sources and models, is started by the first connection and inherits the socket; most kernels never ask for
it. It ends, and seals what was recorded, when this process closes its standard input or is killed.
"""

from __future__ import annotations

import os
import secrets
import selectors
import socket
import subprocess
import sys
import threading
from pathlib import Path

from learngraph_kernel.broker.box import BOX_VARIABLE, Box, admit
from learngraph_kernel.broker.protocol import BROKER_VARIABLE, TICKET_VARIABLE
from learngraph_kernel.sandbox.client import Kernel

SEAL_SECONDS = 30.0
TICKET_MODE = 0o640
"""The group's bits are the mask of the folder's ACL, which lets the container's uid in (acl(5)); no group is."""


def write_ticket(path: Path, secret: str) -> None:
    """Puts the ticket where the kernel looks for it, whole or not at all.

    The folder is the container's as well: a name in it is made new or refused, never followed.
    """
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, TICKET_MODE)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret)
    part.replace(path)


class Companion:
    """Waits for a kernel's first call; `close` ends it.

    Args:
        kernel: of which sandbox.
        cwd: the notebook's folder: where the workspace is looked for.
    """

    def __init__(self, kernel: Kernel, cwd: Path) -> None:
        self._kernel, self._cwd = kernel, cwd
        self._secret = secrets.token_urlsafe(24)
        self._process: subprocess.Popen[bytes] | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._wait, name="sandbox-companion", daemon=True)

    @classmethod
    def beside(cls, kernel: Kernel, cwd: Path) -> Companion:
        """One that listens."""
        companion = cls(kernel, cwd)
        companion._open()
        return companion

    def _open(self) -> None:
        write_ticket(self._kernel.ticket_file, self._secret)
        path = self._kernel.broker_socket
        path.unlink(missing_ok=True)  # of the kernel before a restart
        self._listener.bind(str(path))
        admit(path)
        self._listener.listen(16)
        self._thread.start()

    def _wait(self) -> None:
        """Sleeps until somebody connects or `close` is called."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._listener, selectors.EVENT_READ)
            waiting.register(self._stop, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in waiting.select()}
        if self._stop not in ready:
            self._process = self._spawn()
        self._listener.close()

    def _spawn(self) -> subprocess.Popen[bytes]:
        listener = self._listener.fileno()
        box = Box(listener, self._kernel.image, str(self._kernel.granted))
        environment = {
            **os.environ,
            BROKER_VARIABLE: str(self._kernel.broker_socket),
            TICKET_VARIABLE: self._secret,
            BOX_VARIABLE: box.text(),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "learngraph_kernel.runs.embedded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            cwd=self._cwd,
            pass_fds=[listener],
            start_new_session=True,
        )

    def close(self) -> None:
        """Ends the runtime once it has sealed what it recorded."""
        os.write(self._stopped, b"x")
        self._thread.join()
        os.close(self._stop)
        os.close(self._stopped)
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=SEAL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the run is recorded as far as it came; `learngraph resume` says so
            self._process.wait()
