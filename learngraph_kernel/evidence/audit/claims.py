"""What a number in the text claims, in the terms of a table: unit, interval, sign.

A `Numeral` is how the words read; a `Claim` adds what its sentence says about it: whether a verb of direction carries
the sign, whether the number is a level ("fell to 5,200") or a change ("fell by 5,200"), and how exactly it is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from learngraph_kernel.evidence.audit import cues
from learngraph_kernel.evidence.audit.sentences import Sentence
from learngraph_kernel.evidence.audit.units import FRACTION, MEASURES, MONEY, PROPORTIONS, canonical
from learngraph_kernel.evidence.numerals.numeral import Numeral

Sign = Literal["up", "down", "loss", None]
HALF = Decimal("0.5")


@dataclass(frozen=True, slots=True)
class Claim:
    """A number as something a table can confirm or not.

    Attributes:
        numeral: as read.
        unit: canonical.
        low, high: the interval the wording means, unsigned by direction.
        sign: `up` or `down` when a verb carries the sign, `loss` after "a loss of", None when the number says it
            itself.
        level: the number is where something stands, not by how much it changed.
        integer: stated as a whole number without scale; then a cell with decimals is compared after rounding.
        width: the room the statement leaves, never less than one unit of its last digit.
        loose: a range or hedge, so that the interval is no mere rounding.
    """

    numeral: Numeral
    unit: str | None
    low: Decimal
    high: Decimal
    sign: Sign
    level: bool
    integer: bool
    width: Decimal
    loose: bool


def make_claim(numeral: Numeral, sentence: Sentence) -> Claim | None:
    """The claim a conclusion makes in its sentence; None when the numeral has no value."""
    here = numeral.start - sentence.start
    before = sentence.text[max(0, here - 80) : here]
    if cues.MADE_UP_BEFORE.search(before):
        numeral = replace(numeral, direction=None)
    if numeral.value is None:
        return None
    low = numeral.value if numeral.low is None else numeral.low
    high = numeral.value if numeral.high is None else numeral.high
    loose = numeral.kind == "range" or numeral.hedge is not None
    if numeral.text.endswith("折") and not loose:
        low, high = numeral.value - HALF, numeral.value + HALF  # a price cut is agreed, not estimated
    exact = not loose and numeral.value == numeral.value.to_integral_value() and high - low in (0, 1)
    level = cues.LEVEL_BEFORE.search(before) is not None and cues.BY_BEFORE.search(before) is None
    sign: Sign = None if numeral.signed or level else numeral.direction
    if sign is None and not numeral.signed and cues.LOSS_BEFORE.search(before):
        sign = "loss"
    width = max(high - low, Decimal(1) if exact else Decimal(0))
    if exact:
        low = high = numeral.value
    return Claim(numeral, canonical(numeral.unit), low, high, sign, level, exact, width, loose)


def as_percentage(claim: Claim) -> Claim:
    """A fraction (`a third`, 一半) as the percentage it also is."""
    low, high, width = claim.low * 100, claim.high * 100, claim.width * 100
    return replace(claim, unit="%", low=low, high=high, width=width, integer=False)


def ends(claim: Claim) -> tuple[Claim, Claim]:
    """A range as two claims, one for each end, each with the rounding its digits show."""
    return _end(claim, claim.low), _end(claim, claim.high)


def _end(claim: Claim, value: Decimal) -> Claim:
    exponent = value.as_tuple().exponent
    half = HALF * Decimal(10) ** min(int(exponent), 0)
    whole = value == value.to_integral_value()
    low, high = (value, value) if whole else (value - half, value + half)
    return replace(claim, low=low, high=high, integer=whole, width=2 * half, loose=False)


def unit_factors(unit: str | None) -> list[tuple[str | None, Decimal]] | None:
    """The cell units a claim may be compared with, each with the factor from claim to cell.

    None means: any cell that is no proportion (a bare number in prose).
    """
    one = Decimal(1)
    if unit is None:
        return None
    if unit == "%":
        return [("%", one), (FRACTION, Decimal("0.01"))]
    if unit == "‰":
        return [("‰", one), (FRACTION, Decimal("0.001"))]
    if unit == "pp":
        return [("pp", one), ("bp", Decimal(100))]
    if unit == "bp":
        return [("bp", one), ("pp", Decimal("0.01"))]
    if unit == "x":
        return [("x", one), (FRACTION, one)]
    return [(unit, one), (None, one)]


def compatible(claim_unit: str | None, fact_unit: str | None) -> Decimal | None:
    """Factor from the claim's unit to the cell's, or None when they cannot be compared."""
    factors = unit_factors(claim_unit)
    if factors is None:
        return Decimal(1) if fact_unit not in PROPORTIONS or fact_unit == FRACTION else None
    return next((factor for unit, factor in factors if unit == fact_unit), None)


def agrees(claim_unit: str | None, fact_unit: str | None) -> bool:
    """Both sides state a unit and it is the same (a percentage over a fraction counts)."""
    return claim_unit is not None and fact_unit is not None and compatible(claim_unit, fact_unit) is not None


def thing(unit: str | None) -> bool:
    """Whether a unit is a word for things counted (flights, 件), not money, measure or proportion."""
    return unit is not None and unit not in MONEY and unit not in MEASURES and unit not in PROPORTIONS


def matches(claim: Claim, value: Decimal, factor: Decimal, *, falls: bool, outflow: bool = False) -> bool:
    """Whether a cell's value is what the claim says.

    Takes the cell's value, the factor from `compatible`, and whether the cell's label names a fall (then a positive
    cell is a fall) or an outflow (then the cell's minus may be left out). A wrong sign never matches.
    """
    if claim.sign in ("down", "loss"):
        return _within(claim, -value, factor) or (falls and _within(claim, value, factor))
    if claim.sign == "up" and falls:
        return False
    if outflow and value < 0 and claim.sign is None and not claim.numeral.signed:
        value = -value
    return _within(claim, value, factor)


def _within(claim: Claim, value: Decimal, factor: Decimal) -> bool:
    low, high = claim.low * factor, claim.high * factor
    if low <= value <= high:
        return True
    if not claim.integer:
        return False
    if factor == 1 and value == value.to_integral_value():
        return False
    return low - HALF * factor <= value <= high + HALF * factor
