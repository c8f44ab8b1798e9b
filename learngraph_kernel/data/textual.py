"""Rows as a plain-text table: numbers to the right, wide (East Asian) characters counted as two."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_WIDEST = 60


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns and rows as aligned text; NULL is shown as an empty cell, long values are cut with `…`."""
    cells = [[_shown(value) for value in row] for row in rows]
    names = [_cut(name) for name in columns]
    texts = [[name, *(row[index] for row in cells)] for index, name in enumerate(names)]
    widths = [max(map(display_width, column)) for column in texts]
    right = [
        bool(rows) and all(value is None or _is_number(value) for value in (row[index] for row in rows))
        for index in range(len(names))
    ]
    lines = [_line(names, widths, right), "  ".join("─" * width for width in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in cells)])


def display_width(text: str) -> int:
    """Columns a terminal needs for a text."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return "" if value is None else _cut(str(value))


def _cut(text: str) -> str:
    # Line breaks and terminal control sequences in data must not reach the terminal.
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, numeric in zip(cells, widths, right, strict=True):
        space = " " * (width - display_width(cell))
        padded.append(space + cell if numeric else cell + space)
    return "  ".join(padded).rstrip()
