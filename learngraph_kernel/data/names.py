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
    folded = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean {folded[near[0]]!r}?"
    return "known: " + ", ".join(names)
