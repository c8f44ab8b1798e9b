"""What tokens cost, where somebody said so: prices are per million tokens, money is exact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from learngraph_kernel.models.errors import ModelMisconfigured
from learngraph_kernel.models.events import Cost, Usage

PER = 1_000_000
CURRENCIES = ("USD", "CNY", "EUR")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens each; cached and cache-creation tokens cost as input where nothing else is given."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_creation: Decimal
    currency: str

    def cost(self, usage: Usage) -> Cost:
        """The price of one response."""
        amount = (
            self.input * usage.input
            + self.cached * usage.cached
            + self.cache_creation * usage.cache_creation
            + self.output * usage.output
        ) / PER
        return Cost(amount.normalize() if amount else Decimal(0), self.currency)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, where: str) -> Prices:
        """From `prices = {input = 0.15, output = 0.6, currency = "USD"}`. Raises ModelMisconfigured."""
        known = {"input", "output", "cached", "cache_creation", "currency"}
        for key in table:
            if key not in known:
                remedy = f"known: {', '.join(sorted(known))}"
                raise ModelMisconfigured(f"unknown price {key!r}", where=where, remedy=remedy)
        if table.get("currency", "USD") not in CURRENCIES:
            remedy = f"one of {', '.join(CURRENCIES)}"
            raise ModelMisconfigured(f"currency {table['currency']!r}", where=where, remedy=remedy)
        if not {"input", "output"} <= set(table):
            raise ModelMisconfigured("a price is missing", where=where, remedy="give `input` and `output`")
        prices = {key: _price(key, value, where) for key, value in table.items() if key != "currency"}
        return cls(
            input=prices["input"],
            output=prices["output"],
            cached=prices.get("cached", prices["input"]),
            cache_creation=prices.get("cache_creation", prices["input"]),
            currency=table.get("currency", "USD"),
        )


def _price(key: str, value: Any, where: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ModelMisconfigured(f"price {key!r} is {value!r}", where=where, remedy="give money per million tokens")
    return Decimal(str(value))
