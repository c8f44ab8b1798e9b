"""Semantic versions (semver.org 2.0.0): which ones are valid, and which is newer."""

from __future__ import annotations

import re

_NUMBER = r"(?:0|[1-9][0-9]*)"
_PRE = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_PRE}(?:\.{_PRE})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


def is_version(text: str) -> bool:
    """Whether `text` is a semantic version of at most 40 characters."""
    return len(text) <= 40 and _SEMVER.fullmatch(text) is not None


def precedence(version: str) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
    """A sort key: newer versions sort later (semver section 11; a pre-release comes before its release).

    Raises:
        ValueError: not a semantic version.
    """
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a semantic version")
    core = (int(match[1]), int(match[2]), int(match[3]))
    parts = match[4].split(".") if match[4] else []
    # Numeric identifiers compare as numbers and sort before words.
    key = tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
    return core, not parts, key
