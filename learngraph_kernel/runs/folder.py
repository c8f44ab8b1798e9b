"""The sealed files of a run, wherever they lie: a folder, a bundle or the store give the same `RunParts`.

Verifying, exporting and bundling work on `RunParts` (name → how to open it) and never ask where it came from.
"""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.runs.records import ARTIFACTS, CONTENT, ENVELOPE, LEDGER

_SAFE_NAME = re.compile(r"(?:artifacts/)?[A-Za-z0-9][A-Za-z0-9._-]*")

Opener = Callable[[], BinaryIO]


class FolderInTheWay(BadInput):
    """The folder to write to already holds something."""

    code = "folder_in_the_way"


class UnsafeName(BadInput):
    """A file's name would leave the folder it is written to."""

    code = "unsafe_name"


class PartUnreadable(LearnGraphError):
    """A file of the run is there but cannot be read."""

    code = "part_unreadable"


@dataclass(frozen=True)
class RunParts:
    """The files of one sealed run.

    Attributes:
        where: what a message calls this: a path or a run id.
        files: name in the sealed folder → opens it for reading, unbuffered.
        strange: names of things that are no regular files (links, devices, empty folders) and so can't be part of a
            sealed run.
    """

    where: str
    files: Mapping[str, Opener]
    strange: tuple[str, ...] = ()

    def read(self, name: str) -> bytes:
        """All bytes of a file. Raises KeyError when there is none, PartUnreadable."""
        try:
            with self.files[name]() as file:
                return file.read()
        except OSError as error:
            raise PartUnreadable(
                f"{name} cannot be read ({error.strerror})", where=self.where, remedy="check its permissions"
            ) from error

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, with their ends. Raises OSError."""
        with io.BufferedReader(cast(io.RawIOBase, self.files[name]()), 1 << 16) as file:
            yield from file


def parts_of_folder(folder: Path) -> RunParts:
    """The files of an exported folder, including those that shouldn't be there."""
    files: dict[str, Opener] = {}
    strange = []
    for at, folders, names in os.walk(folder):
        if not folders and not names and Path(at) not in (folder, folder / ARTIFACTS.rstrip("/")):
            strange.append(Path(at).relative_to(folder).as_posix())
        for name in [*names, *(name for name in folders if Path(at, name).is_symlink())]:
            path = Path(at, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not path.is_file():
                strange.append(relative)
            else:
                files[relative] = opens(path)
    return RunParts(str(folder), files, tuple(sorted(strange)))


def is_sealed_folder(folder: Path) -> bool:
    """Whether the folder is (the remains of) a sealed run."""
    return folder.is_dir() and any((folder / name).exists() for name in (ENVELOPE, LEDGER, CONTENT))


def opens(path: Path) -> Opener:
    """Opens a file unbuffered, so that a hash reads it in large blocks."""
    return lambda: cast(BinaryIO, open(path, "rb", buffering=0))


def holds(data: bytes) -> Opener:
    """Opens bytes that are in memory."""
    return lambda: io.BytesIO(data)


def streams(make: Callable[[], Iterable[bytes]]) -> Opener:
    """Opens bytes that are made while they are read."""
    return lambda: cast(BinaryIO, _Stream(iter(make())))


class _Stream(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def write_folder(parts: RunParts, target: Path) -> None:
    """Writes the sealed folder; all of it appears at once, or nothing.

    Args:
        parts: the run.
        target: a folder that doesn't exist yet, or an empty one.

    Raises:
        FolderInTheWay: there is something at `target`.
        UnsafeName: a file's name would leave the folder; nothing is written.
    """
    refuse_occupied(target)
    for name in parts.files:
        if not _SAFE_NAME.fullmatch(name) or ".." in name:
            raise UnsafeName(f"{name!r} is no name for a file of a sealed run", where=parts.where)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        for name, opener in parts.files.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with opener() as source, path.open("xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_file(target: Path, pieces: Iterable[bytes]) -> None:
    """Writes a file whose content comes in pieces; an existing one is replaced only by a whole one."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def refuse_occupied(target: Path) -> None:
    """Raises FolderInTheWay unless `target` can become a new folder."""
    if target.is_symlink() or target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise FolderInTheWay(
            "there is already something here", where=str(target), remedy="name a folder that does not exist yet"
        )
