"""What one turn may use: fixed when it starts, kept when it is resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion

WARN_AT = 0.8
"""Share of a limit at which the turn warns, once."""
COMPACT_AT, WIND_DOWN_AT = 0.60, 0.85
"""Shares of the context window."""
DEFAULT_WINDOW = 128_000
"""Tokens, where the capabilities do not say."""
STALE_STEPS = 3
"""Steps without anything new before the turn winds down."""


class BadLimits(BadInput):
    """A limit of a turn is none."""

    code = "bad_turn_limits"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one turn.

    Attributes:
        steps: model calls.
        calls: tool calls.
        tokens: of all model calls together, in and out.
        money: amount per currency (ISO 4217); a currency that is not named is not limited.
        seconds: wall time, waiting for people not counted.
        repairs: how often an answer goes back for its citations.
    """

    steps: int = 50
    calls: int = 200
    tokens: int = 2_000_000
    money: Mapping[str, Decimal] = dataclasses.field(default_factory=dict)
    seconds: float = 1_800.0
    repairs: int = 1

    def as_json(self) -> dict[str, Any]:
        """As the event log keeps them."""
        body = dataclasses.asdict(self)
        return {**body, "money": {currency: format(amount, "f") for currency, amount in self.money.items()}}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Limits:
        """From a log or from settings; what is not named has its default. Raises BadLimits."""
        known = {field.name for field in dataclasses.fields(cls)}
        for key, value in body.items():
            if key not in known:
                raise BadLimits(f"there is no limit {key!r}", remedy=suggestion(key, known, kind="limits"))
            if key != "money" and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
                raise BadLimits(f"limit {key!r} is {value!r}", remedy="give a number that is not negative")
        return cls(**{**body, "money": _money(body.get("money", {}))})


def _money(body: Any) -> dict[str, Decimal]:
    try:
        amounts = {str(currency): Decimal(str(amount)) for currency, amount in dict(body).items()}
    except (InvalidOperation, ValueError, TypeError) as error:
        raise BadLimits("the limit on money is no amount", remedy='give {"USD": "0.50"}') from error
    if any(not amount.is_finite() or amount < 0 for amount in amounts.values()):
        raise BadLimits("the limit on money is no amount", remedy='give {"USD": "0.50"}')
    return amounts
