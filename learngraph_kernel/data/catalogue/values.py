"""What is known about data: what a row is, what may be added up, which joins multiply. Facts only, no formulas.

Names are compared without case, as the engines do. A fact is *certain* when it was verified or confirmed, or declared
without a state; an inferred one may be wrong, so nothing is accused on its word alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

State: TypeAlias = Literal["inferred", "verified", "confirmed", "rejected"]
Origin: TypeAlias = Literal["comment", "foreign_key", "name", "profile", "model", "person"]
Measure: TypeAlias = Literal["additive", "semi-additive", "ratio", "identifier", "code"]
Cardinality: TypeAlias = Literal["one-to-one", "one-to-many", "many-to-one", "many-to-many"]

Key: TypeAlias = frozenset[str]
"""Names of columns, folded, that no two rows share."""


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """A column.

    Attributes:
        measure: how it may be summarised; None when nobody said.
        unit: as written (`CNY`, `minutes`).
        over: of a semi-additive one: columns it must not be added over.
        codes: code → meaning, codes as text; empty when any value may occur.
        type: the engine's type, if known.
        masked: neither values nor codes reach a model.
    """

    name: str
    measure: Measure | None = None
    unit: str | None = None
    over: tuple[str, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    type: str | None = None
    title: Mapping[str, str] = field(default_factory=dict)
    masked: bool = False
    state: State | None = None
    source: Origin | None = None

    @property
    def certain(self) -> bool:
        return certain(self.state)


@dataclass(frozen=True, slots=True)
class TableFact:
    """A table.

    Attributes:
        grain: the business key: one row per …; empty when unknown.
        keys: other column sets that are unique.
        date: the business date.
        valid: SQL condition of the rows that count.
        dedupe: SQL expression to keep the latest row per grain by.
        complete: `columns` lists every column, so that an absent name does not exist.
    """

    name: str
    grain: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    date: str | None = None
    valid: str | None = None
    dedupe: str | None = None
    title: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, ColumnFact] = field(default_factory=dict)
    complete: bool = False
    state: State | None = None
    source: Origin | None = None

    @property
    def certain(self) -> bool:
        return certain(self.state)

    def column(self, name: str) -> ColumnFact | None:
        """The column of that name in any case, unless it was rejected."""
        found = self.columns.get(name.casefold())
        return None if found is None or found.state == "rejected" else found

    def unique(self) -> frozenset[Key]:
        """All sets of columns that no two rows share; empty when the table's own entry is not certain."""
        if not self.certain:
            return frozenset()
        return frozenset(folded(key) for key in (self.grain, *self.keys) if key)


@dataclass(frozen=True, slots=True)
class Relation:
    """Two tables joined by columns, pair by pair.

    Attributes:
        left, right: table names.
        on: pairs (column of left, column of right).
        cardinality: of left to right.
    """

    left: str
    right: str
    on: tuple[tuple[str, str], ...]
    cardinality: Cardinality
    state: State | None = None
    source: Origin | None = None

    @property
    def certain(self) -> bool:
        return certain(self.state)

    def turned(self) -> Relation:
        """The same, seen from the other side."""
        names = {"one-to-many": "many-to-one", "many-to-one": "one-to-many"}
        cardinality: Cardinality = names.get(self.cardinality, self.cardinality)  # type: ignore[assignment]
        on = tuple((right, left) for left, right in self.on)
        return Relation(self.right, self.left, on, cardinality, self.state, self.source)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything known about one source. Tables by their folded name (`schema.table` where it has a schema)."""

    tables: Mapping[str, TableFact] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()

    def table(self, name: str, schema: str = "") -> TableFact | None:
        """A table by its name, with or without its schema; None when unknown or rejected."""
        full = f"{schema}.{name}".casefold() if schema else name.casefold()
        found = self.tables.get(full) or (self.tables.get(name.casefold()) if schema else None)
        return None if found is None or found.state == "rejected" else found

    def between(self, left: str, right: str) -> Iterator[Relation]:
        """Relations of two tables that are certain, seen from `left`."""
        pair = (left.casefold(), right.casefold())
        for relation in self.relations:
            if not relation.certain:
                continue
            ends = (relation.left.casefold(), relation.right.casefold())
            if ends == pair:
                yield relation
            elif ends == pair[::-1]:
                yield relation.turned()

    def unique(self, table: TableFact) -> frozenset[Key]:
        """A table's keys: its own, and those that a relation's `one` side tells."""
        keys = set(table.unique())
        name = table.name.casefold()
        for relation in self.relations:
            if not relation.certain:
                continue
            for seen in (relation, relation.turned()):
                if seen.left.casefold() == name and seen.cardinality in ("one-to-one", "one-to-many"):
                    keys.add(folded(left for left, _ in seen.on))
        return frozenset(keys)


def certain(state: State | None) -> bool:
    """Declared by hand without a state counts; inferred and rejected do not."""
    return state in (None, "verified", "confirmed")


def folded(names: Iterable[str]) -> Key:
    """Names without case."""
    return frozenset(name.casefold() for name in names)
