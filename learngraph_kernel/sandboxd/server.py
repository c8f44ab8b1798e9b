"""`learngraph sandboxd`: the daemon on its unix socket, until a signal.

The socket has mode 0660 in a folder only its owner (and, for a host-wide one, its group) may enter; who connects is
checked all the same. Slow clients hold nothing but their own connection: one event loop, bodies and waiting bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket

from learngraph_kernel.sandboxd import folders
from learngraph_kernel.sandboxd.api import application
from learngraph_kernel.sandboxd.call import MAX_JSON
from learngraph_kernel.sandboxd.daemon import AlreadyRunning, Daemon
from learngraph_kernel.sandboxd.engine import DockerEngine
from learngraph_kernel.sandboxd.settings import Settings

_log = logging.getLogger(__name__)
BODY_SECONDS = 60.0
IDLE_SECONDS = 600.0


async def serve(settings: Settings, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serves until SIGTERM or SIGINT.

    Args:
        ready: called once the socket answers.

    Raises:
        AlreadyRunning: another sandboxd has the state folder or the socket.
    """
    daemon = Daemon(settings, DockerEngine())
    server = None
    try:
        await daemon.start()
        server = HTTPServer(
            application(daemon),
            max_body_size=2 * MAX_JSON,  # an upload has a limit of its own, and goes to disk as it comes
            max_header_size=32 * 1024,
            body_timeout=BODY_SECONDS,
            idle_connection_timeout=IDLE_SECONDS,
        )
        server.add_socket(_bind(settings.socket))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, daemon.stopping.set)
        _log.info("sandboxd serves as instance %s", daemon.core.around.instance)
        daemon.calls.touch()
        ready()
        await _stopped(daemon)
    finally:
        if server is not None:
            settings.socket.unlink(missing_ok=True)  # first: who comes now starts another, which waits for our lock
            server.stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(server.close_all_connections(), 5)
        await daemon.close()


async def _stopped(daemon: Daemon) -> None:
    """Until somebody stops it, or it has had nothing to do for as long as its settings say."""
    limit = daemon.core.settings.idle_end
    while not daemon.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(daemon.stopping.wait(), limit / 4 if limit else None)
            return
        if await daemon.idle_for() >= limit:
            _log.info("nothing to do for %.0f s: ending", limit)
            return


def _bind(path: Path) -> socket.socket:
    if not path.parent.exists():
        folders.private_folder(path.parent, 0o750)
    if path.exists():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise AlreadyRunning("another sandboxd serves this socket", where=path.name, remedy="stop it first")
    return bind_unix_socket(str(path), mode=0o660)
