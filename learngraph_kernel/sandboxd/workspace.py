"""The physical folder of a workspace, and every file operation that sandboxd does in it for an agent.

    <root>/files/{inputs,work,outputs}   what the container sees; only the three belong to its user
    <root>/shadow/                       hard links to protected files (`restore`)
    <root>/staging/                      files on their way in and on their way out

The container sees `files` alone. A new file is written in `staging` and renamed to its place, so that we never open
anything for writing that the container can reach; a deleted one is renamed to `staging` before it is taken apart.

Hard links: no process in the container can link to a file outside, since link(2) does not cross mounts, and on the
host only sandboxd writes here. A file with more names than its own and the shadow's is still refused for reading, so
that a link planted from outside by other means gives nothing away.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from learngraph_kernel.sandbox.paths import FOLDERS, check_deletable, check_path, collides
from learngraph_kernel.sandbox.refusals import printable
from learngraph_kernel.sandboxd.beneath import FileRefused, NoSuchFile, kind_of, open_folder, open_regular
from learngraph_kernel.sandboxd.quota import QuotaExceeded, check_room
from learngraph_kernel.sandboxd.scan import Limits, Scan, scan

CHUNK = 1 << 20
MAX_LISTED = 10_000
_PATIENCE = 16


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a listing: path, kind (`file`, `folder`, `link`, `fifo`, `socket`, `device`), size in bytes,
    time of the last change in nanoseconds since the epoch."""

    path: str
    kind: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A file that was written, and its status in the folder."""

    path: str
    status: os.stat_result


class WorkspaceFolder:
    """Files of one workspace. Holds descriptors: use it as a context manager, or `close` it. Not for several threads
    at once, except that any number of processes may disturb the files meanwhile.

    Attributes:
        root: the folder with `files`, `shadow` and `staging`.
        files: what is mounted into the container.
        files_fd, shadow_fd, staging_fd: descriptors.
    """

    def __init__(self, root: Path, *, owner: tuple[int, int] | None = None) -> None:
        """Makes the folder where it is missing.

        Args:
            root: an absolute path without links; the parent must exist.
            owner: uid and gid of the container's user; None when that is ourselves.
        """
        self.root = root
        self.files = root / "files"
        self._owner = owner
        with contextlib.suppress(FileExistsError):
            root.mkdir(mode=0o700)
        root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self.files_fd = self._folder(root_fd, "files", mine=True)
            self.shadow_fd = self._folder(root_fd, "shadow", mine=True, mode=0o700)
            self.staging_fd = self._folder(root_fd, "staging", mine=True, mode=0o700)
        finally:
            os.close(root_fd)
        for name in FOLDERS:
            os.close(self._folder(self.files_fd, name))

    # Writing

    def put(self, path: str, data: bytes | BinaryIO, *, limits: Limits) -> Placed:
        """Writes a file, replacing one that is there. Folders on the way are made.

        Raises:
            PathRefused, FileRefused: the path is not one to write to, or its name collides with another's.
            QuotaExceeded: there is no room; nothing was changed.
        """
        path = check_path(path, new=True)
        if "/" not in path:
            raise FileRefused("is_a_folder", "this is a folder", path)
        before = scan(self.files_fd, limits)
        missing = sum(1 for folder in _ancestors(path) if folder not in before.folders)
        if before.stopped is not None:
            raise QuotaExceeded(before.stopped, limits, before.usage)
        check_room(before.usage, limits, size=0, files=0 if path in before.files else 1, directories=missing)
        # The old file stays until the new one is complete, but what it holds counts no more.
        room = limits.bytes - before.usage.bytes
        if path in before.files and before.files[path].st_nlink <= 2:
            room += before.files[path].st_size
        try:
            return self.place(path, data, room=room)
        except BufferError as error:
            raise QuotaExceeded("bytes", limits, before.usage) from error

    def place(self, path: str, data: bytes | BinaryIO, *, room: int) -> Placed:
        """Writes a file of at most `room` bytes without asking for the rest of the quota; see `put`.

        Raises:
            BufferError: there was more; nothing was changed.
            PathRefused, FileRefused
        """
        path = check_path(path, new=True)
        name = path.rpartition("/")[2]
        staged = self._stage(data, room)
        try:
            parent = self._make_folders(path)
            try:
                self._check_target(parent, name, path)
                os.rename(staged, name, src_dir_fd=self.staging_fd, dst_dir_fd=parent)
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            finally:
                os.close(parent)
        except (IsADirectoryError, FileNotFoundError) as error:
            raise FileRefused("changing", "something else was put there meanwhile", path, "try again") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(staged, dir_fd=self.staging_fd)
        return Placed(path, status)

    def delete(self, path: str, *, recursive: bool = False) -> list[str]:
        """Deletes a file or, when `recursive`, a folder; only below `work/`.

        Returns:
            The paths of the files that are gone.

        Raises:
            PathRefused, FileRefused, NoSuchFile: nothing was deleted.
        """
        path = check_deletable(path)
        folder, _, name = path.rpartition("/")
        parent = open_folder(self.files_fd, folder)
        staged = f"gone-{secrets.token_hex(8)}"
        try:
            try:
                kind = kind_of(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
                if kind == "folder" and not recursive:
                    raise FileRefused("is_a_folder", "this is a folder", path, "remove it recursively (rm -r)")
                os.rename(name, staged, src_dir_fd=parent, dst_dir_fd=self.staging_fd)
            except FileNotFoundError as error:
                raise NoSuchFile("there is no such file", where=printable(path)) from error
        finally:
            os.close(parent)
        status = os.stat(staged, dir_fd=self.staging_fd, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(staged, dir_fd=self.staging_fd)
            return [path]
        return remove_tree(self.staging_fd, staged, f"{path}/")

    # Reading

    def open(self, path: str) -> BinaryIO:
        """The bytes of a file. Raises PathRefused, FileRefused, NoSuchFile."""
        path = check_path(path)
        descriptor = open_regular(self.files_fd, path)
        try:
            self.check_ours(path, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return cast(BinaryIO, os.fdopen(descriptor, "rb"))

    def entries(self, path: str | None = None, *, recursive: bool = False) -> tuple[list[Listed], bool]:
        """What lies in a folder of the workspace (None: its top), by path.

        Returns:
            At most 10,000 entries, and whether there are more.

        Raises:
            PathRefused, FileRefused, NoSuchFile
        """
        folder = open_folder(self.files_fd, "." if path is None else check_path(path))
        try:
            bound = Limits(bytes=2**62, files=MAX_LISTED, directories=MAX_LISTED, depth=64)
            found = scan(folder, bound, skip=None if recursive else lambda _: True)
        finally:
            os.close(folder)
        prefix = "" if path is None else f"{path}/"
        every = {**found.folders, **found.files, **found.others}
        entries = [
            Listed(prefix + name, kind_of(status.st_mode), status.st_size, status.st_mtime_ns)
            for name, status in sorted(every.items())
        ]
        return entries[:MAX_LISTED], found.stopped is not None or len(entries) > MAX_LISTED

    def check_script(self, path: str) -> None:
        """Refuses a script that is not a regular file of the workspace, just before it is run."""
        self.open(path).close()

    def scan(self, limits: Limits) -> Scan:
        """A walk over everything the container can reach."""
        return scan(self.files_fd, limits)

    def check_ours(self, path: str, status: os.stat_result) -> None:
        """Refuses an open file that somebody else owns or that has names we do not know. Raises FileRefused."""
        if self._owner is not None and status.st_uid not in (self._owner[0], os.geteuid()):
            raise FileRefused("foreign_owner", "the file belongs to another user", path)
        if status.st_nlink > 1 and status.st_nlink > (2 if self.in_shadow(status) else 1):
            raise FileRefused("hard_link", "the file has a second name (hard link)", path, "make a copy of it")

    def in_shadow(self, status: os.stat_result) -> bool:
        """Whether the shadow keeps this very file."""
        try:
            kept = os.stat(str(status.st_ino), dir_fd=self.shadow_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (kept.st_ino, kept.st_dev) == (status.st_ino, status.st_dev)

    def own(self, descriptor: int, mode: int) -> None:
        """Gives an open file or folder that we made to the container's user."""
        os.fchmod(descriptor, mode)
        if self._owner is not None:
            os.fchown(descriptor, *self._owner)

    def close(self) -> None:
        """Closes the descriptors; the files stay."""
        for descriptor in (self.files_fd, self.shadow_fd, self.staging_fd):
            os.close(descriptor)

    def __enter__(self) -> WorkspaceFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    def make_folder(self, parent: int, name: str) -> int:
        """A descriptor of a folder for the container's user, made where it is missing. Raises FileRefused."""
        return self._folder(parent, name)

    def _folder(self, parent: int, name: str, *, mine: bool = False, mode: int = 0o755) -> int:
        made = False
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=parent)
            made = True
        descriptor = open_folder(parent, name)
        if made:
            if mine:
                os.fchmod(descriptor, mode)
            else:
                self.own(descriptor, mode)
        return descriptor

    def _make_folders(self, path: str) -> int:
        parts = path.split("/")[:-1]
        folder = open_folder(self.files_fd, parts[0])
        for part in parts[1:]:
            try:
                _check_collision(folder, part, path)
                deeper = self._folder(folder, part)
            finally:
                os.close(folder)
            folder = deeper
        return folder

    def _check_target(self, parent: int, name: str, path: str) -> None:
        _check_collision(parent, name, path)
        try:
            kind = kind_of(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return
        if kind != "file":
            raise FileRefused("is_a_folder" if kind == "folder" else "not_a_file", f"there is a {kind} here", path)

    def _stage(self, data: bytes | BinaryIO, room: int) -> str:
        """Writes to a new file in `staging`; not flushed to disk, since the logical layer is what lasts."""
        name = f"new-{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=self.staging_fd)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for chunk in _chunks(data):
                    room -= len(chunk)
                    if room < 0:
                        raise BufferError("more bytes than there is room for")
                    file.write(chunk)
                self.own(descriptor, 0o644)
        except BaseException:
            os.unlink(name, dir_fd=self.staging_fd)
            raise
        return name


def remove_tree(staging: int, name: str, prefix: str = "") -> list[str]:
    """Removes a folder in `staging` and all that is in it; a folder may be nested as deep as it likes.

    Subfolders are first moved up into `staging`, so that one descriptor and no recursion are enough. A process that
    still has a folder open may go on making files in it, so a folder is emptied again until it can be removed.

    Returns:
        The paths, below `prefix`, of everything removed that was no folder.

    Raises:
        FileRefused: it kept being filled.
    """
    removed: list[str] = []
    queue, again = [(name, prefix)], 0
    while queue:
        name, prefix = queue.pop()
        folder = open_folder(staging, name)
        try:
            with os.scandir(folder) as entries:
                inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
            for child, is_folder in inside:
                if is_folder:
                    moved = f"gone-{secrets.token_hex(8)}"
                    os.rename(child, moved, src_dir_fd=folder, dst_dir_fd=staging)
                    queue.append((moved, f"{prefix}{child}/"))
                else:
                    os.unlink(child, dir_fd=folder)
                    removed.append(prefix + child)
        finally:
            os.close(folder)
        try:
            os.rmdir(name, dir_fd=staging)
        except OSError as error:
            again += 1
            if error.errno != errno.ENOTEMPTY or again > _PATIENCE:
                raise FileRefused("changing", "the folder kept being filled", prefix, "stop the command") from error
            queue.append((name, prefix))
    return removed


def _check_collision(folder: int, name: str, path: str) -> None:
    other = collides(name, os.listdir(folder))
    if other is not None:
        raise FileRefused(
            "collision", f"the name differs from {printable(other)!r} only in case or form", path, "choose another name"
        )


def _ancestors(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _chunks(data: bytes | BinaryIO) -> Iterator[bytes]:
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    while chunk := source.read(CHUNK):
        yield chunk
