"""What the parts of the reader hand to each other: a number being read, before its interval is settled.

A `Reading` grows in steps (digits or words, then scale, unit, sign, range, hedge, direction); an `Excluded` is final.
Offsets are those of the original text, because folding (see `scanner`) never changes a length.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from learngraph_kernel.evidence.numerals.numeral import Direction

Kind = Literal["number", "percent", "points", "multiple", "fraction", "money", "range"]
Form = Literal["digits", "words", "fraction", "multiple"]
Hedge = Literal["about", "over", "under", "at_least", "at_most"]

ZERO = Decimal(0)
ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number as written, without sign or unit.

    Attributes:
        end: offset after it.
        value: exact, non-negative.
        place: worth of the last written digit (`8.1` → 0.1, `1.5亿` → 0.1亿, `1,200` → 1).
        scaled: a scale word of a thousand or more was used, so that the last place is a rounding even in an integer.
        form: how it was written.
        hedge: an infix hedge (`两千余`, `20多万`).
        room: for an infix hedge, how far above the value it reaches.
    """

    end: int
    value: Decimal
    place: Decimal
    scaled: bool = False
    form: Form = "digits"
    hedge: Hedge | None = None
    room: Decimal | None = None


@dataclass(slots=True)
class Reading:
    """A conclusion in the making: an amount with its surroundings."""

    start: int
    end: int
    value: Decimal
    place: Decimal
    scaled: bool
    form: Form
    unit: str | None = None
    kind: Kind = "number"
    measured: bool = False
    signed: bool = False
    hedge: Hedge | None = None
    room: Decimal | None = None
    direction: Direction | None = None
    scale: Decimal = ONE
    bounds: tuple[Decimal, Decimal] | None = None


@dataclass(frozen=True, slots=True)
class Excluded:
    """A number that is no conclusion, and why."""

    start: int
    end: int
    reason: str
    value: Decimal | None = None
