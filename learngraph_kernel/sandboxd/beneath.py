"""Opening a path below a folder in one step, so that nothing can be swapped in between.

The container's processes share the workspace with us and may rename, link and replace while we work. So no path is
ever checked first and used afterwards: `openat2` resolves it in the kernel and fails when it meets a symbolic link, a
magic link, a mount or a way out. Where that call is missing (Linux < 5.6, or a seccomp filter), the path is opened
component by component with `O_NOFOLLOW`, each in the folder that was opened before it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from typing import ClassVar

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.refusals import printable

_SYS_OPENAT2 = 437  # the same number on every architecture (Linux 5.6)
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV | NO_MAGICLINKS | NO_SYMLINKS | BENEATH, linux/openat2.h
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RETRIES = 32


class _OpenHow(ctypes.Structure):
    _fields_: ClassVar = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


class FileRefused(BadInput):
    """What lies at the path is not something that may be touched; `details["rule"]` says why."""

    code: ClassVar[str] = "file_refused"

    def __init__(self, rule: str, what: str, path: str, remedy: str | None = None) -> None:
        super().__init__(what, where=printable(path), remedy=remedy, details={"rule": rule})
        self.rule = rule


class NoSuchFile(BadInput):
    """There is no file or folder at the path."""

    code: ClassVar[str] = "no_such_file"


def open_beneath(root_fd: int, path: str, flags: int = os.O_RDONLY) -> int:
    """A descriptor of what lies at `path` below `root_fd`.

    Args:
        root_fd: a folder's descriptor.
        path: relative; `.` for the folder itself.
        flags: of open(2); without `O_CREAT`. `O_NOFOLLOW`, `O_CLOEXEC`, `O_NOCTTY` and `O_NONBLOCK` are added, so
            that neither a FIFO nor a device can hold us up.

    Raises:
        FileRefused: the way leads over a link or a mount, or out of the folder.
        NoSuchFile: it does not exist.
        OSError: anything else.
    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    if not flags & os.O_PATH:  # which opens nothing, and with which openat2 takes no other flag
        flags |= os.O_NOCTTY | os.O_NONBLOCK
    try:
        return _openat2(root_fd, path, flags) if OPENAT2 else _open_by_component(root_fd, path, flags)
    except FileNotFoundError as error:
        raise NoSuchFile("there is no such file", where=printable(path)) from error
    except OSError as error:
        raise _translated(error, path) from error


def open_folder(root_fd: int, path: str) -> int:
    """A descriptor of the folder at `path`. Raises FileRefused, NoSuchFile."""
    return open_beneath(root_fd, path, os.O_RDONLY | os.O_DIRECTORY)


def open_regular(root_fd: int, path: str) -> int:
    """A descriptor, for reading, of the regular file at `path`; nothing else is ever opened.

    Raises:
        FileRefused: it is a link, a folder, a FIFO, a socket or a device.
        NoSuchFile: it does not exist.
    """
    pinned = open_beneath(root_fd, path, os.O_PATH)  # without effect on a FIFO, a socket or a device
    try:
        kind = kind_of(os.fstat(pinned).st_mode)
        if kind != "file":
            raise FileRefused("not_a_file", f"this is a {kind}, not a regular file", path)
        return os.open(f"/proc/self/fd/{pinned}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    finally:
        os.close(pinned)


def kind_of(mode: int) -> str:
    """`file`, `folder`, `link`, `fifo`, `socket` or `device`, from a mode."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISFIFO(mode):
        return "fifo"
    return "socket" if stat.S_ISSOCK(mode) else "device"


def _openat2(root_fd: int, path: str, flags: int) -> int:
    how = _OpenHow(flags, 0, _RESOLVE)
    name = os.fsencode(path)
    for attempt in range(_RETRIES):
        found: int = _LIBC.syscall(_SYS_OPENAT2, root_fd, name, ctypes.byref(how), ctypes.sizeof(how))
        if found >= 0:
            return found
        code = ctypes.get_errno()
        # EAGAIN: something was renamed while the kernel looked; it cannot tell whether that led out, so it asks again.
        if code not in (errno.EAGAIN, errno.EINTR) or attempt == _RETRIES - 1:
            raise OSError(code, os.strerror(code), path)
    raise AssertionError("unreachable")


def _open_by_component(root_fd: int, path: str, flags: int) -> int:
    parts = [part for part in path.split("/") if part != "."]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    folder = os.dup(root_fd)
    device = os.fstat(folder).st_dev
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = deeper
        found = os.open(parts[-1] if parts else ".", flags, dir_fd=folder)
    finally:
        os.close(folder)
    status = os.fstat(found)
    if status.st_dev != device or stat.S_ISLNK(status.st_mode):  # O_PATH | O_NOFOLLOW opens the link itself
        os.close(found)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return found


def _translated(error: OSError, path: str) -> Exception:
    if error.errno == errno.ELOOP:
        return FileRefused("link", "the path leads over a symbolic link", path, "use the file itself")
    if error.errno == errno.EXDEV:
        return FileRefused("outside", "the path leads out of the workspace", path)
    if error.errno == errno.ENOTDIR:
        return FileRefused("not_a_folder", "a part of the path is not a folder", path)
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return FileRefused("not_a_file", "this is a FIFO, a socket or a device", path)
    if error.errno == errno.EAGAIN:
        return FileRefused("changing", "the path kept changing while it was opened", path, "try again")
    return error


def _probe() -> bool:
    try:
        os.close(_openat2(_AT_FDCWD, ".", os.O_PATH | os.O_CLOEXEC))
    except OSError:
        return False
    return True


_AT_FDCWD = -100
_LIBC = ctypes.CDLL(None, use_errno=True)
OPENAT2 = _probe()
"""Whether this kernel lets us use openat2."""
