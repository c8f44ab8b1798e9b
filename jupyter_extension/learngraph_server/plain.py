"""JSON that can be stored and given back: what a parser takes is more than what every later reader can take."""

from __future__ import annotations

import math
from typing import Any

DEEPEST = 40
"""Levels of nesting; a value near the interpreter's own limit could be stored once and then never be listed again."""


def problem(value: Any) -> str | None:
    """What keeps a parsed value from being plain JSON (depth, Infinity, lone surrogates, NUL), or None."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item, *item.values()]
            elif isinstance(item, list):
                below += item
            elif isinstance(item, float) and not math.isfinite(item):
                return "a number is too large"
            elif isinstance(item, str) and ("\0" in item or any("\ud800" <= sign <= "\udfff" for sign in item)):
                return "a text has a sign that is no Unicode text"
        if not below:
            return None
        level = below
    return f"it is nested more than {DEEPEST} levels deep"
