"""Counting the members of a table: "three airports" rests on the table's three airports.

Only a whole number that is said of the very thing an axis lists counts: the heading of a label column (airport, 城市),
or the length of the periods that an axis runs over (three years).
"""

from __future__ import annotations

from typing import Any

from learngraph_kernel.evidence.audit.claims import Claim
from learngraph_kernel.evidence.audit.labels import Axis
from learngraph_kernel.evidence.audit.tables import Facts
from learngraph_kernel.evidence.audit.words import words

_PERIODS = {"y": "year", "w": "week", "m": "month", "q": "quarter", "d": "day"}


def find_counts(claim: Claim, facts: Facts) -> list[dict[str, Any]]:
    """Candidates (`how` is `count`) for a claim that counts the labels of an axis; empty when there are none."""
    if not claim.integer or claim.unit is None or claim.numeral.direction is not None:
        return []
    found = []
    for axis in facts.axes:
        if axis.ref and len(axis.rank) == claim.low and claim.unit in _things(axis):
            found.append({"ref": axis.ref, "value": len(axis.rank), "how": "count"})
    return found


def _things(axis: Axis) -> frozenset[str]:
    """What an axis lists, in the words a claim's unit may use."""
    if axis.ordered:
        kinds = {_finest(label.text) for label in axis.labels if label.id in axis.rank}
        return frozenset(kinds) if len(kinds) == 1 else frozenset()
    heading = axis.title.strip().lower()
    stems = {word.word for word in words(heading, label=True)}
    return frozenset({heading, *stems, *(heading[:1] if len(heading) == 2 and not heading.isascii() else "")})


def _finest(text: str) -> str:
    """The finest period in a label: `2024` → year, `Q1 2024` → quarter."""
    kinds = {word.word[0] if word.word[0] in "wmqd" else "y" for word in words(text, label=True)}
    return next((_PERIODS[kind] for kind in "dwmqy" if kind in kinds), "")
