"""One select, seen with the catalogue: its sources as shapes, its equalities, its groups; and its own shape in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from learngraph_kernel.data.catalogue.values import Catalogue, Key
from learngraph_kernel.data.lint.joins import CONSTANT, Classes, Closure, Place, closure, conjuncts
from learngraph_kernel.data.lint.shape import Column, Shape, aggregate_kind, aggregates, shape_of_table

_NOT_MULTIPLYING = {"SEMI", "ANTI", "ASOF"}


@dataclass(slots=True)
class View:
    """A select with what is known about it.

    Attributes:
        select: the statement's part.
        shapes: by folded alias, in the order of FROM.
        outer: aliases on the optional side of an outer join.
        conditions: every conjunct of ON and WHERE.
        groups: the GROUP BY expressions, positions and aliases resolved; None without GROUP BY.
        rolled: ROLLUP, CUBE or GROUPING SETS.
    """

    select: exp.Select
    shapes: dict[str, Shape]
    outer: frozenset[str]
    conditions: list[exp.Expr]
    where: list[exp.Expr]
    classes: Classes
    groups: list[exp.Expr] | None
    rolled: bool
    aggregated: list[exp.AggFunc] = field(default_factory=list)

    def locate(self, column: exp.Column) -> str | None:
        """The alias a column belongs to; None when it is ambiguous, foreign (an outer query's) or unknown."""
        if column.table:
            alias = column.table.casefold()
            return alias if alias in self.shapes else None
        certain = [alias for alias, shape in self.shapes.items() if shape.column(column.name) is not None]
        if len(certain) == 1:
            return certain[0]
        possible = [alias for alias, shape in self.shapes.items() if shape.may_have(column.name)]
        return possible[0] if len(possible) == 1 and not certain else None

    def foreign(self, column: exp.Column) -> bool:
        """Whether it surely belongs to an outer query, where it does not vary."""
        if column.table:
            return column.table.casefold() not in self.shapes
        return not any(shape.may_have(column.name) for shape in self.shapes.values())

    def place(self, column: exp.Column) -> Place | None:
        alias = self.locate(column)
        return None if alias is None else (alias, column.name.casefold())

    def column(self, column: exp.Column) -> Column | None:
        """What is known of a column; None when nothing is."""
        alias = self.locate(column)
        return None if alias is None else self.shapes[alias].column(column.name)

    def fixed(self) -> list[Place]:
        """Columns that do not vary within a group."""
        if self.rolled or not self.groups:
            return []
        places = (self.place(group) for group in self.groups if isinstance(group, exp.Column))
        return [place for place in places if place is not None]

    def repeats(self, aliases: Iterable[str]) -> Closure:
        """What repeats a row of these sources within a group."""
        return closure(self.shapes, self.classes, aliases, self.fixed())

    def shape(self, name: str) -> Shape:
        """This select's result as a source of another."""
        columns, stars = self._columns()
        return Shape(name, self._keys(columns, bool(stars)), columns, stars)

    # how its own columns and keys come about

    def _columns(self) -> tuple[dict[str, Column], tuple[tuple[Shape, tuple[str, ...]], ...]]:
        columns: dict[str, Column] = {}
        stars: list[tuple[Shape, tuple[str, ...]]] = []
        for item in self.select.expressions:
            inner = item.unalias()
            if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
                chosen = [inner.table.casefold()] if isinstance(inner, exp.Column) and inner.table else [*self.shapes]
                stars += [(self.shapes[alias], self.repeated(alias)) for alias in chosen if alias in self.shapes]
                continue
            name = (item.alias_or_name or "").casefold()
            if name:
                columns[name] = self._column(name, inner)
        return columns, tuple(stars)

    def _column(self, name: str, inner: exp.Expr) -> Column:
        inner = inner.unnest()
        while isinstance(inner, exp.Round | exp.Cast | exp.Coalesce):
            inner = inner.this.unnest()
        if isinstance(inner, exp.Column):
            found = self.column(inner)
            alias = self.locate(inner)
            if found is None or alias is None:
                return Column(name)
            return Column(name, found.fact, found.table, found.made_by, found.repeated + self.repeated(alias))
        return Column(name, made_by=aggregate_kind(inner) if self.groups or self.aggregated else None)

    def repeated(self, alias: str) -> tuple[str, ...]:
        """What has repeated the rows of a source once this select is a source itself."""
        if self.groups is not None or self.aggregated or self.select.args.get("distinct"):
            return ()
        return closure(self.shapes, self.classes, [alias], []).known

    def _keys(self, columns: Mapping[str, Column], starred: bool) -> frozenset[Key]:
        if self._single():
            return frozenset([frozenset()])
        names = self._output_names()
        found: set[Key] = set()
        if self.groups is not None:
            if not self.rolled:
                grouped = [self._named(group, names) for group in self.groups]
                if None not in grouped:
                    found.add(frozenset(name for name in grouped if name is not None))
        else:
            found |= self._kept_keys(names)
            found |= set(self._numbered(names))
            if self.select.args.get("distinct") and not starred:
                found.add(frozenset(columns))
        return frozenset(found)

    def _single(self) -> bool:
        limit = self.select.args.get("limit")
        if isinstance(limit, exp.Limit) and limit.expression.sql() == "1":
            return True
        return self.groups is None and bool(self.aggregated)

    def _output_names(self) -> dict[Place, str]:
        """Where each plain column of a source comes out; a star passes all of its source's."""
        names: dict[Place, str] = {}
        for item in self.select.expressions:
            inner = item.unalias()
            if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star):
                place = self.place(inner)
                if place is not None:
                    names.setdefault(place, item.alias_or_name.casefold())
        return names

    def _name_of(self, place: Place, names: Mapping[Place, str]) -> str | None:
        """The output that holds a column, or one that is equal to it."""
        if place in names:
            return names[place]
        root = self.classes.find(place)
        for other, name in names.items():
            if self.classes.find(other) == root:
                return name
        return place[1] if self._starred(place[0]) else None

    def _starred(self, alias: str) -> bool:
        for item in self.select.expressions:
            if isinstance(item, exp.Star):
                return True
            if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and item.table.casefold() == alias:
                return True
        return False

    def _named(self, group: exp.Expr, names: Mapping[Place, str]) -> str | None:
        if isinstance(group, exp.Column):
            place = self.place(group)
            found = None if place is None else self._name_of(place, names)
            if found is not None:
                return found
        for item in self.select.expressions:
            if item.unalias() == group and item.alias_or_name:
                return str(item.alias_or_name).casefold()
        return None

    def _kept_keys(self, names: Mapping[Place, str]) -> set[Key]:
        """Keys of a source whose row determines all others; else the keys of all sources together."""
        constant = self.classes.find(CONSTANT)

        def out(alias: str, key: Key) -> Key | None:
            found = [
                self._name_of((alias, column), names)
                for column in key
                if self.classes.find((alias, column)) != constant
            ]
            return None if None in found else frozenset(name for name in found if name is not None)

        kept: set[Key] = set()
        for alias, shape in self.shapes.items():
            rest = closure(self.shapes, self.classes, [alias], [])
            if not rest.known and not rest.unknown:
                kept |= {key for key in (out(alias, key) for key in shape.keys) if key is not None}
        if not kept and all(shape.keys for shape in self.shapes.values()) and self.shapes:
            union: Key = frozenset()
            for alias, shape in self.shapes.items():
                part = next(
                    (key for key in (out(alias, key) for key in sorted(shape.keys, key=sorted)) if key is not None),
                    None,
                )
                if part is None:
                    return set()
                union |= part
            kept.add(union)
        return kept

    def _numbered(self, names: Mapping[Place, str]) -> Iterator[Key]:
        """`row_number() over (partition by p …) as rn` makes (p, rn) a key."""
        for item in self.select.expressions:
            window = item.unalias()
            if isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber) and item.alias:
                parts = [self._named(part, names) for part in window.args.get("partition_by") or []]
                if None not in parts:
                    yield frozenset([item.alias.casefold(), *(part for part in parts if part is not None)])


def view_of(scope: Scope, catalogue: Catalogue, shapes: Mapping[int, Shape]) -> View:
    """The view of one select.

    Args:
        scope: of a `Select`.
        shapes: of the selects within it, by the id of their expression.
    """
    select = scope.expression
    assert isinstance(select, exp.Select)
    sources = {
        alias.casefold(): _source(alias, source, catalogue, shapes)
        for alias, (_, source) in scope.selected_sources.items()
    }
    joins = list(select.args.get("joins") or ())
    for join in joins:
        if (join.side in _NOT_MULTIPLYING or join.kind in _NOT_MULTIPLYING) and join.alias_or_name:
            sources.pop(join.alias_or_name.casefold(), None)
    for lateral in select.args.get("laterals") or ():
        sources.setdefault(lateral.alias_or_name.casefold() or "lateral", Shape("lateral", complete=False))
    where = list(conjuncts(select.args["where"].this)) if select.args.get("where") else []
    on = [part for join in joins for part in conjuncts(join.args.get("on"))]
    groups, rolled = _groups(select)
    view = View(
        select, sources, _outer(joins), [*on, *where], where, Classes(), groups, rolled, list(aggregates(select))
    )
    for part in view.conditions:
        _equate(view, part)
    _using(view, joins)
    return view


def _source(alias: str, source: object, catalogue: Catalogue, shapes: Mapping[int, Shape]) -> Shape:
    if isinstance(source, exp.Table) and source.name:
        table = catalogue.table(source.name, source.db)
        return shape_of_table(source.name, table, frozenset() if table is None else catalogue.unique(table))
    if isinstance(source, Scope):
        found = shapes.get(id(source.expression))
        if found is not None:
            return found
    return Shape(alias, complete=False)


def _outer(joins: Iterable[exp.Join]) -> frozenset[str]:
    return frozenset(join.alias_or_name.casefold() for join in joins if join.side == "LEFT")


def _groups(select: exp.Select) -> tuple[list[exp.Expr] | None, bool]:
    group = select.args.get("group")
    if group is None:
        return None, False
    rolled = any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
    if group.args.get("all"):
        plain = [item.unalias() for item in select.expressions if not item.find(exp.AggFunc)]
        return plain, rolled
    found: list[exp.Expr] = []
    aliases = {item.alias.casefold(): item.unalias() for item in select.expressions if item.alias}
    for part in group.expressions:
        if isinstance(part, exp.Literal) and part.is_int and 0 < int(part.this) <= len(select.expressions):
            part = select.expressions[int(part.this) - 1].unalias()
        elif isinstance(part, exp.Column) and not part.table and part.name.casefold() in aliases:
            part = aliases[part.name.casefold()]
        rolled = rolled or isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets)
        found.append(part)
    return found, rolled


def _equate(view: View, part: exp.Expr) -> None:
    if isinstance(part, exp.Is) and isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Null):
        place = view.place(part.this)
        if place is not None and place[0] not in view.outer:
            view.classes.join(place, CONSTANT)
        return
    if isinstance(part, exp.In) and len(part.expressions) == 1 and isinstance(part.this, exp.Column):
        place = view.place(part.this)
        if place is not None:
            view.classes.join(place, CONSTANT)
        return
    if not isinstance(part, exp.EQ):
        return
    sides = [part.left.unnest(), part.right.unnest()]
    places = [_end(view, side) for side in sides]
    if places[0] is not None and places[1] is not None:
        view.classes.join(places[0], places[1])


def _end(view: View, side: exp.Expr) -> Place | None:
    """A column's place; CONSTANT for what does not vary from row to row."""
    if isinstance(side, exp.Column):
        place = view.place(side)
        return place if place is not None else (CONSTANT if view.foreign(side) else None)
    if isinstance(side, exp.Subquery | exp.Query):
        return CONSTANT  # a scalar subquery; a correlated one is not told apart, which only makes fewer accusations
    if any(isinstance(node, exp.Column) and not view.foreign(node) for node in side.walk()):
        return None
    return CONSTANT


def _using(view: View, joins: Iterable[exp.Join]) -> None:
    """USING and NATURAL: the named columns of all sources so far are one."""
    aliases = list(view.shapes)
    for join in joins:
        right = join.alias_or_name.casefold()
        if right not in aliases:
            continue
        before = aliases[: aliases.index(right)]
        for name in join.args.get("using") or ():
            for left in before:
                if view.shapes[left].may_have(name.name):
                    view.classes.join((left, name.name.casefold()), (right, name.name.casefold()))
