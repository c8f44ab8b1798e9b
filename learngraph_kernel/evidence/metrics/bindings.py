"""What a metric's inputs are bound to: `cell(week.r0.flown)`, `sum(week.amount)`, `input(target)`, `metric(flights)`.

`week` is a logical snapshot name; which snapshot it stands for is said when the cards are evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from learngraph_kernel.evidence.metrics.errors import CardError
from learngraph_kernel.naming import suggestion

Aggregate: TypeAlias = Literal["sum", "count", "min", "max", "mean"]
AGGREGATES: tuple[str, ...] = get_args(Aggregate)
KINDS = ("cell", *AGGREGATES, "input", "metric")


@dataclass(frozen=True, slots=True)
class CellBinding:
    """One cell: a logical snapshot, a row from 0, a column."""

    snapshot: str
    row: int
    column: str


@dataclass(frozen=True, slots=True)
class ColumnBinding:
    """An aggregate over a column, nulls left out; `count(week)` without a column counts rows."""

    aggregate: Aggregate
    snapshot: str
    column: str | None


@dataclass(frozen=True, slots=True)
class ParameterBinding:
    """A run parameter."""

    name: str


@dataclass(frozen=True, slots=True)
class MetricBinding:
    """The value of another metric of the same set."""

    name: str


Binding: TypeAlias = CellBinding | ColumnBinding | ParameterBinding | MetricBinding

_CALL = re.compile(r"\s*([^\W\d]\w*)\s*\((.*)\)\s*", re.DOTALL)
_EXAMPLES = "write cell(week.r0.flown), sum(week.flown), input(target) or metric(flights)"


def parse_binding(text: str, *, where: str) -> Binding:
    """Reads one binding. Raises CardError with the place and what may be written."""
    match = _CALL.fullmatch(text)
    if match is None:
        raise CardError(f"{text!r} is not a binding", where=where, remedy=_EXAMPLES)
    kind, inside = match[1], match[2].strip()
    if kind not in KINDS:
        raise CardError(
            f"unknown function {kind!r} in the binding {text!r}",
            where=where,
            remedy=suggestion(kind, KINDS, kind="bindings"),
        )
    if kind == "cell":
        return _cell(text, inside, where)
    if kind in AGGREGATES:
        return _aggregate(kind, text, inside, where)
    if not inside.isidentifier():
        raise CardError(f"{text!r} needs one name inside", where=where, remedy=f"write {kind}(name)")
    return ParameterBinding(inside) if kind == "input" else MetricBinding(inside)


def _cell(text: str, inside: str, where: str) -> CellBinding:
    dotted = re.fullmatch(r"([^\W\d]\w*)\.r([0-9]{1,9})\.(.+)", inside, re.DOTALL)
    listed = re.fullmatch(r"([^\W\d]\w*)\s*,\s*r?([0-9]{1,9})\s*,\s*(.+)", inside, re.DOTALL)
    match = dotted or listed
    if match is None:
        raise CardError(
            f"{text!r} is not a cell", where=where, remedy="write cell(week.r0.flown) or cell(week, 0, flown)"
        )
    return CellBinding(match[1], int(match[2]), _column(match[3]))


def _aggregate(kind: str, text: str, inside: str, where: str) -> ColumnBinding:
    aggregate: Aggregate = kind  # type: ignore[assignment]  # checked against KINDS by the caller
    if "(" in inside:
        remedy = (
            "an aggregate takes a column; aggregates of metrics or inputs cannot be expressed: query the rows instead"
        )
        raise CardError(f"{text!r} aggregates something that is not a column", where=where, remedy=remedy)
    if kind == "count" and inside.isidentifier():
        return ColumnBinding(aggregate, inside, None)
    match = re.fullmatch(r"([^\W\d]\w*)\s*[.,]\s*(.+)", inside, re.DOTALL)
    if match is None:
        raise CardError(f"{text!r} names no column", where=where, remedy=f"write {kind}(week.flown)")
    return ColumnBinding(aggregate, match[1], _column(match[2]))


def _column(text: str) -> str:
    text = text.strip()
    quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text
