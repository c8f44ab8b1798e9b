"""Linting a text: statements, their selects from the inside out, every rule on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from learngraph_kernel.data.catalogue.values import Catalogue
from learngraph_kernel.data.lint import filtering, multiplying, summarising
from learngraph_kernel.data.lint.findings import Finding
from learngraph_kernel.data.lint.places import Places
from learngraph_kernel.data.lint.report import Report
from learngraph_kernel.data.lint.shape import Shape
from learngraph_kernel.data.lint.view import View, view_of

CHECKS: tuple[Callable[[View, Report], None], ...] = (
    multiplying.check_repeated_rows,
    summarising.check_measures,
    summarising.check_division,
    filtering.check_valid,
    filtering.check_codes,
    filtering.check_dates,
    filtering.check_relations,
    filtering.check_outer_joins,
    filtering.check_not_in,
    filtering.check_cross_joins,
    filtering.check_zones,
)


def lint(text: str, catalogue: Catalogue, *, dialect: str = "duckdb") -> tuple[Finding, ...]:
    """What is wrong with the statements of a text.

    Args:
        text: SQL, any number of statements.
        catalogue: what is known of the source.
        dialect: as sqlglot calls it (`duckdb`, `postgres`, `mysql`, `sqlite`, …).

    Returns: findings in the order of their places. A text that is not understood gives one `unparsed`.
    """
    try:
        language = sqlglot.Dialect.get_or_raise(dialect)
        tokens = language.tokenize(text)
        statements = [statement for statement in language.parser().parse(tokens, text) if statement is not None]
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        return (Finding("unparsed", "unknown", 1, 0, len(text), f"not understood as {dialect}: {reason}"),)
    places = Places(text, tokens)
    found: list[Finding] = []
    for statement in statements:
        for query in _queries(statement):
            report = Report(places, catalogue, dialect, statement)
            _lint_query(query, report)
            found += report.findings
    return tuple(sorted(found, key=lambda finding: (finding.start, finding.end, finding.rule)))


def _queries(statement: exp.Expr) -> Iterator[exp.Query]:
    """The outermost queries of a statement: itself, or what it stores, inserts or explains."""
    for node in statement.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(node, exp.Query):
            yield node


def _lint_query(query: exp.Query, report: Report) -> None:
    shapes: dict[int, Shape] = {}
    for scope in traverse_scope(query):
        if isinstance(scope.expression, exp.Select):
            view = view_of(scope, report.catalogue, shapes)
            shapes[id(scope.expression)] = view.shape(_name(scope))
            for check in CHECKS:
                check(view, report)
        elif isinstance(scope.expression, exp.SetOperation):
            shapes[id(scope.expression)] = _combined(scope, shapes)


def _name(scope: Scope) -> str:
    parent = scope.expression.parent
    return (parent.alias if isinstance(parent, exp.CTE | exp.Subquery) else "") or "a subquery"


def _combined(scope: Scope, shapes: dict[int, Shape]) -> Shape:
    """A UNION: columns of its first branch where both agree how they were made; no key but of a distinct one's all."""
    operation = scope.expression
    assert isinstance(operation, exp.SetOperation)
    left = shapes.get(id(operation.left.unnest()))
    right = shapes.get(id(operation.right.unnest()))
    if left is None or right is None or len(left.columns) != len(right.columns) or left.stars or right.stars:
        return Shape(_name(scope), complete=False)
    columns = {
        name: column
        for (name, column), other in zip(left.columns.items(), right.columns.values(), strict=True)
        if column.made_by == other.made_by
    }
    keys = frozenset([frozenset(left.columns)]) if operation.args.get("distinct") else frozenset()
    return Shape(_name(scope), keys, columns, complete=False)
