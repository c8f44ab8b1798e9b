"""Reading one table cell as a number, strictly.

A cell is either wholly a number (with its sign, separators, scale and unit) or it is text. Prose is not read here: that
is `evidence.numerals`. Strict means that `00123`, `2024-01-05`, `12 Monkeys` and `1.2.3` are text, and that `n/a`, `-`
and an empty cell are no value.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from learngraph_kernel.evidence.audit.units import CURRENCIES, PROPORTIONS, SCALES, known


@dataclass(frozen=True, slots=True)
class CellNumber:
    """A cell's number.

    Attributes:
        value: with the scale written in the cell applied (`1.2m` → 1200000).
        step: value of one unit of the last digit written (`1.2m` → 100000), so the cell means value ± step / 2.
        unit: canonical unit written in the cell, or None.
        scaled: the cell states its own scale, so none from a header applies.
        plain_integer: written as digits alone, as years and row numbers are.
    """

    value: Decimal
    step: Decimal
    unit: str | None = None
    scaled: bool = False
    plain_integer: bool = False


class NoUnit(Exception):
    """Internal signal: the words beside the digits are no unit, so the cell is text."""


_SPACES = "\u00a0\u2009\u202f\u2007"
_CURRENCY = "|".join(
    sorted((re.escape(name) for name in CURRENCIES if not name.isascii() or len(name) <= 3), key=len, reverse=True)
)
_SCALE = "|".join(
    sorted(
        (re.escape(word) for word in SCALES if not word.endswith("000s") and "000" not in word), key=len, reverse=True
    )
)
_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?|\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}(?!\d)|\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?"
)
_CELL = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+-])?\s*(?P<before>{_CURRENCY})?\s*(?P<sign2>[+-])?\s*(?P<number>{_NUMBER})"
    rf"\s*(?P<scale>(?:{_SCALE})(?![a-z0-9²]))?\s*(?P<unit>[^\s\d(),+-][^\d(),+]*?)?\s*(?P<close>\))?\s*(?P<after>%)?"
)
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}|\d{1,3}(?:[ '’]\d{3})+,\d+")


@lru_cache(maxsize=65536)
def parse_cell(text: str) -> CellNumber | None:
    """The number a cell holds.

    Takes the cell's text. Returns None for an empty cell, a no-value mark (`n/a`, `-`, `--`, `…`) and for any text that
    is not wholly one number.
    """
    plain = unicodedata.normalize("NFKC", text).strip()
    if not any(character.isdigit() for character in plain):
        return None
    if plain.isascii() and plain.isdigit():
        return _digits(plain)
    for space in _SPACES:
        plain = plain.replace(space, " ")
    plain = re.sub("[\u2212\u2013\u2010\u2011]", "-", plain).lower()
    match = _CELL.fullmatch(plain)
    return None if match is None else _from_match(match)


def _digits(plain: str) -> CellNumber | None:
    if len(plain) > 1 and plain[0] == "0":
        return None
    return CellNumber(Decimal(plain), Decimal(1), plain_integer=True)


def _from_match(match: re.Match[str]) -> CellNumber | None:
    signs = [sign for sign in (match["sign"], match["sign2"]) if sign]
    if len(signs) > 1 or bool(match["open"]) != bool(match["close"]) or (match["open"] and signs):
        return None
    try:
        unit = _unit_of(match)
    except NoUnit:
        return None
    digits = _ascii_number(match["number"])
    if re.match(r"0\d", digits):
        return None
    value = Decimal(digits)
    exponent = value.as_tuple().exponent
    step = Decimal(10) ** min(int(exponent), 0 if "e" not in digits else int(exponent))
    scale = SCALES[match["scale"]] if match["scale"] else Decimal(1)
    negative = bool(match["open"]) or signs == ["-"]
    return CellNumber((-value if negative else value) * scale, step * scale, unit, bool(match["scale"]))


def _unit_of(match: re.Match[str]) -> str | None:
    """The canonical unit, None when there is none. Raises NoUnit when what stands there is none (the cell is text)."""
    found: set[str] = set()
    if match["before"]:
        found.add(CURRENCIES[match["before"]])
    if match["after"]:
        found.add("%")
    if match["unit"]:
        unit = known(match["unit"])
        if unit is None:
            raise NoUnit
        found.add(unit)
    if len(found) > 1:
        raise NoUnit
    unit = next(iter(found), None)
    if unit in PROPORTIONS and match["scale"]:
        raise NoUnit
    return unit


def _ascii_number(number: str) -> str:
    if _CONTINENTAL.fullmatch(number):
        return re.sub(r"[. '’]", "", number).replace(",", ".")
    return re.sub(r"[, '’]", "", number)
