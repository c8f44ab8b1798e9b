"""Reading a commit's tree and trusting nobody: every object is hashed against the name it was asked by.

Pure but for the reader it is handed. The commit's id vouches for the tree, the tree for its entries, the entries for
the files; so what `walk` yields is what the commit's author committed, complete, or an error says what is missing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from learngraph_kernel.sandbox.acquisition import GitLimits, GitRefused
from learngraph_kernel.sandbox.fetching import over

Reader: TypeAlias = Callable[[str, int], tuple[str, bytes] | None]
"""Takes an object's id and the size up to which it is wanted; returns its type and content, or None: missing."""

MAX_TREE_BYTES = 8 << 20
MAX_COMMIT_BYTES = 1 << 20
MAX_PATH = 1024
MAX_NAME = 255
LFS_SPEC = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")
_TREE_LINE = re.compile(rb"tree ([0-9a-f]{40})\n")
_REFUSED_MODES = {"120000": "a symbolic link", "160000": "a submodule"}
_FILE_MODES = {"100644": False, "100664": False, "100755": True}
_DOT_GIT = re.compile(r"\.git(?:modules)?|git~[0-9]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a tree: where, whether it is executable, and the id of its content."""

    path: str
    executable: bool
    object_id: str


def object_id(kind: str, content: bytes) -> str:
    """The SHA-1 name that git gives an object."""
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()


def walk(commit: str, read: Reader, limits: GitLimits) -> list[TreeFile]:
    """The files of a commit, sorted by path.

    Raises:
        GitRefused: something in the tree is not taken in, is missing or is damaged.
        LimitExceeded: files, depth, or the size of a tree.
    """
    content = _read(commit, "commit", read, MAX_COMMIT_BYTES, "the commit")
    matched = _TREE_LINE.match(content)
    if matched is None:
        raise GitRefused("the commit names no tree", where=commit)
    files: list[TreeFile] = []
    folders = 0

    def counted(name: str, limit: int) -> tuple[str, bytes] | None:
        """A tree that lists one folder many times, at every level, holds no file and never ends."""
        nonlocal folders
        folders += 1
        if folders > limits.files:
            raise over("files", f"the tree has more than {limits.files} folders")
        return read(name, limit)

    for file in _files(matched[1].decode(), "", 0, counted, limits):
        files.append(file)
        if len(files) > limits.files:
            raise over("files", f"the tree has more than {limits.files} files")
    folded = {file.path.casefold() for file in files}
    if len(folded) != len(files):
        raise GitRefused("two files have paths that differ only in case", where=commit)
    return sorted(files, key=lambda file: file.path)


def read_file(file: TreeFile, read: Reader, limits: GitLimits) -> bytes:
    """The verified content of a file. Raises GitRefused (also for a Git LFS pointer), LimitExceeded."""
    content = _read(file.object_id, "blob", read, limits.file_bytes, file.path)
    if content.startswith(LFS_SPEC):
        raise GitRefused(
            "the file is a Git LFS pointer, its content is elsewhere",
            where=file.path,
            remedy="download the file itself with its own URL",
        )
    return content


def _files(tree: str, folder: str, depth: int, read: Reader, limits: GitLimits) -> Iterator[TreeFile]:
    if depth > limits.depth:
        raise over("depth", f"folders are nested more than {limits.depth} deep")
    content = _read(tree, "tree", read, MAX_TREE_BYTES, folder or "the top folder")
    seen: set[str] = set()
    for mode, raw_name, entry in _entries(content, folder):
        name = _checked_name(raw_name, folder)
        if name in seen:
            raise GitRefused("the folder lists a name twice", where=folder + name)
        seen.add(name)
        path = folder + name
        if mode in _REFUSED_MODES:
            raise GitRefused(f"the tree holds {_REFUSED_MODES[mode]}", where=path)
        if mode == "40000":
            yield from _files(entry, path + "/", depth + 1, read, limits)
        elif mode in _FILE_MODES:
            yield TreeFile(path, _FILE_MODES[mode], entry)
        else:
            raise GitRefused(f"the tree holds something of mode {mode}", where=path)


def _entries(content: bytes, folder: str) -> Iterator[tuple[str, bytes, str]]:
    """Mode, name and id of each entry: `<mode> <name>\\0<20 bytes>`."""
    at = 0
    while at < len(content):
        blank = content.find(b" ", at, at + 8)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise GitRefused("the folder's listing is cut off", where=folder or "the top folder")
        mode, name = content[at:blank].decode("ascii", "replace"), content[blank + 1 : end]
        yield mode, name, content[end + 1 : end + 21].hex()
        at = end + 21


def _checked_name(raw: bytes, folder: str) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GitRefused("a file's name is not UTF-8", where=folder + ascii(raw)) from error
    bad = (
        name in ("", ".", "..")
        or _DOT_GIT.fullmatch(name.rstrip(" .")) is not None
        or not name.isprintable()
        or any(character in name for character in "/\\:")
        or len(raw) > MAX_NAME
        or len((folder + name).encode()) > MAX_PATH
    )
    if bad:
        raise GitRefused("a file's name is not accepted", where=ascii(folder + name)[1:-1][:MAX_PATH])
    return name


def _read(name: str, kind: str, read: Reader, limit: int, place: str) -> bytes:
    found = read(name, limit)
    if found is None:
        raise GitRefused("the tree is truncated: an object is missing", where=place, details={"object": name})
    actual, content = found
    if actual != kind or object_id(kind, content) != name:
        raise GitRefused("an object is not what its name says", where=place, details={"object": name})
    return content
