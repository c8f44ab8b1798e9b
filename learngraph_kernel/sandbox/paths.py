"""Which paths exist for an agent: relative ones below `inputs/`, `work/` or `outputs/`, spelled in one way.

Pure: a path is judged by its text alone. That the file system agrees (no link, no device, nothing outside) is checked
by `sandboxd.beneath` when the path is opened, in the same step, so that nothing can change in between.

A path is refused rather than repaired, since two readings of one spelling are what traversal tricks live on. The one
exception is Unicode: the name of a *new* file is brought to NFC, as most programs write it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import ClassVar

from learngraph_kernel.sandbox.refusals import PolicyRefused, printable

FOLDERS = ("inputs", "work", "outputs")
MAX_NAME_BYTES = 255  # NAME_MAX of every Linux file system
MAX_PATH_BYTES = 1024
MAX_DEPTH = 32

_DRIVE = re.compile(r"[A-Za-z]:")
# Invisible characters: control, format (bidi, zero-width), surrogate, line and paragraph separators, unassigned.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class PathRefused(PolicyRefused):
    """The path is not one that an agent may name."""

    code: ClassVar[str] = "path_refused"


def check_path(path: str, *, new: bool = False) -> str:
    """A path inside the workspace.

    Args:
        path: `inputs/…`, `work/…` or `outputs/…`, or one of the three themselves.
        new: the path is about to be made; its name is brought to NFC and must not mislead.

    Returns:
        The path as it is to be used.

    Raises:
        PathRefused: by the rule `absolute`, `drive`, `traversal`, `outside`, `invisible`, `backslash`, `too_long`,
            `too_deep`, `empty` or `misleading`.
    """
    if not isinstance(path, str) or not path:
        raise _refused("empty", "the path is empty", path)
    if "\0" in path or any(unicodedata.category(character) in _INVISIBLE for character in path):
        raise _refused("invisible", "the path contains control, format or undecodable characters", path)
    if "\\" in path:
        raise _refused("backslash", "the path contains a backslash", path)
    if path.startswith(("/", "~")):
        raise _refused("absolute", "the path is absolute", path)
    if _DRIVE.match(path):
        raise _refused("drive", "the path starts with a drive letter", path)
    if new:
        path = unicodedata.normalize("NFC", path)
    parts = path.split("/")
    if ".." in parts:
        raise _refused("traversal", "the path contains '..'", path)
    if "" in parts or "." in parts:
        raise _refused("empty", "the path contains an empty part or '.'", path)
    if parts[0] not in FOLDERS:
        raise _refused("outside", "the path is not below inputs/, work/ or outputs/", path)
    if len(parts) > MAX_DEPTH:
        raise _refused("too_deep", f"the path has more than {MAX_DEPTH} parts", path)
    if len(path.encode()) > MAX_PATH_BYTES or any(len(part.encode()) > MAX_NAME_BYTES for part in parts):
        raise _refused("too_long", f"the path is longer than {MAX_PATH_BYTES} bytes, or a name in it than 255", path)
    if new and any(part != part.strip() or part.endswith(".") for part in parts):
        raise _refused("misleading", "a name starts or ends with a blank, or ends with a point", path)
    return path


def check_deletable(path: str) -> str:
    """A path that may be deleted: below `work/`, not `work` itself. Returns it. Raises PathRefused."""
    path = check_path(path)
    if not path.startswith("work/"):
        raise PathRefused(
            "not_below_work",
            "only what lies below work/ may be deleted",
            place=printable(path),
            remedy="leave inputs/ and outputs/ as they are; work on a copy below work/",
            remedy_zh="只能删除 work/ 下的内容；请保留 inputs/ 与 outputs/，在 work/ 下的副本上操作",
        )
    return path


def collision_key(name: str) -> str:
    """Names with the same key are one file on a case-insensitive or normalising file system, or look alike."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def collides(name: str, others: Iterable[str]) -> str | None:
    """The other name that `name` would be confused with; None when there is none. The same name is no collision."""
    key = collision_key(name)
    return next((other for other in others if other != name and collision_key(other) == key), None)


def _refused(rule: str, reason: str, path: object) -> PathRefused:
    return PathRefused(
        rule,
        reason,
        place=printable(path if isinstance(path, str) else repr(path)),
        remedy="give a relative path such as work/data.csv, below inputs/, work/ or outputs/",
        remedy_zh="请使用 inputs/、work/ 或 outputs/ 下的相对路径，例如 work/data.csv",
    )
