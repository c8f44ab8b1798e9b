"""What commands print: two files a command, written as it comes, read from any offset while it runs and afterwards."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

STREAMS = ("stdout", "stderr")
_ID = re.compile(r"x_[0-9a-f]{24}")


class CommandOutput:
    """The output of a command that runs now. `changed` wakes whoever waits for more."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._files = {
            name: os.open(_path(folder, identity, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            for name in STREAMS
        }
        self.sizes = dict.fromkeys(STREAMS, 0)
        self._changed = asyncio.Event()

    def write(self, stream: str, piece: bytes) -> None:
        """Appends a piece; called on the event loop, since a write to the page cache does not block."""
        view = memoryview(piece)
        while view:
            view = view[os.write(self._files[stream], view) :]
        self.sizes[stream] += len(piece)
        self.wake()

    def wake(self) -> None:
        """Lets the waiting look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def changed(self, patience: float) -> None:
        """Waits for more output or the end, at most `patience` seconds."""
        waiting = self._changed
        try:
            await asyncio.wait_for(waiting.wait(), patience)
        except TimeoutError:
            return

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}
        self.wake()


def read_output(folder: Path, identity: str, stream: str, offset: int, limit: int) -> bytes:
    """Bytes of a stream from an offset; empty at its end, and when the output is gone."""
    try:
        with _path(folder, identity, stream).open("rb") as file:
            file.seek(offset)
            return file.read(limit)
    except FileNotFoundError:
        return b""


def drop_output(folder: Path, identity: str) -> None:
    """Removes both streams of a command."""
    for stream in STREAMS:
        _path(folder, identity, stream).unlink(missing_ok=True)


def _path(folder: Path, identity: str, stream: str) -> Path:
    if not _ID.fullmatch(identity):
        raise ValueError(f"{identity!r} is no id of a command")
    return folder / f"{identity}.{stream}"
