"""Rules about what may be added up or averaged: stocks, ratios, averages, distinct counts; whole-number division."""

from __future__ import annotations

from sqlglot import exp

from learngraph_kernel.data.lint.multiplying import measure_of
from learngraph_kernel.data.lint.report import Report
from learngraph_kernel.data.lint.shape import aggregate_kind, value_columns
from learngraph_kernel.data.lint.view import View

WHOLE_DIVISION = {"postgres", "sqlite", "tsql", "redshift", "trino", "presto", "databricks_ansi"}
"""Dialects in which `/` between whole numbers drops the rest."""


def check_measures(view: View, report: Report) -> None:
    """Stocks over time, ratios, averages of averages, distinct counts of groups."""
    for node in view.aggregated:
        kind = aggregate_kind(node)
        for reference in value_columns(node):
            if kind in ("sum", "avg"):
                _check_ratio(view, report, node, kind, reference)
            if kind == "sum":
                _check_stock(view, report, node, reference)
            _check_made(view, report, node, kind, reference)


def _check_ratio(view: View, report: Report, node: exp.AggFunc, kind: str, reference: exp.Column) -> None:
    alone = node.this.unnest() is reference
    if measure_of(view.column(reference)) != "ratio" or not alone:
        return  # a product (price * discount) weighs the ratio, as it should
    done = "added up" if kind == "sum" else "averaged without its weights"
    report.add(
        "ratio_added" if kind == "sum" else "ratio_averaged",
        "error",
        node,
        f"{reference.name} is a ratio and cannot be {done}: divide the sum of its numerator by that of its denominator",
        example="1 of 2 (50 %) and 90 of 100 (90 %) together are 91 of 102 (89 %); "
        + ("the sum says 140 %" if kind == "sum" else "the plain average says 70 %"),
    )


def _check_stock(view: View, report: Report, node: exp.AggFunc, reference: exp.Column) -> None:
    column = view.column(reference)
    if measure_of(column) != "semi-additive":
        return
    assert column is not None and column.fact is not None
    alias = view.locate(reference)
    over = column.fact.over or ((column.table.date,) if column.table is not None and column.table.date else ())
    constant = view.classes.find(("", ""))
    fixed = {constant, *(view.classes.find(place) for place in view.fixed())}
    loose = [name for name in over if alias is None or view.classes.find((alias, name.casefold())) not in fixed]
    if not loose:
        return
    across = ", ".join(loose)
    report.add(
        "semi_additive",
        "error",
        node,
        f"{reference.name} is a stock: it may not be added up over {across}. Group by {across}, fix it to one value, "
        "or take the last one of each period",
        example=f"10 in stock on each of 3 days are 10 in stock, not 30 ({reference.name} over {across})",
    )


def _check_made(view: View, report: Report, node: exp.AggFunc, kind: str | None, reference: exp.Column) -> None:
    column = view.column(reference)
    made = None if column is None else column.made_by
    if made == "avg" and kind in ("avg", "sum"):
        report.add(
            "average_of_averages" if kind == "avg" else "non_decomposable",
            "error",
            node,
            f"{reference.name} is an average of each group already; "
            + ("averaging it" if kind == "avg" else "adding it up")
            + " loses how many rows each group has: carry sum and count, and divide at the end",
            example="groups of 1 row (10) and 9 rows (20 each): the average of all is 19, the average of averages 15",
        )
    elif made in ("count_distinct", "median", "sum_distinct", "avg_distinct") and kind in ("sum", "avg", "median"):
        what = {"median": "a median"}.get(str(made), "a distinct count")
        report.add(
            "non_decomposable",
            "error",
            node,
            f"{reference.name} is {what} of each group; the whole's does not follow from it: compute it over the rows",
            example="a customer who bought in two groups counts in both: 2 by adding up, 1 in truth"
            if made == "count_distinct"
            else "medians 1 (of 1, 1, 9) and 5 (of 5) do not tell the median of the four",
        )


def check_division(view: View, report: Report) -> None:
    """`count(*) / count(*)` where that is a whole number."""
    if report.dialect not in WHOLE_DIVISION:
        return
    clauses = [
        *view.select.expressions,
        *(view.select.args[name] for name in ("having", "order") if view.select.args.get(name)),
    ]
    for clause in clauses:
        for node in clause.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(node, exp.Div) and _whole(view, node.left) and _whole(view, node.right):
                summed = bool(node.left.find(exp.AggFunc))
                decimal = exp.cast(node.left.copy(), "DECIMAL(38, 10)")
                report.add(
                    "integer_division",
                    "error" if summed else "warning",
                    node,
                    "both sides are whole numbers, so what is after the point is dropped: make one side a decimal",
                    example="1 / 2 is 0",
                    rewrite=report.with_replaced(node, exp.Div(this=decimal, expression=node.right.copy())),
                )


def _whole(view: View, node: exp.Expr) -> bool:
    """Whether a value is surely a whole number."""
    node = node.unnest()
    match node:
        case exp.Literal():
            return bool(node.is_int)
        case exp.Count():
            return True
        case exp.Sum() | exp.Max() | exp.Min() | exp.Neg():
            return _whole(view, node.this)
        case exp.Mul() | exp.Add() | exp.Sub():
            return _whole(view, node.left) and _whole(view, node.right)
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args.get("ifs") or ()]
            default = node.args.get("default")
            return all(_whole(view, branch) for branch in [*branches, *([default] if default is not None else [])])
        case exp.Column():
            column = view.column(node)
            if column is None:
                return False
            if column.made_by in ("count", "count_distinct"):
                return True
            kind = column.fact.type if column.fact is not None else None
            return (
                kind is not None
                and column.made_by is None
                and exp.DataType.build(kind).is_type(*exp.DataType.INTEGER_TYPES)
            )
    return False
