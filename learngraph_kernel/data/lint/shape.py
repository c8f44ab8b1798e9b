"""What a row of a query is: its keys, and where each of its columns comes from.

A *shape* is what is known of a table, a CTE or a subquery: sets of columns that no two rows share, and for each column
the catalogue's fact, the aggregate it came from, and whether a join inside has already repeated the rows it describes.
No key known means just that; the empty key means a single row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from learngraph_kernel.data.catalogue.values import ColumnFact, Key, TableFact


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a shape.

    Attributes:
        name: folded.
        fact: what the catalogue says; None when it says nothing or the column is computed.
        table: the table it comes from unchanged.
        made_by: the aggregate that made it (`avg`, `sum`, `count`, `count_distinct`, `median`, …), None for plain ones.
        repeated: names of sources that repeat its rows already.
    """

    name: str
    fact: ColumnFact | None = None
    table: TableFact | None = None
    made_by: str | None = None
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """What a source of a query looks like from outside.

    Attributes:
        keys: unique column sets; empty: none is known.
        columns: by folded name.
        stars: shapes whose columns all pass through, with what their rows are repeated by.
        table: the catalogue's entry when this is a table.
        name: for messages.
        complete: a column that is not here does not exist.
    """

    name: str
    keys: frozenset[Key] = frozenset()
    columns: Mapping[str, Column] = field(default_factory=dict)
    stars: tuple[tuple[Shape, tuple[str, ...]], ...] = ()
    table: TableFact | None = None
    base: bool = False
    complete: bool = True

    def column(self, name: str) -> Column | None:
        """The column of that name; None when it is not known to exist."""
        name = name.casefold()
        found = self.columns.get(name)
        if found is not None:
            return found
        for shape, repeated in self.stars:
            found = shape.column(name)
            if found is not None:
                return replace(found, repeated=found.repeated + repeated)
        return None

    def may_have(self, name: str) -> bool:
        """Whether a column of that name can exist here."""
        if self.column(name) is not None:
            return True
        return not self.complete or any(shape.may_have(name) for shape, _ in self.stars)

    @property
    def single(self) -> bool:
        """At most one row."""
        return frozenset() in self.keys


def shape_of_table(name: str, table: TableFact | None, keys: frozenset[Key]) -> Shape:
    """A table as the catalogue knows it; an unknown one has no keys and any column."""
    if table is None:
        return Shape(name, base=True, complete=False)
    columns = {
        folded: Column(folded, fact, table) for folded, fact in table.columns.items() if fact.state != "rejected"
    }
    for key in (*keys, *((frozenset([table.date.casefold()]),) if table.date else ())):
        for column in key:
            columns.setdefault(column, Column(column, None, table))
    return Shape(name, keys, columns, table=table, base=True, complete=table.complete)


AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Count: "count",
    exp.Median: "median",
    exp.PercentileCont: "median",
    exp.PercentileDisc: "median",
    exp.Quantile: "median",
    exp.ApproxDistinct: "count_distinct",
}


def aggregate_kind(node: exp.Expr) -> str | None:
    """The aggregate's word in `Column.made_by`; None when the node is no aggregate that matters."""
    for kind, word in AGGREGATES.items():
        if isinstance(node, kind):
            distinct = isinstance(node.this, exp.Distinct)
            return f"{word}_distinct" if distinct and not word.endswith("distinct") else word
    return None


def aggregates(select: exp.Select) -> Iterator[exp.AggFunc]:
    """Aggregates of this select itself: none of its subqueries, none that runs over a window."""
    clauses = [
        *select.expressions,
        *(select.args[name] for name in ("having", "order", "qualify") if select.args.get(name)),
    ]
    for clause in clauses:
        for node in clause.walk(prune=lambda part: isinstance(part, exp.Query)):
            windowed = isinstance(node.parent, exp.Window) and node.arg_key == "this"
            if isinstance(node, exp.AggFunc) and not windowed and not _filtered_window(node):
                yield node


def _filtered_window(node: exp.Expr) -> bool:
    """`sum(x) filter (where …) over (…)`, `first(x ignore nulls) over …`."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        if isinstance(parent.parent, exp.Window) and parent.arg_key == "this":
            return True
        parent = parent.parent
    return False


def value_columns(node: exp.Expr) -> list[exp.Column]:
    """Columns whose values an aggregate takes in; the conditions of a CASE only choose among them."""
    found: list[exp.Column] = []

    def visit(part: exp.Expr) -> None:
        match part:
            case exp.Column():
                found.append(part)
            case exp.Query():
                return
            case exp.If():
                for branch in (part.args.get("true"), part.args.get("false")):
                    if branch is not None:
                        visit(branch)
            case exp.Case():
                for branch in (*part.args.get("ifs", ()), part.args.get("default")):
                    if branch is not None:
                        visit(branch)
            case exp.Predicate() | exp.Filter():
                if isinstance(part, exp.Filter):
                    visit(part.this)
            case _:
                for child in part.iter_expressions():
                    visit(child)

    for child in node.iter_expressions():
        visit(child)
    return found
