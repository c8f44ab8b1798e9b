"""Files that came from outside and are pinned by hash: the `[acquired.NAME]` tables of learngraph.toml.

`learngraph sandbox acquire URL --as NAME` writes an entry; `lg.acquired("NAME")` gives a notebook the bytes of exactly
that hash, read-only. What the URL serves tomorrow changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion

KINDS = ("file", "image", "git")
_KEYS = frozenset({"kind", "url", "sha256", "commit", "receipt"})
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class BadAcquired(BadInput):
    """An `[acquired.NAME]` table that cannot be used as it is."""

    code = "bad_acquired"


class UnknownAcquired(BadInput):
    """The workspace has taken in nothing of that name."""

    code = "unknown_acquired"


@dataclass(frozen=True, slots=True)
class Acquired:
    """One `[acquired.NAME]` table.

    Attributes:
        kind: `file`, `image` or `git`.
        url: where it came from.
        sha256: the artifact; of `git` the manifest, which names every file.
        commit: of `git`.
        receipt: id of the receipt of its download.
        where: file and line, for messages.
    """

    name: str
    kind: str
    url: str
    sha256: str
    commit: str | None = None
    receipt: str | None = None
    where: str = "learngraph.toml"


def parse_acquired(tables: Mapping[str, Any], place: Callable[..., str]) -> dict[str, Acquired]:
    """The entries by name.

    Args:
        tables: the `acquired` table as written.
        place: gives `file:line` of a path of keys.

    Raises:
        BadAcquired: an unknown or missing key, or a hash that is none; with the place.
    """
    return {name: _entry(name, table, place) for name, table in tables.items()}


def _entry(name: str, table: Any, place: Callable[..., str]) -> Acquired:
    where = place("acquired", name)
    if not isinstance(table, Mapping):
        raise BadAcquired(f"acquired {name!r} must be a table", where=where, remedy=f"write [acquired.{name}]")
    for key, value in table.items():
        here = place("acquired", name, key)
        if key not in _KEYS:
            raise BadAcquired(f"unknown key {key!r}", where=here, remedy=suggestion(key, _KEYS))
        if not isinstance(value, str):
            raise BadAcquired(f"`{key}` of acquired {name!r} must be a text", where=here)
    for key in ("kind", "url", "sha256"):
        if key not in table:
            raise BadAcquired(
                f"acquired {name!r} has no `{key}`", where=where, remedy="learngraph sandbox acquire writes the table"
            )
    if table["kind"] not in KINDS:
        raise BadAcquired(f"kind {table['kind']!r} of acquired {name!r}", where=where, remedy=", ".join(KINDS))
    if not _SHA256.match(table["sha256"]):
        raise BadAcquired(f"`sha256` of acquired {name!r} is no hash", where=where, remedy="64 lower-case hex digits")
    return Acquired(
        name, table["kind"], table["url"], table["sha256"], table.get("commit"), table.get("receipt"), where
    )
