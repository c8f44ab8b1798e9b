"""Undoing deletions: before a command every file gets a second name in the shadow, after it what is gone comes back.

A deletion removes a name, and an inode lives as long as it has one. The shadow is a folder on the same file system
that the container does not see; in it every file of the workspace is hard-linked under its inode number. While that
link exists the number cannot be used again, so "is this file still there?" is asked of inodes, not of paths: a file
that was moved or renamed is still there. Nothing is copied, and files that stay keep their link for the next command.

What is protected: files and folders that were there before the command, against unlink, rmdir, `shutil.rmtree`, and
being renamed over and then removed. What is not, since it is no deletion: writing into a file (also truncating it),
and replacing it by another of the same name. Both make a new version in the logical layer (`storage`), which keeps the
earlier content; the report lists what was replaced. Files that the command made itself may be deleted by it.

Where hard links are not allowed (`protected_hardlinks` when sandboxd is neither root nor the owner) the file is copied.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from learngraph_kernel.sandboxd.beneath import FileRefused, NoSuchFile, open_regular
from learngraph_kernel.sandboxd.scan import Scan, scan
from learngraph_kernel.sandboxd.workspace import WorkspaceFolder

Authorise = Callable[[frozenset[str]], frozenset[str]]
"""Given the paths of deleted files and folders, says which of them were allowed to go."""

_NO_LINK = (errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP)


def nothing_allowed(_: frozenset[str]) -> frozenset[str]:
    """Authorises no deletion."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What became of the files that were there before.

    Attributes:
        restored: files and folders that had been deleted and are back.
        allowed: deleted with permission, and gone.
        replaced: another file has their name; the logical layer keeps the earlier content.
        displaced: what stood in the way of a restored file, and the name it has now.
        lost: could not be brought back, with the reason; empty unless the file system failed.
    """

    restored: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    displaced: tuple[tuple[str, str], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()


class DeletionGuard:
    """The shadow of one workspace. `arm` it before a command, `missing` while it runs, `restore` after it."""

    def __init__(self, folder: WorkspaceFolder) -> None:
        self._folder = folder
        self._before = Scan()

    def arm(self, found: Scan | None = None) -> int:
        """Protects everything that is there now.

        Args:
            found: a complete walk made just now; made here when None.

        Returns:
            How many files are protected.
        """
        before = scan(self._folder.files_fd) if found is None else found
        kept = set(os.listdir(self._folder.shadow_fd))
        wanted = {str(status.st_ino) for status in before.files.values()}
        for name in kept - wanted:
            os.unlink(name, dir_fd=self._folder.shadow_fd)
        for path, status in before.files.items():
            name = str(status.st_ino)
            if name not in kept or not self._is_current(name, status):
                self._keep(path, name, status)
                kept.add(name)
        self._before = before
        return len(before.files)

    def missing(self, now: Scan) -> list[str]:
        """Protected files that are neither at their place nor elsewhere in a complete walk made just now."""
        return [path for path in self._gone(now) if path not in now.files]

    def forget(self, paths: Iterable[str]) -> None:
        """Stops protecting files, and folders with all in them, that a call of the API deletes meanwhile."""
        for path in paths:
            for kept in (self._before.files, self._before.folders):
                for each in [each for each in kept if each == path or each.startswith(f"{path}/")]:
                    del kept[each]

    def restore(self, authorise: Authorise = nothing_allowed) -> RestoreReport:
        """Brings back what was deleted without permission. The command must have ended.

        Args:
            authorise: asked once, with everything that was deleted.
        """
        now = scan(self._folder.files_fd)
        gone = self._gone(now)
        replaced = [path for path in gone if path in now.files]
        deleted = [path for path in gone if path not in now.files]
        alive = {status.st_ino for status in now.folders.values()}
        # Unlike a file's, a folder's number can be used again; then an *empty* folder that is gone is taken for moved.
        folders = [
            path
            for path, status in self._before.folders.items()
            if path not in now.folders and status.st_ino not in alive
        ]
        if not deleted and not folders:
            return RestoreReport(replaced=tuple(replaced))
        allowed = authorise(frozenset((*deleted, *folders)))
        restored: list[str] = []
        displaced: list[tuple[str, str]] = []
        lost: list[tuple[str, str]] = []
        self._put_back_folders([path for path in folders if path not in allowed], restored, displaced, lost)
        self._put_back_files([path for path in deleted if path not in allowed], restored, displaced, lost)
        return RestoreReport(tuple(restored), tuple(sorted(allowed)), tuple(replaced), tuple(displaced), tuple(lost))

    def _gone(self, now: Scan) -> list[str]:
        present = {status.st_ino for status in now.files.values()}
        return [path for path, status in self._before.files.items() if status.st_ino not in present]

    # Keeping

    def _is_current(self, name: str, status: os.stat_result) -> bool:
        """Whether the shadow's file is the workspace's; a copy is not, and is made anew."""
        try:
            kept = os.stat(name, dir_fd=self._folder.shadow_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return kept.st_ino == status.st_ino

    def _keep(self, path: str, name: str, status: os.stat_result) -> None:
        shadow = self._folder.shadow_fd
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=shadow)
        try:
            os.link(path, name, src_dir_fd=self._folder.files_fd, dst_dir_fd=shadow, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            self._copy(path, name)
            return
        # The path was resolved without our guard, so what was linked may not be what was seen: then it is dropped.
        kept = os.stat(name, dir_fd=shadow, follow_symlinks=False)
        if not stat.S_ISREG(kept.st_mode) or (kept.st_ino, kept.st_dev) != (status.st_ino, status.st_dev):
            os.unlink(name, dir_fd=shadow)

    def _copy(self, path: str, name: str) -> None:
        try:
            source = open_regular(self._folder.files_fd, path)
        except (FileRefused, NoSuchFile):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(source, "rb") as reader:
            target = os.open(name, flags, 0o600, dir_fd=self._folder.shadow_fd)
            with os.fdopen(target, "wb") as writer:
                shutil.copyfileobj(reader, writer, 1 << 20)
                self._folder.own(target, stat.S_IMODE(os.fstat(source).st_mode))

    # Putting back

    def _put_back_folders(
        self, paths: list[str], restored: list[str], displaced: list[tuple[str, str]], lost: list[tuple[str, str]]
    ) -> None:
        for path in sorted(paths, key=lambda each: each.count("/")):
            try:
                os.close(self._open_folder(path, displaced))
                restored.append(path)
            except (OSError, FileRefused) as error:
                lost.append((path, str(error)))

    def _put_back_files(
        self, paths: list[str], restored: list[str], displaced: list[tuple[str, str]], lost: list[tuple[str, str]]
    ) -> None:
        folder, folder_path = -1, None
        try:
            for path in sorted(paths, key=lambda each: each.rpartition("/")[0]):
                parent, _, name = path.rpartition("/")
                try:
                    if parent != folder_path:
                        if folder >= 0:
                            os.close(folder)
                            folder = -1
                        folder, folder_path = self._open_folder(parent, displaced), parent
                    self._link_back(folder, name, path, displaced)
                    restored.append(path)
                except (OSError, FileRefused) as error:
                    lost.append((path, str(error)))
        finally:
            if folder >= 0:
                os.close(folder)

    def _link_back(self, folder: int, name: str, path: str, displaced: list[tuple[str, str]]) -> None:
        inode = str(self._before.files[path].st_ino)
        shadow = self._folder.shadow_fd
        try:
            os.link(inode, name, src_dir_fd=shadow, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            displaced.append((path, _displace(folder, name, path)))
            os.link(inode, name, src_dir_fd=shadow, dst_dir_fd=folder, follow_symlinks=False)

    def _open_folder(self, path: str, displaced: list[tuple[str, str]]) -> int:
        """The folder at `path`, made again where it is missing, with the mode it had."""
        current = os.dup(self._folder.files_fd)
        walked = ""
        for part in path.split("/") if path else ():
            walked = f"{walked}/{part}" if walked else part
            try:
                deeper = self._step(current, part, walked, displaced)
            finally:
                os.close(current)
            current = deeper
        return current

    def _step(self, current: int, part: str, walked: str, displaced: list[tuple[str, str]]) -> int:
        try:
            there = stat.S_ISDIR(os.stat(part, dir_fd=current, follow_symlinks=False).st_mode)
            if not there:
                displaced.append((walked, _displace(current, part, walked)))
        except FileNotFoundError:
            there = False
        deeper = self._folder.make_folder(current, part)
        before = self._before.folders.get(walked)
        if not there and before is not None:
            os.fchmod(deeper, stat.S_IMODE(before.st_mode))
        return deeper


def _displace(folder: int, name: str, path: str) -> str:
    """Renames what stands in the way; returns its new path."""
    aside = f"{name[:200]}.displaced-{secrets.token_hex(4)}"
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    return f"{path.rpartition('/')[0]}/{aside}".lstrip("/")
