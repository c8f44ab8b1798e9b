"""What reading a number in prose yields.

A `Numeral` is a claim about a value: where it stands in the text, the value and unit it states, the interval the
wording means (rounding by the digits written, ranges, hedges), and whether it is a conclusion at all. Everything
downstream (bare-number check, audit) works on these and never looks at the text again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Numeral:
    """One number as it stands in a text.

    Attributes:
        text: the exact characters, including sign, currency, scale and unit.
        start: offset of the first character, in code points.
        end: offset after the last character.
        value: the stated value with scale applied (`1.5亿` → 150000000, `8.1 %` → 8.1 with unit `%`); for a range its
            midpoint; None only where `conclusion` is False and no single value makes sense.
        low: least value the wording admits, inclusive (`8.1 %` → 8.05).
        high: greatest value the wording admits; equal to `low` for an exact count.
        unit: canonical: `%`, `‰`, `bp`, `pp` (percentage points), `x` (new : old), ISO 4217 for currency (`CNY`,
            `USD`, …), another unit word as written (`km`, `件`), or None.
        kind: what sort of number.
        direction: carried by a verb ("fell 8.1 %" → down) or by 增长/下降; None when the text gives none.
        signed: the text itself wrote a sign or accounting parentheses.
        hedge: `about`, `over`, `under`, `at_least`, `at_most` or None.
        conclusion: False for dates, ordinals, list numbers, identifiers, citations, code, idioms, …
        reason: why it is not a conclusion (`date`, `time`, `ordinal`, `list_number`, `version`, `identifier`,
            `phone`, `citation`, `code`, `idiom`, …); None for a conclusion.
    """

    text: str
    start: int
    end: int
    value: Decimal | None
    low: Decimal | None
    high: Decimal | None
    unit: str | None = None
    kind: Literal["number", "percent", "points", "multiple", "fraction", "money", "range"] = "number"
    direction: Direction | None = None
    signed: bool = False
    hedge: Literal["about", "over", "under", "at_least", "at_most"] | None = None
    conclusion: bool = True
    reason: str | None = None
