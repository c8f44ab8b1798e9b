"""Derived numbers: difference, ratio, percent change, share, sum, mean of cells that belong together.

Cells belong together when they differ on one axis alone: two weeks of one airport, two airports in one week. Which of
them are tried is narrowed by the labels the text names, and which operations by the words that license them (`cues`).
Every value tried goes into one *pool*; the pool decides whether a match means anything (`chance`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Literal, TypeAlias

from learngraph_kernel.evidence.audit.labels import Axis
from learngraph_kernel.evidence.audit.lines import Context, Line, Lines, cells_of
from learngraph_kernel.evidence.audit.tables import Fact, Facts, Table
from learngraph_kernel.evidence.audit.units import FRACTION

MAX_POOL = 20_000
"""More values than this are not tried at all: any number would be among them."""
MAX_UNNAMED = 50
"""Partners that the text does not name are tried only among so many."""

How: TypeAlias = Literal["difference", "ratio", "percent_change", "share", "sum", "mean"]
Pair: TypeAlias = tuple[Fact, Fact]
"""(base, other): the second is said of the first."""


@dataclass(frozen=True, slots=True)
class Derived:
    """One derived value with the cells it rests on.

    Attributes:
        value: in the claim's unit.
        how: the operation.
        facts: its cells, base first; for a share, the part.
        whole: for a share, the cells of the whole.
    """

    value: float
    how: How
    facts: tuple[Fact, ...]
    whole: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """All derived values tried for a number, sorted by value."""

    derived: tuple[Derived, ...]
    values: tuple[float, ...] = field(repr=False)
    distinct: tuple[float, ...] = field(repr=False)

    @classmethod
    def of(cls, derived: Sequence[Derived]) -> Pool:
        ordered = tuple(sorted(derived, key=lambda each: each.value))
        values = tuple(each.value for each in ordered)
        return cls(ordered, values, tuple(dict.fromkeys(round(value, 9) for value in values)))


@dataclass(frozen=True, slots=True)
class Request:
    """What to try: operations, how cells must compare with the claim's unit, and which label is the base of comparison.

    Attributes:
        operations: licensed by the sentence.
        unit: the claim's canonical unit; decides which cells may be added, averaged or subtracted, and the result's
            factor.
        base: label id that follows "than", 比, …; None when the sentence names no base.
        change: the claim says that something moved, so order in time decides the sign.
        across_time: a share may also be one of all periods, where the text names members of another axis.
    """

    operations: frozenset[How]
    unit: str | None
    base: int | None
    change: bool
    across_time: bool = True


class PoolTooLarge(Exception):
    """Internal signal: so many values would be tried that a match could mean nothing."""


class Deriver:
    """Builds pools of derived values, remembering those that several numbers ask for."""

    def __init__(self, facts: Facts, factor: Callable[[str | None, str | None, How], float | None]) -> None:
        """Takes the facts and a function: claim unit, cell unit, operation → factor on the result (None forbids)."""
        self._facts = facts
        self._factor = factor
        self._lines = Lines(facts)
        self._pools: dict[object, Pool | None] = {}

    def pool(self, request: Request, context: Context) -> Pool | None:
        """The values to try; None when there are more than `MAX_POOL`."""
        relevant = self._relevant(context)
        kept = frozenset((axis, labels) for axis, labels in context.items() if labels)
        key = (request, kept)
        if key not in self._pools:
            try:
                found: list[Derived] = []
                for table in relevant:
                    for derived in self._derive(table, request, context):
                        found.append(derived)
                        if len(found) > MAX_POOL:
                            raise PoolTooLarge
                self._pools[key] = Pool.of(found)
            except PoolTooLarge:
                self._pools[key] = None
        return self._pools[key]

    def _relevant(self, context: Context) -> list[Table]:
        """The tables the text speaks of: those with the most named axes; all when it names nothing."""
        counts = [sum(1 for axis in table.axes if context.get(axis.id)) for table in self._facts.tables]
        most = max(counts, default=0)
        chosen = [table for table, count in zip(self._facts.tables, counts, strict=True) if count == most]
        said = context.get(self._facts.table_axis.id)
        if said:
            own = [table for table in chosen if self._facts.table_axis.labels[table.index].id in said]
            chosen = own or chosen
        return chosen

    # --- operations

    def _derive(self, table: Table, request: Request, context: Context) -> Iterator[Derived]:
        wanted = request.operations
        if wanted & {"difference", "percent_change", "ratio"}:
            for base, other in self._pairs(table, request, context):
                yield from self._of_pair(base, other, request)
        if "share" in wanted:
            yield from self._shares(table, request, context)
        if wanted & {"sum", "mean"}:
            for group in self._groups(table, context):
                yield from self._of_group(group, request)

    def _of_pair(self, base: Fact, other: Fact, request: Request) -> Iterator[Derived]:
        if "difference" in request.operations:
            factor = self._factor(request.unit, base.unit, "difference")
            if factor is not None:
                yield Derived((other.number - base.number) * factor, "difference", (base, other))
        if base.number > 0 and "percent_change" in request.operations:
            yield Derived((other.number / base.number - 1) * 100, "percent_change", (base, other))
        if base.number > 0 and "ratio" in request.operations:
            yield Derived(other.number / base.number, "ratio", (base, other))

    def _of_group(self, group: list[Fact], request: Request) -> Iterator[Derived]:
        for how in ("sum", "mean"):
            if how not in request.operations:
                continue
            factor = self._factor(request.unit, group[0].unit, how)
            if factor is not None:
                total = sum(fact.number for fact in group) * factor
                if how == "sum":
                    yield Derived(total, "sum", tuple(group))
                else:
                    yield Derived(total / len(group), "mean", tuple(group))

    # --- pairs of cells that differ on one axis

    def _pairs(self, table: Table, request: Request, context: Context) -> Iterator[Pair]:
        has_time = any(axis.ordered for axis in table.axes)
        compared = [] if request.base is None else [self._facts.labels[request.base].axis]
        for place, axis in enumerate(table.axes):
            if compared and axis.id not in compared and any(each.id in compared for each in table.axes):
                continue
            named = context.get(axis.id, frozenset())
            if axis.measure and len(named) < 2:
                continue
            if request.change and has_time and not axis.ordered and request.base is None:
                continue
            for line in self._lines.along(table, place, context):
                for first, second in _chosen_pairs(line, axis, named):
                    if first.unit == second.unit:
                        yield from _oriented(first, second, place, axis, request)

    # --- shares of a whole

    def _shares(self, table: Table, request: Request, context: Context) -> Iterator[Derived]:
        for place, axis in enumerate(table.axes):
            named = context.get(axis.id, frozenset())
            if axis.ordered and not request.across_time and _names_members(table, context):
                continue
            for line in self._lines.along(table, place, context):
                if axis.measure:
                    yield from _part_of_measure(line, named)
                    continue
                if request.base in named and len(named) >= 2:
                    yield from _part_of_other(line, named, request.base)
                yield from _part_of_line(line, named)
            if axis.kind == "row" and named:
                yield from self._part_of_rest(table, axis, context)
            if axis.kind == "header" and axis.measure and named:
                yield from self._part_of_sums(table, axis, context)

    def _part_of_rest(self, table: Table, axis: Axis, context: Context) -> Iterator[Derived]:
        """Several rows under a named label as part of all rows: one airport's weeks of all airports' weeks."""
        if sum(1 for each in table.axes if each.kind == "row") < 2:
            return
        others = {each: labels for each, labels in context.items() if each != axis.id}
        parts = {group[0].column: group for group in self._columns(table, context)}
        for whole in self._columns(table, others):
            part = parts.get(whole[0].column, [])
            total = sum(fact.number for fact in whole)
            if len(part) >= 2 and total > 0 and min(fact.number for fact in whole) >= 0:
                yield Derived(sum(fact.number for fact in part) / total * 100, "share", tuple(part), tuple(whole))

    def _part_of_sums(self, table: Table, axis: Axis, context: Context) -> Iterator[Derived]:
        """One quantity's sum as part of another's: all cancelled flights of all flights."""
        named = context.get(axis.id, frozenset())
        others = {each: labels for each, labels in context.items() if each != axis.id}
        place = table.axes.index(axis)
        for first, second in combinations(self._columns(table, others), 2):
            a, b = sum(fact.number for fact in first), sum(fact.number for fact in second)
            hits = len({first[0].labels[place], second[0].labels[place]} & named)
            if hits < min(len(named), 2) or first[0].unit != second[0].unit or first[0].unit in ("%", FRACTION):
                continue
            (part, least), (whole, most) = ((first, a), (second, b)) if a <= b else ((second, b), (first, a))
            if most > 0 and min(fact.number for fact in (*first, *second)) >= 0:
                yield Derived(least / most * 100, "share", tuple(part), tuple(whole))

    # --- sums and means

    def _groups(self, table: Table, context: Context) -> Iterator[list[Fact]]:
        """Cells to add or average: a column, as far as the text names rows; a row across periods or named columns."""
        if not any(axis.measure and axis.kind == "row" and len(context.get(axis.id, ())) < 2 for axis in table.axes):
            yield from self._columns(table, context)
        headers = [axis for axis in table.axes if axis.kind == "header"]
        if any(axis.ordered or len(context.get(axis.id, ())) >= 2 for axis in headers):
            yield from _alike(self._kept(table, context), lambda fact: fact.row)

    def _columns(self, table: Table, context: Context) -> Iterator[list[Fact]]:
        yield from _alike(self._kept(table, context), lambda fact: fact.column)

    def _kept(self, table: Table, context: Context) -> list[Fact]:
        """The cells that agree with the context on every axis, totals left out."""
        cells = cells_of(table, context)
        chosen = table.facts if cells is None else [self._facts.facts[cell] for cell in sorted(cells)]
        return [fact for fact in chosen if not fact.total]


def _names_members(table: Table, context: Context) -> bool:
    """Whether the text names members of an axis that is neither time nor quantities: of those it is a share first."""
    return any(context.get(axis.id) and not axis.ordered and not axis.measure for axis in table.axes)


def _alike(facts: Sequence[Fact], key: Callable[[Fact], int]) -> Iterator[list[Fact]]:
    """Groups of at least two cells of one unit."""
    groups: dict[int, list[Fact]] = defaultdict(list)
    for fact in facts:
        groups[key(fact)].append(fact)
    for group in groups.values():
        if len(group) >= 2 and len({fact.unit for fact in group}) == 1:
            yield group


def _chosen_pairs(line: Line, axis: Axis, named: frozenset[int]) -> Iterator[Pair]:
    facts = line.facts
    inside = line.named(named)
    if len(named) >= 2:
        yield from combinations((facts[place] for place in inside), 2)
    elif named:
        for here in inside:
            for other in _partners(here, len(facts), axis):
                yield facts[min(here, other)], facts[max(here, other)]
    elif axis.ordered:
        yield from pairwise(facts)
        if len(facts) > 2:
            yield facts[0], facts[-1]
    elif len(facts) <= MAX_UNNAMED:
        yield from combinations(facts, 2)


def _partners(here: int, count: int, axis: Axis) -> list[int]:
    """The places that one named cell may be compared with: its neighbours in time and the ends, or all of a few."""
    if axis.ordered:
        return sorted({place for place in (here - 1, here + 1, 0, count - 1) if 0 <= place < count} - {here})
    return [place for place in range(count) if place != here] if count <= MAX_UNNAMED else []


def _oriented(first: Fact, second: Fact, place: int, axis: Axis, request: Request) -> Iterator[Pair]:
    """Which of the two is the base? The one after "than"; else the earlier; else, for a comparison, either."""
    if first.labels[place] == second.labels[place]:
        return
    if request.base == first.labels[place]:
        yield first, second
    elif request.base == second.labels[place]:
        yield second, first
    elif request.base in axis.rank:
        return
    elif axis.ordered or request.change:
        yield first, second
    else:
        yield first, second
        yield second, first


def _part_of_measure(line: Line, named: frozenset[int]) -> Iterator[Derived]:
    """One quantity of a row as part of another of the same row (late flights of flights)."""
    inside = set(line.named(named))
    if not inside:
        return
    for first, second in combinations(range(len(line.facts)), 2):
        a, b = line.facts[first], line.facts[second]
        hits = (first in inside) + (second in inside)
        if hits < min(len(named), 2) or a.unit != b.unit or a.unit in ("%", FRACTION):
            continue
        part, whole = (a, b) if a.number <= b.number else (b, a)
        if part.number >= 0 and whole.number > 0:
            yield Derived(part.number / whole.number * 100, "share", (part,), (whole,))


def _part_of_other(line: Line, named: frozenset[int], base: int) -> Iterator[Derived]:
    """One member as a percentage of another that is named after "of"."""
    for whole in (line.facts[place] for place in line.where.get(base, ())):
        for part in (line.facts[place] for place in line.named(named - {base})):
            if whole.number > 0 and part.unit == whole.unit:
                yield Derived(part.number / whole.number * 100, "share", (part,), (whole,))


def _part_of_line(line: Line, named: frozenset[int]) -> Iterator[Derived]:
    """Cells as part of the whole of their line, one by one or, if several are named, together."""
    if line.whole is None:
        return
    value, cells = line.whole
    inside = [line.facts[place] for place in line.named(named)] if named else line.facts
    for fact in inside:
        yield Derived(fact.number / value * 100, "share", (fact,), cells)
    if named and 2 <= len(inside) < len(line.facts):
        yield Derived(sum(fact.number for fact in inside) / value * 100, "share", tuple(inside), cells)
