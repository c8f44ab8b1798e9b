"""Lines of cells that differ on one axis alone: the weeks of one airport, the airports of one week.

Lines are laid out once per table and axis and then found by label, so that a number whose sentence names its cells
costs no walk through the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from learngraph_kernel.evidence.audit.tables import Fact, Facts, Table
from learngraph_kernel.evidence.audit.units import FRACTION

Context: TypeAlias = Mapping[int, frozenset[int]]
"""By axis id: the labels to keep to."""


@dataclass(slots=True)
class Line:
    """Cells along one axis, in its order, totals apart.

    Attributes:
        place: position of the axis among the table's axes.
        facts: the cells.
        where: positions of each label's cells in `facts`.
        total: the cell of the axis's total label, or None.
        whole: value and cells of the whole that shares refer to; None when the cells cannot be parts of one.
    """

    place: int
    facts: list[Fact] = field(default_factory=list)
    where: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    total: Fact | None = None
    whole: tuple[float, tuple[Fact, ...]] | None = None

    def named(self, labels: frozenset[int]) -> list[int]:
        """Positions of the cells under these labels, in order."""
        return sorted(place for label in labels for place in self.where.get(label, ()))

    def finish(self, rank: Mapping[int, int]) -> None:
        """Order the cells and work out the whole."""
        self.facts.sort(key=lambda fact: rank[fact.labels[self.place]])
        for position, fact in enumerate(self.facts):
            self.where[fact.labels[self.place]].append(position)
        if (
            len({fact.unit for fact in self.facts}) != 1
            or self.facts[0].unit in ("%", FRACTION)
            or any(fact.number < 0 for fact in self.facts)
        ):
            return
        if self.total is not None:
            self.whole = (self.total.number, (self.total,))
        elif len(self.facts) > 1:
            self.whole = (sum(fact.number for fact in self.facts), tuple(self.facts))
        if self.whole is not None and self.whole[0] <= 0:
            self.whole = None


class Lines:
    """The lines of all tables, laid out when first asked for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._laid: dict[tuple[int, int], dict[tuple[int, ...], Line]] = {}

    def along(self, table: Table, place: int, context: Context) -> Iterator[Line]:
        """The lines along one axis that agree with the context on the others and hold a cell it names on this one."""
        lines = self._lay(table, place)
        cells = cells_of(table, context)
        if cells is None:
            yield from lines.values()
            return
        for key in dict.fromkeys(_key(self._facts.facts[cell], table, place) for cell in sorted(cells)):
            yield lines[key]

    def _lay(self, table: Table, place: int) -> dict[tuple[int, ...], Line]:
        laid = self._laid.get((table.index, place))
        if laid is None:
            laid = self._laid[table.index, place] = {}
            rank = table.axes[place].rank
            for fact in table.facts:
                line = laid.setdefault(_key(fact, table, place), Line(place))
                if fact.labels[place] in rank:
                    line.facts.append(fact)
                elif fact.labels[place] >= 0:
                    line.total = fact
            for line in laid.values():
                line.finish(rank)
        return laid


def cells_of(table: Table, context: Context) -> set[int] | None:
    """Indices of the cells that agree with the context on every axis; None when it names no label of the table."""
    sets = [
        set().union(*(table.by_label.get(label, set()) for label in context[axis.id]))
        for axis in table.axes
        if context.get(axis.id)
    ]
    return set.intersection(*sets) if sets else None


def _key(fact: Fact, table: Table, place: int) -> tuple[int, ...]:
    """What two cells have in common when only the axis at `place` tells them apart."""
    header = table.axes[place].kind == "header"
    others = [
        label
        for position, (axis, label) in enumerate(zip(table.axes, fact.labels, strict=True))
        if position != place and (axis.kind == "header") == header
    ]
    return (fact.row if header else fact.column, *others)
