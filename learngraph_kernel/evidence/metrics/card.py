"""Metric cards as values: one definition in one version, and the library of all of them.

The library is where cards meet: here it is checked that they refer to each other without cycles, that exact cards rest
on exact cards only, and which version is the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from learngraph_kernel.canonical import digest
from learngraph_kernel.evidence.metrics.bindings import Binding, CellBinding, ColumnBinding, MetricBinding
from learngraph_kernel.evidence.metrics.errors import CardError
from learngraph_kernel.evidence.metrics.tree import Expression
from learngraph_kernel.naming import suggestion
from learngraph_kernel.versions import precedence

Additivity: TypeAlias = Literal["sum", "semi-additive", "ratio", "none"]
Behaviour: TypeAlias = Literal["missing", "zero", "error"]


@dataclass(frozen=True, slots=True)
class CardInput:
    """One input: its name in the expression, the card's own words, and what they mean."""

    name: str
    text: str
    binding: Binding


@dataclass(frozen=True, slots=True)
class MetricCard:
    """One metric in one version.

    Attributes:
        set: the set (file) it belongs to.
        precision: digits after the point when displayed; None shows the value as computed.
        on_null: `missing`: no value; `zero`: a null input counts as 0; `error`: the evaluation fails.
        on_zero_division: `missing`: no value; `zero`: the metric is 0; `error`: the evaluation fails.
        exact: floats are refused as inputs.
        origin: file and line, for messages.
    """

    set: str
    name: str
    version: str
    title: Mapping[str, str]
    inputs: tuple[CardInput, ...]
    expression: Expression
    unit: str | None = None
    precision: int | None = None
    additivity: Additivity = "none"
    required: bool = False
    on_null: Behaviour = "missing"
    on_zero_division: Behaviour = "missing"
    exact: bool = False
    description: str | None = None
    origin: str = field(default="", compare=False)

    @property
    def place(self) -> str:
        """`metrics/flights.yaml:12: metric on_time_rate 1.1.0`, for messages."""
        return f"{self.origin}: metric {self.name} {self.version}"

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The other metrics whose values go in."""
        return tuple(item.binding.name for item in self.inputs if isinstance(item.binding, MetricBinding))

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The logical snapshot names it reads."""
        bindings = (item.binding for item in self.inputs)
        return tuple(dict.fromkeys(b.snapshot for b in bindings if isinstance(b, CellBinding | ColumnBinding)))

    def as_json(self) -> dict[str, Any]:
        """The definition, without the description and the place in a file."""
        return {
            "set": self.set,
            "name": self.name,
            "version": self.version,
            "title": dict(self.title),
            "unit": self.unit,
            "precision": self.precision,
            "additivity": self.additivity,
            "inputs": {item.name: item.text for item in self.inputs},
            "expression": self.expression.text,
            "required": self.required,
            "on_null": self.on_null,
            "on_zero_division": self.on_zero_division,
            "exact": self.exact,
        }


def card_hash(card: MetricCard) -> str:
    """SHA-256 of a card's definition; a reworded description leaves it alone."""
    return digest(card.as_json())


@dataclass(frozen=True, slots=True)
class Finding:
    """Something questionable about a card that is no error."""

    code: str
    message: str
    where: str


def check_additivity(card: MetricCard) -> list[Finding]:
    """Whether a card's additivity fits its expression, and whether every input is used.

    Sums and means *of* a ratio cannot be written at all: aggregates take columns, never metrics.
    """
    found = []
    aggregates = {item.binding.aggregate for item in card.inputs if isinstance(item.binding, ColumnBinding)}
    if card.additivity == "ratio" and not card.expression.divides:
        found.append(("ratio_without_division", "is a ratio, but its expression divides nothing"))
    if card.additivity == "sum" and card.expression.divides:
        found.append(("sum_with_division", "is said to add up, but its expression divides"))
    if card.additivity == "sum" and aggregates & {"mean", "min", "max"}:
        which = ", ".join(sorted(aggregates & {"mean", "min", "max"}))
        found.append(("sum_of_non_additive", f"is said to add up, but reads a {which}"))
    for item in card.inputs:
        if item.name not in card.expression.names:
            found.append(("unused_input", f"declares the input {item.name!r} and does not use it"))
    return [Finding(code, f"metric {card.name!r} {message}", card.place) for code, message in found]


@dataclass(frozen=True, slots=True)
class CardLibrary:
    """All cards of a workspace, by set. Build it with `CardLibrary.of`, which checks them against each other."""

    sets: Mapping[str, tuple[MetricCard, ...]]

    @classmethod
    def of(cls, cards: Iterable[MetricCard]) -> CardLibrary:
        """Raises CardError: a version twice, an unknown or circular reference, an exact card on an inexact one."""
        sets: dict[str, list[MetricCard]] = {}
        seen: dict[tuple[str, str, str], MetricCard] = {}
        for card in cards:
            earlier = seen.setdefault((card.set, card.name, card.version), card)
            if earlier is not card:
                raise CardError(
                    "this version is defined twice", where=card.place, remedy=f"raise one version; see {earlier.origin}"
                )
            sets.setdefault(card.set, []).append(card)
        library = cls(MappingProxyType({name: tuple(items) for name, items in sorted(sets.items())}))
        for name in library.sets:
            library._check(name)
        return library

    def cards(self, name: str) -> tuple[MetricCard, ...]:
        """The cards of a set, all versions, in file order. Raises CardError with the nearest known set."""
        if name not in self.sets:
            raise CardError(
                f"unknown metric set {name!r}", where="metrics", remedy=suggestion(name, self.sets, kind="metric sets")
            )
        return self.sets[name]

    def newest(self, name: str) -> dict[str, MetricCard]:
        """The newest version of each metric of a set; a pre-release only where there is no release."""
        found: dict[str, MetricCard] = {}
        for card in self.cards(name):
            other = found.get(card.name)
            if other is None or _rank(card) > _rank(other):
                found[card.name] = card
        return found

    def version(self, name: str, metric: str, version: str) -> MetricCard | None:
        """One version of one metric, or None. Raises CardError for an unknown set."""
        return next((c for c in self.cards(name) if c.name == metric and c.version == version), None)

    def _check(self, name: str) -> None:
        cards = self.cards(name)
        by_name: dict[str, list[MetricCard]] = {}
        for card in cards:
            by_name.setdefault(card.name, []).append(card)
        for card in cards:
            for other in card.depends_on:
                if other == card.name:
                    raise CardError(
                        "the metric refers to itself", where=card.place, remedy="bind it to a cell or column"
                    )
                if other not in by_name:
                    raise CardError(
                        f"metric({other}) is not in the set {name!r}",
                        where=card.place,
                        remedy=suggestion(other, by_name),
                    )
                if card.exact and not all(item.exact for item in by_name[other]):
                    raise CardError(
                        f"an exact metric rests on {other!r}, which is not exact in every version",
                        where=card.place,
                        remedy=f"set `exact: true` on {other!r} as well",
                    )
        evaluation_order(self.newest(name))


def _rank(card: MetricCard) -> tuple[bool, Any]:
    key = precedence(card.version)
    return key[1], key


def evaluation_order(cards: Mapping[str, MetricCard]) -> list[str]:
    """Metric names so that each comes after those it depends on. Raises CardError naming the cycle."""
    done: dict[str, None] = {}
    for start in cards:
        # Iterative depth-first walk: a chain of cards may be longer than Python's stack.
        trail: list[str] = []
        work: list[tuple[str, bool]] = [(start, False)]
        while work:
            name, leaving = work.pop()
            if leaving:
                trail.pop()
                done[name] = None
            elif name in trail:
                cycle = [*trail[trail.index(name) :], name]
                raise CardError(
                    f"the metrics depend on each other in a circle: {' → '.join(cycle)}",
                    where=cards[name].place,
                    remedy="bind one of them to a cell or column",
                )
            elif name not in done:
                trail.append(name)
                work.append((name, True))
                work += [(other, False) for other in reversed(cards[name].depends_on)]
    return list(done)
