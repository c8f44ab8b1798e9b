"""Comparing versions: Debian's (deb-version(7)) and upstream's (semantic, with pre-releases)."""

from __future__ import annotations

import re
from typing import TypeAlias

Key: TypeAlias = tuple[object, ...]


def debian_key(version: str) -> Key:
    """A sort key for a Debian version: epoch, upstream version, revision; `~` sorts before the end."""
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return (int(epoch), _part(upstream), _part(revision))


def _part(text: str) -> Key:
    """Non-digits and numbers in turn, as dpkg compares them."""
    pieces = re.findall(r"([^0-9]*)([0-9]*)", text)
    return tuple((tuple(map(_order, [*letters, ""])), int(digits or 0)) for letters, digits in pieces)


def _order(letter: str) -> int:
    if letter == "~":
        return -1
    if letter == "":
        return 0
    return ord(letter) if letter.isalpha() else ord(letter) + 256


def upstream_key(version: str) -> Key:
    """A sort key for an upstream version (`1.2.8`, `v1.0.0-rc95`); what a distribution appends does not count."""
    match = re.match(r"v?(\d+(?:\.\d+)*)(?:[-~.]?(rc|beta|alpha)[.-]?(\d+))?", version)
    if match is None:
        return ((), 0, 0)
    numbers = tuple(map(int, match[1].split(".")))
    numbers += (0,) * (3 - len(numbers))
    stage = {"alpha": -3, "beta": -2, "rc": -1}.get(match[2] or "", 0)
    return (numbers, stage, int(match[3] or 0))
