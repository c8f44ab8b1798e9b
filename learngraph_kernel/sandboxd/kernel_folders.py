"""The two folders of a kernel: one it shares with its runtime (sockets, connection file, ticket), one it only reads."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from learngraph_kernel.sandboxd import folders
from learngraph_kernel.sandboxd.containers import CONNECTION_FILE
from learngraph_kernel.sandboxd.records import Row
from learngraph_kernel.sandboxd.scan import Limits, scan

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


def make_folders(temporary: Path) -> tuple[Path, Path]:
    """Folder and granted folder, with a connection file; short, since a socket's path has 108 bytes (unix(7))."""
    made = tuple(Path(tempfile.mkdtemp(prefix="lg-", dir=temporary)) for _ in range(2))
    folder, granted = made
    connection: dict[str, Any] = {
        "transport": "ipc",
        "ip": f"{folder}/k",
        "key": secrets.token_hex(32),
        "signature_scheme": "hmac-sha256",
        "kernel_name": "learngraph-sandbox",
    }
    connection |= {port: number for number, port in enumerate(PORTS, 1)}
    path = folder / CONNECTION_FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps(connection))
    folders.open_to_container(folder, others=(os.geteuid(),))
    folders.open_to_container(granted, others=(os.geteuid(),), writable=False)
    return folder, granted


def remove_folders(temporary: Path, row: Row) -> None:
    """Removes a kernel's two folders if we made them."""
    for path in (Path(row["folder"]), Path(row["granted"])):
        if path.parent == temporary:
            folders.remove_below(temporary, path.name)


def open_folders(row: Row, uid: int) -> None:
    """Lets container and caller in; a folder of the caller's keeps its owner."""
    folder, granted = Path(row["folder"]), Path(row["granted"])
    folders.open_to_container(folder, others=(uid,))
    folders.open_to_container(granted, others=(uid,), writable=False)
    if row["ours"]:
        folders.give(folder, uid)
        folders.give(granted, uid)


def hand_over(row: Row, uid: int) -> None:
    """Gives the folders of a warm kernel to who gets it."""
    if uid != os.geteuid():
        open_folders(row, uid)


def remove_sockets(folder: Path) -> None:
    """The old kernel's, so that nobody takes them for the new one's."""
    for number in range(1, len(PORTS) + 1):
        folder.joinpath(f"k-{number}").unlink(missing_ok=True)


def folder_full(folder: Path, limit: int) -> bool:
    """Whether a kernel has written more into its folder than it may."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # its caller removed it; the kernel goes with the caller
    try:
        return scan(descriptor, Limits(bytes=limit)).stopped is not None
    finally:
        os.close(descriptor)
