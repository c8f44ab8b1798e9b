"""Identity: which cells hold the very number that the text states, and does the text speak of those cells?

Values are found by bisection over sorted cells per unit. A cell whose value fits must also not be contradicted: if the
sentence names a row, column or table, only cells under that name ground the number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from learngraph_kernel.evidence.audit.claims import HALF, Claim, agrees, compatible, ends, matches, thing, unit_factors
from learngraph_kernel.evidence.audit.sentences import Attribution
from learngraph_kernel.evidence.audit.tables import Fact, Facts, Table
from learngraph_kernel.evidence.audit.units import FRACTION, PROPORTIONS

SMALL_INTEGER = 12
"""Bare integers up to this are in almost any table; they need a label or a unit to be grounded."""
LOOSE_WIDTH = Decimal("0.1")
"""A hedge or range wider than this share of its value needs a label to be grounded."""

Rejection = Literal["label", "small_integer", "level", "loose"]
"""Why a cell that holds the number does not ground it."""

Named = Mapping[int, Attribution]
"""By axis id: the labels that the text attaches to the number."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A cell whose value fits.

    Attributes:
        fact: the cell.
        support: on how many axes the text names the cell's label.
        rejected: why it does not ground the number, or None.
    """

    fact: Fact
    support: int
    rejected: Rejection | None


class ValueIndex:
    """Cells sorted by value, one list per unit."""

    def __init__(self, facts: Facts) -> None:
        grouped: dict[str | None, list[Fact]] = defaultdict(list)
        for fact in facts.facts:
            grouped[fact.unit].append(fact)
        self._facts = {unit: sorted(group, key=lambda fact: fact.value) for unit, group in grouped.items()}
        self._values = {unit: [fact.value for fact in group] for unit, group in self._facts.items()}

    def fitting(self, claim: Claim) -> Iterator[Fact]:
        """All cells that the claim's value, unit and sign fit."""
        factors = unit_factors(claim.unit)
        if factors is None:
            factors = [(unit, Decimal(1)) for unit in self._values if unit not in PROPORTIONS or unit == FRACTION]
        margin = HALF if claim.integer else Decimal(0)
        for unit, factor in factors:
            if unit not in self._values:
                continue
            low, high = (claim.low - margin) * factor, (claim.high + margin) * factor
            spans = dict.fromkeys([(low, high), (-high, -low)] if claim.sign != "up" else [(low, high)])
            for lower, upper in spans:
                yield from self._between(unit, lower, upper, claim, factor)

    def _between(self, unit: str | None, low: Decimal, high: Decimal, claim: Claim, factor: Decimal) -> Iterator[Fact]:
        values, facts = self._values[unit], self._facts[unit]
        for fact in facts[bisect_left(values, low) : bisect_right(values, high)]:
            if matches(claim, fact.value, factor, falls=fact.falls, outflow=fact.outflow):
                yield fact


def find_identities(claim: Claim, facts: Facts, index: ValueIndex, named: Named) -> list[Identity]:
    """The fitting cells, best supported first, each with the reason if it does not count.

    Both ends of a range ("between 9.3 and 15.1 minutes") must be cells: some cell inside it is no ground.
    """
    if claim.numeral.kind == "range" and claim.low < claim.high:
        least, greatest = (_point_identities(end, facts, index, named) for end in ends(claim))
        if least and greatest and least[0].rejected is None and greatest[0].rejected is None:
            return [each for each in (*least, *greatest) if each.rejected is None]
        return [replace(each, rejected=each.rejected or "loose") for each in (*least, *greatest)]
    return _point_identities(claim, facts, index, named)


def _point_identities(claim: Claim, facts: Facts, index: ValueIndex, named: Named) -> list[Identity]:
    found = list(dict.fromkeys(index.fitting(claim)))
    if not found:
        return []
    elsewhere = _named_elsewhere(claim, facts, named)
    identities = []
    for fact in found:
        table = facts.tables[fact.table]
        support = _support(fact, table, facts, named)
        rejected: Rejection | None = None
        if _contradicted(fact, table, facts, named) or (support == 0 and elsewhere - {fact.table}):
            rejected = "label"
        elif _small(claim) and not _small_is_supported(claim, fact, table, named, support):
            rejected = "small_integer"
        elif _change_over_level(claim, fact):
            rejected = "level"
        elif claim.loose and support == 0 and not _tight(claim, found):
            rejected = "loose"
        identities.append(Identity(fact, support, rejected))
    return sorted(identities, key=lambda each: (each.rejected is not None, -each.support, each.fact.index))


def _support(fact: Fact, table: Table, facts: Facts, named: Named) -> int:
    support = sum(
        1
        for axis, label in zip(table.axes, fact.labels, strict=True)
        if axis.id in named and label in named[axis.id].labels
    )
    own = named.get(facts.table_axis.id)
    return support + (own is not None and facts.table_axis.labels[fact.table].id in own.labels)


def _contradicted(fact: Fact, table: Table, facts: Facts, named: Named) -> bool:
    for axis, label in zip(table.axes, fact.labels, strict=True):
        attribution = named.get(axis.id)
        if attribution is None or label in attribution.labels:
            continue
        if not (label >= 0 and facts.labels[label].changes and attribution.labels <= axis.latest):
            return True  # a column of changes says them of the last period
    attribution = named.get(facts.table_axis.id)
    if attribution is None:
        return False
    tables = {place for place, label in enumerate(facts.table_axis.labels) if label.id in attribution.labels}
    return fact.table not in tables and any(
        facts.tables[place].headers == table.headers and table.headers for place in tables
    )


def _named_elsewhere(claim: Claim, facts: Facts, named: Named) -> set[int]:
    """Tables in which the text names a cell by row and column, and that cell says something else."""
    found: set[int] = set()
    for table in facts.tables:
        sets = []
        for axis in table.axes:
            attribution = named.get(axis.id)
            if attribution is not None:
                sets.append(set().union(*(table.by_label[label] for label in attribution.labels)))
        if len(sets) < 2:
            continue
        cells = [facts.facts[place] for place in set.intersection(*sets)]
        comparable = [(cell, factor) for cell in cells if (factor := compatible(claim.unit, cell.unit)) is not None]
        if comparable and not any(
            matches(claim, cell.value, factor, falls=cell.falls, outflow=cell.outflow) for cell, factor in comparable
        ):
            found.add(table.index)
    return found


def _small(claim: Claim) -> bool:
    return claim.integer and abs(claim.low) <= SMALL_INTEGER and (claim.unit is None or thing(claim.unit))


def _small_is_supported(claim: Claim, fact: Fact, table: Table, named: Named, support: int) -> bool:
    if agrees(claim.unit, fact.unit):
        return True
    if claim.unit is None:
        return support > 0
    return any(
        axis.measure and axis.id in named and label in named[axis.id].labels
        for axis, label in zip(table.axes, fact.labels, strict=True)
    )


def _change_over_level(claim: Claim, fact: Fact) -> bool:
    """ "Rose 20 %" says a change; a cell that holds a rate of 20 % is none."""
    return claim.unit in ("%", "‰") and claim.sign == "up" and not fact.changes


def _tight(claim: Claim, found: list[Fact]) -> bool:
    middle = abs(claim.low + claim.high) / 2
    return claim.high - claim.low <= LOOSE_WIDTH * middle and len({fact.value for fact in found}) == 1
