"""The private folder of one broker's sockets, and what a killed runtime left of its own.

Short paths, since a unix socket's path is limited to some hundred bytes, so not below the home. A folder says whose it
is; whoever makes the next one clears away those whose owner has died.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from learngraph_kernel.store.process import ProcessIdentity

PREFIX = "lg-"
OWNER = "owner"
MAX_OWNER = 4096


def make_folder() -> Path:
    """A new folder (0700) that belongs to this process."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    claim(folder)
    return folder


def claim(folder: Path) -> None:
    """Writes into a folder that it belongs to this process, and clears away what others left beside it."""
    sweep(folder.parent)
    part = folder / f"{OWNER}.part"
    part.write_text(json.dumps({"process": ProcessIdentity.current().as_json(), "namespace": _namespace()}))
    part.replace(folder / OWNER)


def sweep(parent: Path) -> None:
    """Removes folders whose owner is known to have died; a process of another PID namespace is not known."""
    for owner in parent.glob(f"{PREFIX}*/{OWNER}"):
        try:
            body = json.loads(_text(owner))
            process = ProcessIdentity.from_json(body["process"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # not ours, another user's, or being removed at this moment
        if body.get("namespace") == _namespace() and not process.alive():
            shutil.rmtree(owner.parent, ignore_errors=True)


def _text(path: Path) -> str:
    """The content of a file of this user's; a container's kernel has a folder here too and may put anything into it.

    Raises:
        OSError, ValueError: it cannot be read, or is not ours.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would block
    with os.fdopen(descriptor, encoding="utf-8") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise ValueError("not a file of ours")
        return file.read(MAX_OWNER)


def _namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
