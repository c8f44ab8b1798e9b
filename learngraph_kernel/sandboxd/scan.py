"""One walk over a workspace, by descriptors and without following anything; quota, restore and storage all read it.

The walk is bounded: it stops at the first limit that is exceeded, so that a tree made to be walked for ever costs no
more than an honest full one. Names may be anything a file system allows; bytes that are not UTF-8 come as lone
surrogates and go back to the file system unchanged.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from learngraph_kernel.sandbox.paths import MAX_DEPTH

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # away, or replaced by something that is not a folder
BLOCK = 512  # st_blocks counts these on Linux, whatever the file system's block size

Stop = Literal["bytes", "files", "directories", "depth", "unreadable"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a workspace may hold: bytes in all, entries that are no folders, folders, and levels of folders."""

    bytes: int = 256 * 1024 * 1024
    files: int = 10_000
    directories: int = 2_000
    depth: int = MAX_DEPTH


@dataclass(frozen=True, slots=True)
class Usage:
    """What a workspace holds. A file with several names counts its bytes once; every name counts as a file.

    Attributes:
        files: names of files, links, FIFOs and the like.
        directories: folders below the root.
        apparent: sum of the sizes as `ls -l` shows them.
        allocated: sum of the blocks on disk.
    """

    files: int
    directories: int
    apparent: int
    allocated: int

    @property
    def bytes(self) -> int:
        """The larger of the two sums: a sparse file counts what it claims, a preallocated one what it occupies."""
        return max(self.apparent, self.allocated)


@dataclass(slots=True)
class Scan:
    """What a walk found.

    Attributes:
        files: regular files by path.
        folders: by path, the root not among them.
        others: links, FIFOs, sockets and devices by path.
        apparent, allocated: bytes, each inode once.
        stopped: the limit at which the walk stopped; None when it saw everything.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    folders: dict[str, os.stat_result] = field(default_factory=dict)
    others: dict[str, os.stat_result] = field(default_factory=dict)
    apparent: int = 0
    allocated: int = 0
    stopped: Stop | None = None

    @property
    def usage(self) -> Usage:
        """The counts."""
        return Usage(len(self.files) + len(self.others), len(self.folders), self.apparent, self.allocated)


UNLIMITED = Limits(bytes=2**62, files=2**62, directories=2**62, depth=256)


def scan(root_fd: int, limits: Limits = UNLIMITED, *, skip: Callable[[str], bool] | None = None) -> Scan:
    """Walks everything below a folder. What vanishes meanwhile is left out; a link is noted, never followed.

    Args:
        root_fd: the folder's descriptor.
        limits: where to stop.
        skip: says of a folder's path that it is not to be entered.
    """
    found = Scan()
    _walk(found, os.open(".", _FOLDER, dir_fd=root_fd), "", 1, limits, skip, set())
    return found


def _walk(
    found: Scan,
    folder_fd: int,
    prefix: str,
    depth: int,
    limits: Limits,
    skip: Callable[[str], bool] | None,
    shared: set[int],
) -> None:
    """Walks a folder and closes its descriptor. At most one descriptor a level is open."""
    deeper: list[str] = []
    files, others = found.files, found.others
    try:
        with os.scandir(folder_fd) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                path = prefix + entry.name
                mode = status.st_mode
                if stat.S_ISDIR(mode):
                    found.folders[path] = status
                    deeper.append(entry.name)
                    if len(found.folders) > limits.directories:
                        found.stopped = "directories"
                        return
                    continue
                if stat.S_ISREG(mode):
                    files[path] = status
                    if status.st_nlink == 1 or status.st_ino not in shared:
                        found.apparent += status.st_size
                        found.allocated += status.st_blocks * BLOCK
                        if status.st_nlink > 1:
                            shared.add(status.st_ino)
                        if found.apparent > limits.bytes or found.allocated > limits.bytes:
                            found.stopped = "bytes"
                            return
                else:
                    others[path] = status
                if len(files) + len(others) > limits.files:
                    found.stopped = "files"
                    return
        if deeper and depth >= limits.depth:
            found.stopped = "depth"
            return
        for name in deeper:
            if skip is not None and skip(prefix + name):
                continue
            try:
                child = os.open(name, _FOLDER, dir_fd=folder_fd)
            except PermissionError:  # what cannot be counted is not allowed; root never gets here
                found.stopped = "unreadable"
                return
            except OSError as error:
                if error.errno not in _GONE:
                    raise
                found.folders.pop(prefix + name, None)
                continue
            _walk(found, child, f"{prefix}{name}/", depth + 1, limits, skip, shared)
            if found.stopped:
                return
    finally:
        os.close(folder_fd)
