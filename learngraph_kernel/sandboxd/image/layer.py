"""A layer: entries by path, written as a tar file that depends on nothing but them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Literal, TypeAlias

EPOCH = 1_735_689_600
"""Every time in the image (2025-01-01T00:00:00Z): SOURCE_DATE_EPOCH of https://reproducible-builds.org/specs/."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a layer.

    Attributes:
        kind: what it is.
        mode: permission bits; setuid and setgid are never kept.
        link: the target of a symbolic link.
        read: gives a file's bytes.
        owner: uid and gid.
    """

    kind: Literal["file", "folder", "symlink"]
    mode: int = 0o644
    link: str = ""
    read: Callable[[], bytes] | None = None
    owner: int = 0

    def content(self) -> bytes:
        """The bytes of a file; empty for anything else."""
        return b"" if self.read is None else self.read()


Tree: TypeAlias = dict[str, Entry]
"""Entries by path, without a leading slash."""


def file(data: bytes, *, mode: int = 0o644) -> Entry:
    """A file with these bytes."""
    return Entry("file", mode, read=lambda: data)


def folder(*, mode: int = 0o755, owner: int = 0) -> Entry:
    return Entry("folder", mode, owner=owner)


def symlink(target: str) -> Entry:
    return Entry("symlink", 0o777, link=target)


def merge(entries: Iterable[tuple[str, Entry]], into: Tree) -> None:
    """Adds entries; a later one replaces an earlier one, except that a folder never replaces a link to a folder."""
    for path, entry in entries:
        if entry.kind == "folder" and path in into:
            continue
        into[path] = entry


def with_parents(tree: Mapping[str, Entry]) -> Tree:
    """The tree with every folder that a path needs."""
    whole = dict(tree)
    for path in tree:
        parent = path.rpartition("/")[0]
        while parent and parent not in whole:
            whole[parent] = folder()
            parent = parent.rpartition("/")[0]
    return whole


@dataclass(frozen=True, slots=True)
class LayerDigest:
    """`diff_id` is `sha256:…` of the uncompressed tar file; `size` its bytes."""

    diff_id: str
    size: int


class _Hashing(io.RawIOBase):
    """Passes on what is written and hashes it."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._hash = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = bytes(data)  # type: ignore[call-overload]
        self._hash.update(view)
        self.size += len(view)
        self._target.write(view)
        return len(view)

    def digest(self) -> LayerDigest:
        return LayerDigest(f"sha256:{self._hash.hexdigest()}", self.size)


def write_layer(tree: Mapping[str, Entry], target: IO[bytes], *, parents: bool = True) -> LayerDigest:
    """Writes the tar file: sorted by path, times fixed, owners by number.

    Args:
        tree: what goes in.
        target: where the bytes go; need not be seekable.
        parents: whether to add the folders that are missing.
    """
    hashing = _Hashing(target)
    with tarfile.open(fileobj=hashing, mode="w|", format=tarfile.GNU_FORMAT, bufsize=1 << 20) as tar:
        for path, entry in sorted((with_parents(tree) if parents else tree).items()):
            info = tarfile.TarInfo(path)
            info.mtime, info.mode = EPOCH, entry.mode & 0o1777
            info.uid = info.gid = entry.owner
            if entry.kind == "folder":
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif entry.kind == "symlink":
                info.type, info.linkname = tarfile.SYMTYPE, entry.link
                tar.addfile(info)
            else:
                data = entry.content()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return hashing.digest()
