"""Host folders that a container may write: made, opened to the container's uid, and removed without leaving the root.

The container's uid owns nothing on the host, so it is let in by POSIX ACLs: an entry for it, and a default entry for
whoever else must read what it makes (sandboxd, or the caller of a kernel). ACLs need no privilege of the folder's
owner, so that the same code works for a sandboxd that is not root. Removal goes by directory descriptors and only
after a second check that the folder lies directly in its root (acl(5), xattr(7); format: linux/posix_acl_xattr.h).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import struct
from pathlib import Path

from learngraph_kernel.sandbox.answers import BadRequest, Forbidden
from learngraph_kernel.sandboxd.hardening import UID

_VERSION = 2
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NO_ID = 0xFFFFFFFF
_NAME = re.compile(r"[a-z]+[-_][A-Za-z0-9_-]{1,80}")


def acl(owner: int, users: dict[int, int]) -> bytes:
    """An ACL in the kernel's form: the owner's bits, a bits entry for each named uid, nothing for anybody else."""
    entries = [(_USER_OBJ, owner, _NO_ID)]
    entries += [(_USER, bits, uid) for uid, bits in sorted(users.items())]
    entries += [(_GROUP_OBJ, 0, _NO_ID), (_MASK, 7, _NO_ID), (_OTHER, 0, _NO_ID)]
    return struct.pack("<I", _VERSION) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def open_to_container(folder: Path, *, others: tuple[int, ...] = (), writable: bool = True) -> None:
    """Lets the container's uid use a folder and what already lies in it.

    Args:
        folder: owned by this process's user, or this process is root.
        others: uids that may read and write what the container makes.
        writable: False: the container may only read.
    """
    bits = 7 if writable else 5
    named = {UID: bits} | {uid: 7 for uid in others if uid != 0}
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _set(descriptor, named, default=True)
        for entry in os.scandir(descriptor):
            _open_entry(descriptor, entry.name, named)
    finally:
        os.close(descriptor)


def _open_entry(parent: int, name: str, named: dict[int, int]) -> None:
    """Files and sockets only; a link is left as it is, so that no ACL lands on something outside."""
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISREG(mode) or stat.S_ISSOCK(mode):
            files = {uid: bits & 6 for uid, bits in named.items()}
            os.setxattr(f"/proc/self/fd/{descriptor}", "system.posix_acl_access", acl(6, files))
    finally:
        os.close(descriptor)


def _set(descriptor: int, named: dict[int, int], *, default: bool) -> None:
    value = acl(7, named)
    os.setxattr(descriptor, "system.posix_acl_access", value)
    if default:
        os.setxattr(descriptor, "system.posix_acl_default", value)


def check_callers_folder(path: object, uid: int, roots: tuple[Path, ...]) -> Path:
    """A folder that a caller wants mounted into their kernel.

    It must lie directly below an allowed root, be named `lg-…`, be a real folder and belong to the caller.

    Raises:
        BadRequest, Forbidden: it is not; the message names only what the caller sent.
    """
    if not isinstance(path, str) or not path.startswith("/") or os.path.normpath(path) != path:
        raise BadRequest("folder must be a plain absolute path", code="bad_folder")
    folder = Path(path)
    if folder.parent not in roots or not folder.name.startswith("lg-") or not _NAME.fullmatch(folder.name):
        raise Forbidden(
            "a kernel's folder lies directly in the system's temporary folder and is named lg-…",
            code="folder_outside",
            where=path,
        )
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise BadRequest("the folder cannot be opened as a folder", code="bad_folder", where=path) from error
    try:
        if os.fstat(descriptor).st_uid != uid:
            raise Forbidden("the folder is not yours", code="folder_not_yours", where=path)
        if os.readlink(f"/proc/self/fd/{descriptor}") != path:
            raise Forbidden("the folder's path has a link in it", code="folder_linked", where=path)
    finally:
        os.close(descriptor)
    return folder


def remove_below(root: Path, name: str) -> bool:
    """Removes `root/name` with all that is in it; False when it is not there.

    Raises:
        Forbidden: the name is no plain name, or what it names is not a real folder directly in the root.
    """
    if not _NAME.fullmatch(name):
        raise Forbidden("this name cannot be of a folder of ours", code="unsafe_removal")
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            raise Forbidden("what lies there is not a folder", code="unsafe_removal")
        # `rmtree` with a descriptor never follows a link (shutil.rmtree.avoids_symlink_attacks).
        shutil.rmtree(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    finally:
        os.close(parent)
    return True


def private_folder(path: Path, mode: int = 0o700) -> None:
    """Makes a folder, or tightens one that is there."""
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def give(folder: Path, uid: int) -> None:
    """Hands a folder and what lies in it to a user (root only); links are left alone."""
    if os.geteuid() != 0 or uid == 0:
        return
    os.chown(folder, uid, -1, follow_symlinks=False)
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            if not entry.is_symlink():
                os.chown(entry.path, uid, -1, follow_symlinks=False)
