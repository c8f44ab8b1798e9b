"""Which columns of a result no table's data goes into: `select 45 as share` answers, and rests on nothing.

A report promises that its numbers come from data. Whoever writes the SQL could otherwise write the number into it and
cite the answer. This looks at the statement alone and says "constant" only where that is certain: a literal or what is
computed of literals, through subqueries, CTEs and set operations. Arithmetic that cancels the data (`45 + 0 * n`) is
not seen through; the opened number shows the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp

_GENERATED = (exp.Values, exp.Unnest, exp.GenerateSeries)


@dataclass(frozen=True, slots=True)
class _Output:
    """The columns of a query in order: name and whether data goes in; `open` when a star hides some that are data."""

    columns: tuple[tuple[str, bool], ...]
    open: bool = False

    @property
    def data(self) -> bool:
        return self.open or any(is_data for _, is_data in self.columns)

    def holds(self, name: str) -> bool | None:
        """Whether a column is data; None when it is not known to be here."""
        found = [is_data for column, is_data in self.columns if column == name.lower()]
        return found[0] if found else (True if self.open else None)


_TABLE = _Output((), open=True)
_NOTHING = _Output(())
_Known = Mapping[str, _Output]


@lru_cache(maxsize=512)
def constant_columns(sql: str, dialect: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The constant columns of a result.

    Takes a guarded statement, its dialect and the names of the result's columns in order. Returns those that are
    certainly constant, in that order; none for DESCRIBE, SUMMARIZE, PIVOT and whatever else is no plain query.
    """
    tree = sqlglot.parse_one(sql, read=dialect)
    output = _of(tree, {})
    if not output.open and len(output.columns) == len(names):
        return tuple(name for name, (_, is_data) in zip(names, output.columns, strict=True) if not is_data)
    return tuple(name for name in names if output.holds(name) is False)


def _of(node: exp.Expr | None, known: _Known) -> _Output:
    """What a query, or something in FROM, puts out."""
    if isinstance(node, exp.Query | exp.Values):
        known = {**known, **_ctes(node, known)}
    if isinstance(node, exp.Subquery):
        return _TABLE if node.args.get("pivots") else _renamed(_of(node.this, known), node)
    if isinstance(node, exp.SetOperation):
        return _both(_of(node.this, known), _of(node.expression, known), node)
    if isinstance(node, exp.Select):
        return _select(node, known)
    if isinstance(node, _GENERATED):
        return _generated(node)
    if isinstance(node, exp.Lateral):
        return _renamed(_of(node.this, known), node)
    if isinstance(node, exp.Table) and not node.args.get("pivots"):
        if isinstance(node.this, exp.Func):
            return _generated(node)
        return _renamed(known.get(node.name.lower(), _TABLE), node) if not node.db else _TABLE
    return _TABLE


def _ctes(node: exp.Expr, known: _Known) -> dict[str, _Output]:
    found: dict[str, _Output] = {}
    clause = node.args.get("with_") or node.args.get("with")
    for cte in clause.expressions if clause is not None else ():
        name = cte.alias.lower()
        body = cte.this
        first = body.this if isinstance(body, exp.SetOperation) else body  # a recursive one begins with its first half
        start = _renamed(_of(first, {**known, **found}), cte)
        found[name] = _renamed(_of(body, {**known, **found, name: start}), cte)
    return found


def _renamed(output: _Output, node: exp.Expr) -> _Output:
    """With the column names that an alias gives: `… as t(a, b)`."""
    alias = node.args.get("alias")
    names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias is not None else []
    if not names or output.open or len(names) > len(output.columns):
        return output
    rest = output.columns[len(names) :]
    renamed = ((name, is_data) for name, (_, is_data) in zip(names, output.columns, strict=False))
    return _Output((*renamed, *rest))


def _generated(node: exp.Expr) -> _Output:
    """VALUES, UNNEST, generate_series: data only if a column or a query goes into it."""
    fed = any(isinstance(part, exp.Column | exp.Query) for part in node.walk() if part is not node)
    if fed:
        return _TABLE
    alias = node.args.get("alias")
    names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias is not None else []
    width = len(node.expressions[0].expressions) if isinstance(node, exp.Values) and node.expressions else 1
    return _Output(tuple((names[i] if i < len(names) else f"col{i}", False) for i in range(max(width, len(names)))))


def _both(left: _Output, right: _Output, node: exp.Expr) -> _Output:
    """A set operation: a column of UNION is constant when one half types it in."""
    if left.open or right.open or len(left.columns) != len(right.columns) or node.args.get("by_name"):
        return _TABLE
    if not isinstance(node, exp.Union):
        return left
    return _Output(tuple((name, a and b) for (name, a), (_, b) in zip(left.columns, right.columns, strict=True)))


def _select(select: exp.Select, known: _Known) -> _Output:
    sources: dict[str, _Output] = {}
    start = select.args.get("from_") or select.args.get("from")
    parts = [start.this] if start is not None else []
    parts += [join.this for join in select.args.get("joins") or ()]
    parts += list(select.args.get("laterals") or ())
    for place, part in enumerate(parts):
        sources[(part.alias_or_name or str(place)).lower()] = _of(part, known)
    columns: list[tuple[str, bool]] = []
    is_open = False
    for projection in select.expressions:
        if _is_star(projection):
            inner = _under_star(projection, sources)
            if any(output.open for output in inner):
                is_open = True  # names may meet there, so nothing is certain
            else:
                columns += [column for output in inner for column in output.columns]
            continue
        expression = projection.this if isinstance(projection, exp.Alias) else projection
        columns.append((projection.alias_or_name.lower(), _is_data(expression, sources, known, dict(columns))))
    return _Output(tuple(columns), is_open)


def _is_star(projection: exp.Expr) -> bool:
    if projection.find(exp.Count) is not None:
        return False
    return projection.find(exp.Star, exp.Columns) is not None


def _under_star(projection: exp.Expr, sources: Mapping[str, _Output]) -> Sequence[_Output]:
    table = projection.table.lower() if isinstance(projection, exp.Column) else ""
    plain = isinstance(projection, exp.Star) and not any(projection.args.values())
    if not plain and not table:
        return (_TABLE,)  # EXCLUDE, REPLACE, COLUMNS(…)
    return (sources.get(table, _TABLE),) if table else tuple(sources.values())


def _is_data(node: exp.Expr, sources: Mapping[str, _Output], known: _Known, earlier: Mapping[str, bool]) -> bool:
    """Whether data goes into an expression; `earlier` are the names the SELECT list has given so far."""
    if isinstance(node, exp.Query):
        return _of(node, {**known, **_outer(sources)}).data
    if isinstance(node, exp.Exists):
        return True
    if isinstance(node, exp.Column):
        return _column_is_data(node, sources, earlier)
    if isinstance(node, exp.Count | exp.CountIf | exp.RowNumber | exp.Rank | exp.DenseRank):
        return any(output.data for output in sources.values())
    return any(_is_data(child, sources, known, earlier) for child in node.iter_expressions())


def _outer(sources: Mapping[str, _Output]) -> dict[str, _Output]:
    return {name: output for name, output in sources.items() if not output.open}


def _column_is_data(column: exp.Column, sources: Mapping[str, _Output], earlier: Mapping[str, bool]) -> bool:
    name = column.name.lower()
    if column.table:
        output = sources.get(column.table.lower(), _TABLE)
        held = output.holds(name)
        return True if held is None else held
    held_by: Sequence[bool | None] = [output.holds(name) for output in sources.values() if not output.open]
    certain = [held for held in held_by if held is not None]
    if certain:
        return any(certain)
    return earlier.get(name, True)
