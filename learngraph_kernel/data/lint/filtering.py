"""Rules about conditions: records that do not count, codes, dates, join columns, outer joins, NULLs, missing joins."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from learngraph_kernel.data.catalogue.values import TableFact
from learngraph_kernel.data.lint.joins import alternatives
from learngraph_kernel.data.lint.report import Report
from learngraph_kernel.data.lint.view import View
from learngraph_kernel.naming import suggestion

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Like, exp.ILike, exp.In)
_ZONED = ("timestamptz", "timestamp with time zone", "timestamp_tz", "timestampltz")


def check_valid(view: View, report: Report) -> None:
    """A summary over a table whose records do not all count, without the condition that tells them apart."""
    if not view.aggregated:
        return
    for alias, shape in view.shapes.items():
        table = shape.table if shape.base else None
        if table is None or not table.valid or not table.certain:
            continue
        names = _columns_of(table.valid, report.dialect)
        if names is None or _restricted(view, alias, names):
            continue
        measured = any(view.locate(column) == alias for node in view.aggregated for column in node.find_all(exp.Column))
        only = len(view.shapes) == 1
        report.add(
            "missing_valid",
            "error" if measured or only else "warning",
            _table_node(view, alias),
            f"not every row of {shape.name} counts; the rows that do satisfy  {table.valid}",
            example=f"a row for which  {table.valid}  is false is in the result",
            rewrite=_with_condition(view, report, alias, table.valid) if alias not in view.outer else None,
        )


def _columns_of(condition: str, dialect: str) -> set[str] | None:
    try:
        parsed = sqlglot.parse_one(condition, dialect=dialect)
    except SqlglotError:
        return None
    return {column.name.casefold() for column in parsed.find_all(exp.Column)}


def _restricted(view: View, alias: str, names: set[str]) -> bool:
    """Whether a condition (also one in a CASE or FILTER) looks at one of the columns, or the groups tell them apart."""
    looked = [*view.conditions, *(view.groups or ()), *(_filtered(node) for node in view.aggregated)]
    for part in looked:
        for column in part.find_all(exp.Column):
            if column.name.casefold() in names and view.locate(column) == alias:
                return True
    return False


def _filtered(node: exp.Expr) -> exp.Expr:
    """An aggregate with its FILTER."""
    return node.parent if isinstance(node.parent, exp.Filter) else node


def _with_condition(view: View, report: Report, alias: str, valid: str) -> str:
    condition = sqlglot.parse_one(valid, dialect=report.dialect)
    for column in list(condition.find_all(exp.Column)):
        if not column.table:
            column.set("table", exp.to_identifier(_written(view, alias)))
    changed = view.select.copy().where(condition, copy=False)
    return report.with_replaced(view.select, changed)


def _written(view: View, alias: str) -> str:
    return str(_table_node(view, alias).alias_or_name)


def _table_node(view: View, alias: str) -> exp.Expr:
    for node in _from_nodes(view.select):
        if node.alias_or_name.casefold() == alias:
            return node
    return view.select


def _from_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    start = select.args.get("from_") or select.args.get("from")
    if start is not None:
        yield start.this
    for join in select.args.get("joins") or ():
        yield join.this


def check_codes(view: View, report: Report) -> None:
    """Comparisons with a code that the column does not have."""
    for node in view.select.walk(prune=lambda part: isinstance(part, exp.Query) and part is not view.select):
        if isinstance(node, exp.EQ | exp.NEQ):
            pairs = [(node.left, node.right), (node.right, node.left)]
        elif isinstance(node, exp.In):
            pairs = [(node.this, value) for value in node.expressions]
        else:
            continue
        for reference, value in pairs:
            if isinstance(reference, exp.Column) and isinstance(value, exp.Literal):
                _check_code(view, report, reference, value)


def _check_code(view: View, report: Report, reference: exp.Column, value: exp.Literal) -> None:
    column = view.column(reference)
    if column is None or column.fact is None or not column.fact.certain or not column.fact.codes or column.made_by:
        return
    codes = column.fact.codes
    if value.this not in codes:
        known = ", ".join(f"{code} ({meaning})" for code, meaning in list(codes.items())[:12])
        report.add(
            "unknown_code",
            "error",
            value,
            f"{reference.name} has no code {value.this!r}: {suggestion(value.this, codes, kind='codes')}",
            example=f"known: {known}",
        )


def check_dates(view: View, report: Report) -> None:
    """Filtering or grouping by another date than the business date."""
    for node in [*view.conditions, *(view.groups or ())]:
        for reference in node.find_all(exp.Column):
            alias = view.locate(reference)
            table = view.shapes[alias].table if alias is not None and view.shapes[alias].base else None
            if table is None or table.date is None or not table.certain or not view.aggregated:
                continue
            fact = table.column(reference.name)
            dated = fact is not None and fact.type is not None and _is_date(fact.type)
            if dated and reference.name.casefold() != table.date.casefold() and not _uses(view, table):
                report.add(
                    "wrong_date",
                    "warning",
                    reference,
                    f"the business date of {table.name} is {table.date}, not {reference.name}",
                    rewrite=report.with_replaced(reference, exp.column(table.date, table=reference.table or None)),
                )


def _is_date(kind: str) -> bool:
    return kind.casefold().startswith(("date", "timestamp"))


def _uses(view: View, table: TableFact) -> bool:
    return any(
        column.name.casefold() == str(table.date).casefold()
        for node in [*view.conditions, *(view.groups or ())]
        for column in node.find_all(exp.Column)
    )


def check_relations(view: View, report: Report) -> None:
    """Two related tables joined by a column whose partner is another."""
    for node in view.conditions:
        if not (isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column)):
            continue
        left, right = view.place(node.left), view.place(node.right)
        if left is None or right is None or left[0] == right[0]:
            continue
        tables = view.shapes[left[0]].table, view.shapes[right[0]].table
        if tables[0] is None or tables[1] is None:
            continue
        related = list(report.catalogue.between(tables[0].name, tables[1].name))
        pairs = {(a.casefold(), b.casefold()) for relation in related for a, b in relation.on}
        if not pairs or (left[1], right[1]) in pairs:
            continue
        partner = next((b for a, b in pairs if a == left[1]), None) or next(
            (a for a, b in pairs if b == right[1]), None
        )
        wanted = " or ".join(f"{tables[0].name}.{a} = {tables[1].name}.{b}" for a, b in sorted(pairs))
        report.add(
            "relation_contradicted",
            "error" if partner is not None else "warning",
            node,
            f"{tables[0].name} and {tables[1].name} are related by {wanted}",
        )


def check_outer_joins(view: View, report: Report) -> None:
    """A WHERE that no NULL passes, on the optional side of a LEFT JOIN."""
    for node in view.where:
        aliases = {view.locate(column) for column in node.find_all(exp.Column)}
        optional = aliases & view.outer
        if len(aliases) != 1 or not optional or not isinstance(node, _COMPARISONS) or _keeps_null(node):
            continue
        alias = next(iter(optional))
        assert alias is not None
        report.add(
            "outer_join_defeated",
            "warning",
            node,
            f"rows without a {view.shapes[alias].name} have NULL here and are dropped, as by an inner join: move the "
            "condition into ON to keep them, or write JOIN",
        )


def _keeps_null(node: exp.Expr) -> bool:
    return any(isinstance(part, exp.Coalesce | exp.Is | exp.NullSafeEQ | exp.Case | exp.If) for part in node.walk())


def check_not_in(view: View, report: Report) -> None:
    """`NOT IN (select …)` where the list may hold a NULL."""
    for node in view.where:
        negated = node.this.unnest() if isinstance(node, exp.Not) else None
        if not isinstance(negated, exp.In) or not isinstance(negated.args.get("query"), exp.Expr):
            continue
        query = negated.args["query"].unnest()
        if not isinstance(query, exp.Select) or len(query.expressions) != 1:
            continue
        chosen = query.expressions[0].unalias()
        if not isinstance(chosen, exp.Column) or _never_null(query, chosen, report):
            continue
        kept = query.copy().where(
            exp.column(chosen.name, table=chosen.table or None).is_(exp.null()).not_(), copy=False
        )
        report.add(
            "not_in_null",
            "warning",
            node,
            f"if one {chosen.name} is NULL, no row passes at all: leave the NULLs out, or write NOT EXISTS",
            example="3 not in (1, NULL) is neither true nor false",
            rewrite=report.with_replaced(query, kept),
        )


def _never_null(query: exp.Select, chosen: exp.Column, report: Report) -> bool:
    """A key's column, one that is tested already, or a column that is compared in the query's own WHERE."""
    where = query.args.get("where")
    if where is not None and any(
        column.name.casefold() == chosen.name.casefold() for column in where.find_all(exp.Column)
    ):
        return True
    for table in query.find_all(exp.Table):
        fact = report.catalogue.table(table.name, table.db)
        if fact is not None and any(chosen.name.casefold() in key for key in report.catalogue.unique(fact)):
            return True
    return False


def check_cross_joins(view: View, report: Report) -> None:
    """Tables in one FROM that no condition connects; an explicit CROSS JOIN is meant."""
    nodes = {node.alias_or_name.casefold(): node for node in _from_nodes(view.select)}
    explicit = {
        join.alias_or_name.casefold()
        for join in view.select.args.get("joins") or ()
        if join.kind == "CROSS" or join.args.get("using") or join.method == "NATURAL" or join.args.get("on")
    }
    groups = {alias: {alias} for alias in view.shapes}
    for node in view.conditions:
        for part in alternatives(node):
            together = {view.locate(column) for column in part.find_all(exp.Column)} & set(groups)
            if None in {view.locate(column) for column in part.find_all(exp.Column)}:
                return  # a condition that cannot be placed may connect anything
            merged = set().union(*(groups[alias] for alias in together if alias is not None)) if together else set()
            for alias in merged:
                groups[alias] = merged
    first = next(iter(view.shapes), None)
    for alias, shape in view.shapes.items():
        if alias == first or alias in explicit or first is None or alias in groups[first]:
            continue
        if any(view.shapes[other].single for other in groups[alias]) or any(
            view.shapes[other].single for other in groups[first]
        ):
            continue
        if alias not in nodes or isinstance(nodes[alias], exp.Lateral | exp.Unnest):
            continue
        based = shape.base and view.shapes[first].base
        report.add(
            "cross_join",
            "error" if based and shape.keys else "warning",
            nodes[alias],
            f"nothing connects {shape.name} with {view.shapes[first].name}: every row meets every row. Add the join "
            "condition, or write CROSS JOIN where that is meant",
        )


def check_zones(view: View, report: Report) -> None:
    """A time with a zone against one without."""
    for node in view.conditions:
        sides = [side for side in (node.args.get("this"), node.args.get("expression")) if isinstance(side, exp.Column)]
        kinds = [
            column.fact.type
            for column in map(view.column, sides)
            if column is not None and column.fact and column.fact.type
        ]
        zoned = [kind.casefold().startswith(_ZONED) for kind in kinds]
        if len(kinds) == 2 and zoned[0] != zoned[1] and all(_is_date(kind) for kind in kinds):
            report.add(
                "time_zone",
                "warning",
                node,
                "one side has a time zone and the other has none; the session's zone decides: convert one of them",
            )
