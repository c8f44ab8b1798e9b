# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Which sign a number carries: `+`, `-`, U+2212, an en dash used as minus, 负, minus, accounting parentheses.

A dash between two numbers is a range and a hyphen inside a word joins it; only a dash with nothing of the kind on its left
is a sign. `(5.0)` is minus five where a value is expected and a mere parenthesis where a claim has just been made.
"""

from __future__ import annotations

import re

from learngraph_kernel.evidence.numerals.reading import Reading
from learngraph_kernel.evidence.numerals.units import currency_before, read_suffix

SIGNS = "+-–"


def read_sign(text: str, reading: Reading, floor: int) -> None:
    """Sets sign, value and start of a reading from what stands round it; `floor` is where the number before ends."""
    start = reading.start
    if reading.start > floor and text[start - 1] in SIGNS and _is_sign(text, floor, start - 1):
        reading.signed, reading.start = True, start - 1
        if text[start - 1] != "+":
            reading.value = -reading.value
        outer = currency_before(text, floor, start - 1)
        if outer is not None and reading.unit is None:
            reading.start, reading.unit, reading.kind, reading.measured = outer[1], outer[0], "money", True
    elif text[start - 1 : start] == "负" and start > floor:
        reading.signed, reading.start, reading.value = True, start - 1, -reading.value
    elif match := re.search(r"\b(?:minus|negative) $", text[max(floor, start - 10) : start], re.IGNORECASE):
        reading.signed, reading.start, reading.value = True, start - len(match.group()), -reading.value
    inner = re.match(r"(?:US\$|[$€£¥]) ?[-+–]", text[reading.start : reading.start + 6])
    if inner and not reading.signed:
        reading.signed = True
        if "+" not in inner.group():
            reading.value = -reading.value
    _accounting(text, reading)


def _is_sign(text: str, floor: int, at: int) -> bool:
    """A dash is a sign only where no number, word or unit touches it from the left."""
    before = text[at - 1] if at > floor else (text[at - 1] if at else " ")
    if at == floor and at > 0 and not before.isspace() and before not in "(|":
        return False
    if before in " (\n|[=:~≈<>,;/\"'" or "\u4e00" <= before <= "\u9fff" or before in "，。、；“":
        if text[at] == "–" and before == " " and re.search(r"[0-9%] $", text[max(0, at - 2) : at]):
            return False
        return not ("\u4e00" <= before <= "\u9fff" and text[at] != "+" and floor == at)
    return before in "$€£¥" or at == 0


def _accounting(text: str, reading: Reading) -> None:
    """`(5.0)` is minus five where a value is expected, and a parenthesis where a claim has just been made."""
    start, end = reading.start, reading.end
    opening = text.rfind("(", max(0, start - 1), start + 5)
    if opening < 0 or text[end : end + 1] != ")" or reading.signed or reading.hedge:
        return
    inside = text[opening + 1 : end]
    if not re.fullmatch(r"(?:US\$|[$€£¥])?[0-9][0-9,]*(?:\.[0-9]+)?(?: ?(?:%|[kKmMB]|bn|million|billion))?", inside):
        return
    before = text[max(0, opening - 40) : opening]
    line = before.rsplit("\n", 1)[-1]
    expected = re.search(
        r"(?:^|[|:=$€£¥,]|\b(?:was|were|is|are|of|at|to|from|by|vs\.?|versus|and|against|than)|[为至到是达])\s*$",
        line,
        re.IGNORECASE,
    )
    label = (
        re.fullmatch(r"[^.,;!?0-9]{1,40}", line)
        and re.match(r"\)\s*(?:\n|$|\||[0-9(])", text[end : end + 4])
        and "." in inside
    )
    if not (expected or label) or (not re.search(r"[.,%$€£¥]", inside) and not re.search(r"[|:=$]\s*$", line)):
        return
    reading.value, reading.signed, reading.end = -reading.value, True, end + 1
    reading.start = min(start, opening)
    tail = read_suffix(text, end + 1, money=reading.kind == "money")
    if (
        tail.end > end + 1
        and reading.scale == 1
        and reading.kind in {"number", "money"}
        and tail.unit is None
        and tail.scale
    ):
        reading.value, reading.place, reading.scaled, reading.end = (
            reading.value * tail.scale,
            reading.place * tail.scale,
            True,
            tail.end,
        )
