"""Listing archives without extracting anything: names, sizes, and what is wrong with them.

Nothing is written, no entry of a ZIP file is decompressed for its listing, no nested archive is opened, so neither a
nested bomb nor an archive that contains itself has anything to unfold.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
from typing import BinaryIO

from learngraph_kernel.sandbox.inside.decompression import MAX_RATIO, Bomb, Inflating
from learngraph_kernel.sandbox.inside.findings import MAX_ITEMS, Details, Unreadable, Warnings, clean
from learngraph_kernel.sandbox.inside.kinds import kind_of_head

MAX_DIRECTORY = 8 << 20
MAX_ENTRIES = 10_000
MAX_UNPACKED = 1 << 30
_NESTED = re.compile(r"\.(zip|jar|whl|tar|t?gz|t?bz2?|t?xz|zst|7z|rar|xlsx|docx|pptx|iso|cab)$", re.I)
_DRIVE = re.compile(r"[A-Za-z]:")


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """The archive, after its directory was found to be of a bearable size. Raises Unreadable."""
    size = _directory_size(file)
    if size > MAX_DIRECTORY:
        raise Unreadable(f"the archive's directory has {size:,} bytes, at most {MAX_DIRECTORY:,} are read")
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error, UnicodeError) as error:
        raise Unreadable(f"the ZIP archive is damaged ({error})") from error


def list_zip(file: BinaryIO, warnings: Warnings) -> Details:
    """Names and sizes in a ZIP file. Raises Unreadable."""
    with open_zip(file) as archive:
        entries = archive.infolist()
        check_zip(entries, warnings)
        listed = [
            {"name": clean(entry.filename), "size": entry.file_size, "kind": _zip_kind(entry)}
            for entry in entries[:MAX_ITEMS]
        ]
    total = sum(entry.file_size for entry in entries)
    return {"entries": len(entries), "unpacked": total, "listed": listed}


def check_zip(entries: list[zipfile.ZipInfo], warnings: Warnings) -> None:
    """Notes what is wrong with the entries of a ZIP file."""
    names = Names(warnings)
    packed = unpacked = 0
    end = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        names.check(entry.orig_filename)
        if entry.header_offset < end:
            warnings.add("overlapping", "entries share the same compressed bytes", entry.filename)
        # A local header has 30 bytes and the name at least; the extra field may differ from the directory's.
        name_size = len(entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437", "replace"))
        end = max(end, entry.header_offset + 30 + name_size + entry.compress_size)
        packed += entry.compress_size
        unpacked += entry.file_size
        if entry.flag_bits & 1:
            warnings.add("encrypted", "entries are encrypted", entry.filename)
        if _zip_kind(entry) not in ("file", "folder"):
            warnings.add("special_entry", "a symbolic link or device; not followed", entry.filename)
        if entry.file_size > 1 << 20 and entry.file_size > MAX_RATIO * max(entry.compress_size, 1):
            warnings.add("bomb", f"unpacks to more than {MAX_RATIO} times its size", entry.filename)
    if entries and min(entry.header_offset for entry in entries) > 0:
        warnings.add("prefixed", "there are other data before the archive")
    _check_total(len(entries), unpacked, packed, warnings)


def list_tar(file: BinaryIO, kind: str, warnings: Warnings) -> Details:
    """Names and sizes in a TAR file, packed (`gzip`, `bzip2`, `xz`) or not (`tar`). Raises Unreadable."""
    file.seek(0)
    source = file if kind == "tar" else Inflating(file, kind)
    names = Names(warnings)
    listed: list[Details] = []
    count = total = 0
    try:
        with tarfile.open(fileobj=source, mode="r|", bufsize=64 << 10) as archive:
            for member in archive:
                count += 1
                total += max(member.size, 0)
                names.check(member.name)
                what = _tar_kind(member)
                if what not in ("file", "folder"):
                    target = f"{member.name} -> {member.linkname}"
                    warnings.add("special_entry", "a link or device; not followed", target)
                if member.mode & (stat.S_ISUID | stat.S_ISGID):
                    warnings.add("set_id", "entries ask for set-user-id rights", member.name)
                if len(listed) < MAX_ITEMS:
                    listed.append({"name": clean(member.name), "size": member.size, "kind": what})
                if count >= MAX_ENTRIES:
                    break
    except Bomb as error:
        warnings.add("bomb", str(error))
    except (tarfile.TarError, EOFError, ValueError, OverflowError, OSError, RecursionError) as error:
        if not count:
            raise Unreadable(f"the TAR archive is damaged ({error})") from error
        warnings.add("damaged", "the archive breaks off or is damaged")
    _check_total(count, total, os.fstat(file.fileno()).st_size, warnings)
    return {"entries": count, "unpacked": total, "listed": listed}


def describe_packed(file: BinaryIO, kind: str, warnings: Warnings) -> Details:
    """A gzip, bzip2 or xz file: a packed TAR is listed, anything else is measured. Raises Unreadable."""
    file.seek(0)
    packed = Inflating(file, kind)
    head = b""
    try:
        while len(head) < 1 << 16 and (chunk := packed.read((1 << 16) - len(head))):
            head += chunk
        inner = kind_of_head(head)
        if inner == "tar":
            return {"contains": "tar", **list_tar(file, kind, warnings)}
        if inner in ("gzip", "bzip2", "xz", "zip", "zstd", "7z", "rar"):
            warnings.add("nested", "an archive inside; not opened", inner)
        while packed.read(1 << 16):
            pass
    except Bomb as error:
        warnings.add("bomb", str(error))
        return {"contains": kind_of_head(head), "unpacked": None}
    return {"contains": inner, "unpacked": packed.produced}


class Names:
    """Judges the names in an archive."""

    def __init__(self, warnings: Warnings) -> None:
        self._warnings = warnings
        self._seen: set[str] = set()

    def check(self, name: str) -> None:
        """Notes a name that would lead out, hide something or overwrite another."""
        parts = re.split(r"[/\\]", name)
        if ".." in parts or name.startswith(("/", "\\", "~")) or _DRIVE.match(name) or "\\" in name:
            self._warnings.add("traversal", "names lead out of the folder they are unpacked to", name)
        if any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in name):
            self._warnings.add("hidden_characters", "names contain control or bidirectional characters", name)
        if _NESTED.search(name):
            self._warnings.add("nested", "an archive inside; not opened", name)
        key = unicodedata.normalize("NFKC", name).casefold().rstrip("/")
        if key in self._seen:
            self._warnings.add("same_name", "several entries have the same name, or differ only in case", name)
        if len(self._seen) < MAX_ENTRIES:
            self._seen.add(key)


def _check_total(count: int, unpacked: int, packed: int, warnings: Warnings) -> None:
    if count >= MAX_ENTRIES:
        warnings.add("many_entries", f"{MAX_ENTRIES:,} entries or more")
    if unpacked > MAX_UNPACKED or (unpacked > 1 << 20 and unpacked > MAX_RATIO * max(packed, 1)):
        warnings.add("bomb", f"claims to unpack to {unpacked:,} bytes")


def _zip_kind(entry: zipfile.ZipInfo) -> str:
    mode = entry.external_attr >> 16
    if entry.filename.endswith("/"):  # not is_dir, which fails for an empty name
        return "folder"
    if not stat.S_IFMT(mode) or stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "device"


def _tar_kind(member: tarfile.TarInfo) -> str:
    if member.isdir():
        return "folder"
    if member.isreg():
        return "file"
    return "link" if member.issym() or member.islnk() else "device"


def _directory_size(file: BinaryIO) -> int:
    """Bytes of a ZIP file's central directory, from its end record (APPNOTE 4.3.14 to 4.3.16)."""
    file.seek(0, os.SEEK_END)
    total = file.tell()
    start = max(0, total - 65_557)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise Unreadable("the ZIP archive has no directory; it is cut off")
    size: int = struct.unpack_from("<L", tail, at + 12)[0]
    locator = start + at - 20
    if locator >= 0:
        file.seek(locator)
        record = file.read(20)
        if record[:4] == b"PK\x06\x07":
            file.seek(min(struct.unpack_from("<Q", record, 8)[0], total))
            wide = file.read(56)
            if len(wide) == 56 and wide[:4] == b"PK\x06\x06":
                size = max(size if size != 0xFFFFFFFF else 0, struct.unpack_from("<Q", wide, 40)[0])
            else:  # zipfile looks right before the locator
                size = max(size, locator) if size == 0xFFFFFFFF else size
    file.seek(0)
    return size
