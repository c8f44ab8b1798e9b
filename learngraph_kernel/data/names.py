"""Closest known name: the hint every "unknown …" message ends with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str:
    """A remedy sentence: the closest known name if one is near, else the whole list.

    Takes the name that was not found and the names that exist; returns text without a full stop.
    """
    names = sorted(known)
    if not names:
        return "none is declared"
    return near(name, names) or "known: " + ", ".join(names)


def near(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """A remedy sentence with the closest known name; None when none is near (`cutoff` is difflib's ratio)."""
    folded = {item.casefold(): item for item in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return f"did you mean {folded[found[0]]!r}?" if found else None
