"""Where sandboxd is, and whether it is there: what every run asks, so it imports next to nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

SOCKET_VARIABLE = "LEARNGRAPH_SANDBOXD"
HOST_WIDE = Path("/run/learngraph/sandboxd.sock")


def default_socket() -> Path:
    """`LEARNGRAPH_SANDBOXD`, else the private daemon's socket in the home; the host-wide one if only that is there."""
    chosen = os.environ.get(SOCKET_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    from learngraph_kernel.store.home import Home

    private = Home.default().root / "sandboxd" / "sandboxd.sock"
    return HOST_WIDE if HOST_WIDE.exists() and not private.exists() else private


def listening(path: Path) -> bool:
    """Whether something accepts connections on a socket; costs a millisecond either way."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
