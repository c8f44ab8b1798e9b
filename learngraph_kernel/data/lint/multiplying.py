"""Rules about joins that repeat rows: fan-out and chasm traps."""

from __future__ import annotations

from sqlglot import exp

from learngraph_kernel.data.lint.findings import Severity
from learngraph_kernel.data.lint.report import Report
from learngraph_kernel.data.lint.shape import Column, Shape, aggregate_kind, value_columns
from learngraph_kernel.data.lint.view import View

_ADDING = {"sum": "adds", "avg": "averages", "count": "counts", "median": "takes the median of"}


def check_repeated_rows(view: View, report: Report) -> None:
    """Fan-out and chasm traps of one select."""
    measured = [(node, sorted(_sources(view, node))) for node in view.aggregated if aggregate_kind(node) in _ADDING]
    for node, aliases in measured:
        if aliases:
            _check(view, report, node, aliases, [other for found, other in measured if found is not node])
        _check_inner(view, report, node)


def _sources(view: View, node: exp.Expr) -> set[str]:
    found = {view.locate(column) for column in value_columns(node)}
    return set() if None in found else {alias for alias in found if alias is not None}


def _check(view: View, report: Report, node: exp.AggFunc, aliases: list[str], others: list[list[str]]) -> None:
    repeats = view.repeats(aliases)
    words = _ADDING[str(aggregate_kind(node))]
    name = _names(view, aliases)
    if not repeats.known:
        if repeats.unknown and _accusable(view, node, aliases) and len(view.shapes) > 1:
            report.add(
                "fan_out",
                "unknown",
                node,
                f"whether the join repeats the rows of {name} is not known: no key of "
                f"{_names(view, list(repeats.unknown))} is in the catalogue",
            )
        return
    chasm = any(
        set(other) & set(repeats.known) and set(aliases) & set(view.repeats(other).known) for other in others if other
    )
    by = _names(view, list(repeats.known))
    severity: Severity = "error" if _accusable(view, node, aliases) else "warning"
    report.add(
        "chasm_trap" if chasm else "fan_out",
        severity,
        node,
        f"this {words} a value of {name} once for each matching row of {by}"
        + ("; both sides are summarised, and each repeats the other" if chasm else "")
        + f": summarise {name} on its own rows first (a subquery by the join's columns), then join",
        example=_example(view, aliases, repeats.known[0]),
        rewrite=_without_repeating(view, report, list(repeats.known)),
    )


def _without_repeating(view: View, report: Report, repeating: list[str]) -> str | None:
    """A join that only asks whether there is a partner, as EXISTS; None when the partner's columns are used."""
    joins = [join for join in view.select.args.get("joins") or () if join.alias_or_name.casefold() == repeating[0]]
    if len(repeating) != 1 or len(joins) != 1 or joins[0].side or joins[0].kind not in ("", "INNER"):
        return None
    join = joins[0]
    condition = join.args.get("on")
    used = [column for column in view.select.find_all(exp.Column) if view.locate(column) in (repeating[0], None)]
    if condition is None or any(column.find_ancestor(exp.Join) is not join for column in used):
        return None
    if any(not column.table for column in condition.find_all(exp.Column)):
        return None  # inside the subquery an unqualified name could mean another column
    changed = view.select.copy()
    changed.set("joins", [other.copy() for other in view.select.args["joins"] if other is not join])
    inner = exp.select("1").from_(join.this.copy()).where(condition.copy())
    return report.with_replaced(view.select, changed.where(exp.Exists(this=inner), copy=False))


def _accusable(view: View, node: exp.AggFunc, aliases: list[str]) -> bool:
    """COUNT(x) is only surely meant to count x's table when x is that table's key; sums and averages of values are."""
    columns = value_columns(node)
    if aggregate_kind(node) != "count":
        return bool(columns)
    if len(columns) != 1:
        return False
    return frozenset([columns[0].name.casefold()]) in view.shapes[aliases[0]].keys


def _check_inner(view: View, report: Report, node: exp.AggFunc) -> None:
    """Values whose rows a subquery has already repeated."""
    if aggregate_kind(node) == "count":
        return
    for reference in value_columns(node):
        column = view.column(reference)
        if column is None or not column.repeated or column.fact is None:
            continue
        by = ", ".join(dict.fromkeys(column.repeated))
        report.add(
            "fan_out",
            "error",
            node,
            f"the rows that {reference.name} describes are repeated for each matching row of {by} in the subquery it "
            "comes from: summarise it there before the join",
        )


def _names(view: View, aliases: list[str]) -> str:
    return " and ".join(view.shapes[alias].name for alias in aliases)


def _example(view: View, aliases: list[str], by: str) -> str:
    one, many = view.shapes[aliases[0]], view.shapes[by]
    return (
        f"one row of {one.name}{_key(one)} with the value 100 and two rows of {many.name}{_key(many)} that match it: "
        "the join holds 100 twice, the sum is 200"
    )


def _key(shape: Shape) -> str:
    key = min(shape.keys, key=lambda columns: (len(columns), sorted(columns)), default=None)
    return f" (key {', '.join(sorted(key))})" if key else ""


def measure_of(column: Column | None) -> str | None:
    """A column's measure when it is certain and the column is as the table has it."""
    if column is None or column.fact is None or not column.fact.certain or column.made_by is not None:
        return None
    return column.fact.measure
