"""Reading a Debian package: an `ar` archive whose `data.tar` holds the files (deb(5)).

Maintainer scripts are not run; what they would have made (users, the links of merged /usr) is in the recipe.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator
from pathlib import Path

from learngraph_kernel.sandboxd.image.errors import LockError
from learngraph_kernel.sandboxd.image.layer import Entry, file, folder, symlink

_MAGIC = b"!<arch>\n"
_HEADER = 60
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Top folders that are links into /usr (merged /usr, as Debian 12 installs it)."""

_LEFT_OUT = (
    "usr/share/man/",
    "usr/share/info/",
    "usr/share/locale/",
    "usr/share/lintian/",
    "usr/share/bug/",
    "usr/share/applications/",
    "usr/share/pixmaps/",
    "usr/share/binfmts/",
    "usr/share/doc-base/",
    "usr/share/fontconfig/",
    "usr/share/fonts-droid-fallback/",
    "usr/lib/systemd/",
    "boot",
    "etc/fonts/",
    "etc/default/",
    "etc/update-motd.d/",
    "var/",
)


def read_deb(path: Path) -> Iterator[tuple[str, Entry]]:
    """The files of one package.

    Args:
        path: the `.deb` file; its hash has been checked.

    Yields:
        Path and entry, links of merged /usr already followed; documentation other than copyright files left out.

    Raises:
        LockError: not a Debian package, or one with entries an image layer must not have.
    """
    with tarfile.open(fileobj=io.BytesIO(_data_archive(path)), mode="r:*") as tar:
        for member in tar:
            name = _merged(posixpath.normpath(member.name).lstrip("/"))
            if name == "." or _left_out(name):
                continue
            yield name, _entry(tar, member, path)


def _data_archive(path: Path) -> bytes:
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise LockError("is not a Debian package", where=path.name, remedy="remove it from the cache and build again")
    offset = len(_MAGIC)
    while offset + _HEADER <= len(data):
        header = data[offset : offset + _HEADER]
        name, size = header[:16].decode().strip().rstrip("/"), int(header[48:58])
        offset += _HEADER
        if name.startswith("data.tar"):
            return data[offset : offset + size]
        offset += size + size % 2
    raise LockError("has no data.tar", where=path.name, remedy="remove it from the cache and build again")


def _merged(name: str) -> str:
    return f"usr/{name}" if name.split("/", 1)[0] in _MERGED else name


def _left_out(name: str) -> bool:
    if name.startswith("usr/share/doc/"):
        return not name.endswith("/copyright")  # licences want it kept
    return f"{name}/".startswith(_LEFT_OUT)


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> Entry:
    if member.isdir():
        return folder(mode=member.mode & 0o1777)
    if member.issym():
        return symlink(_merged_target(member))
    if member.isfile() or member.islnk():
        source = tar.extractfile(member)
        if source is not None:
            return file(source.read(), mode=0o755 if member.mode & 0o100 else 0o644)
    raise LockError(f"holds {member.name}, which is no file, folder or link", where=path.name)


def _merged_target(member: tarfile.TarInfo) -> str:
    """A relative link that climbs out of /lib or /bin climbs one further now that these lie in /usr."""
    top = posixpath.normpath(member.name).lstrip("/").split("/", 1)[0]
    if top not in _MERGED or member.linkname.startswith("/"):
        return member.linkname
    folder_of = posixpath.dirname("/" + posixpath.normpath(member.name).lstrip("/"))
    return "/" + _merged(posixpath.normpath(posixpath.join(folder_of, member.linkname)).lstrip("/"))
