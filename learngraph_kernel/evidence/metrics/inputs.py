"""Reading the values that go into a metric: from snapshots, run parameters and other metrics.

A value goes in as an exact decimal: integers and decimals as they are, a float through its shortest decimal form (the
digits a person would see), a boolean as 1 or 0. NaN and infinity count as null. Sums and means are added exactly and
rounded once; over no values they are null, as in SQL, and a count is 0. A cell of a snapshot without rows is null.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from learngraph_kernel.evidence.metrics.arithmetic import context, plain
from learngraph_kernel.evidence.metrics.bindings import CellBinding, ColumnBinding, MetricBinding, ParameterBinding
from learngraph_kernel.evidence.metrics.card import CardInput, MetricCard
from learngraph_kernel.evidence.metrics.errors import BindingError, InexactInput, TruncatedInput
from learngraph_kernel.evidence.values import Book, CellRef, MetricInput, MetricResult, SnapshotReader, Value
from learngraph_kernel.naming import suggestion

EXACT_SUM = decimal.Context(prec=2_000, Emin=-9_999, Emax=9_999, traps=[decimal.Inexact, decimal.InvalidOperation])
"""Enough digits for any sum of doubles and DECIMAL(38) values without rounding; anything beyond is an error."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An input as read: the record of it, the number that goes in, and why there is none."""

    record: MetricInput
    number: Decimal | None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the inputs of one evaluation can see."""

    book: Book
    bindings: Mapping[str, str]
    results: Mapping[str, MetricResult]


def read_input(card: MetricCard, item: CardInput, around: Surroundings) -> Reading:
    """The value of one input.

    Raises:
        BindingError: no such snapshot, column, row, parameter, or a value that is no number.
        TruncatedInput: the snapshot is truncated.
        InexactInput: a float goes into an exact card.
    """
    where = f"{card.place}, input {item.name} = {item.text}"
    binding = item.binding
    if isinstance(binding, MetricBinding):
        return _from_metric(item, around.results[binding.name])
    if isinstance(binding, ParameterBinding):
        return _from_parameter(card, item, binding, around.book, where)
    reader = _snapshot(binding.snapshot, around, where)
    if isinstance(binding, CellBinding):
        return _from_cell(card, item, binding, reader, where)
    return _from_column(card, item, binding, reader, where)


def _from_metric(item: CardInput, result: MetricResult) -> Reading:
    record = MetricInput(item.name, item.text, (f"m:{result.name}",), result.value)
    note = None if result.value is not None else f"metric {result.name} has no value ({result.reason})"
    return Reading(record, result.value, note)


def _from_parameter(card: MetricCard, item: CardInput, binding: ParameterBinding, book: Book, where: str) -> Reading:
    if binding.name not in book.inputs:
        raise BindingError(
            f"the run has no input {binding.name!r}",
            where=where,
            remedy=suggestion(binding.name, book.inputs, kind="inputs"),
        )
    value = book.inputs[binding.name].value
    number = to_number(value, exact=card.exact, where=where, ref=f"i:{binding.name}")
    note = None if number is not None else f"i:{binding.name} is null"
    return Reading(MetricInput(item.name, item.text, (f"i:{binding.name}",), value), number, note)


def _snapshot(name: str, around: Surroundings, where: str) -> SnapshotReader:
    snapshots = around.book.snapshots
    ref = around.bindings.get(name, name)
    if name not in around.bindings and name not in snapshots:
        raise BindingError(
            f"nothing is bound to the snapshot name {name!r}",
            where=where,
            remedy=f'bind it, {{"{name}": "Q1"}}; {suggestion(name, around.bindings, kind="bound names")}',
        )
    if ref not in snapshots:
        raise BindingError(
            f"{name!r} is bound to {ref!r}, which is no snapshot of this run",
            where=where,
            remedy=suggestion(ref, snapshots, kind="snapshots"),
        )
    info = snapshots[ref].info
    if info.truncated is not None:
        raise TruncatedInput(
            f"{ref} is truncated (limit on {info.truncated}) and cannot feed a metric",
            where=where,
            remedy="aggregate in the query, narrow it, or raise the source's limit",
            details={"snapshot": ref, "truncated": info.truncated},
        )
    return snapshots[ref]


def _check_column(reader: SnapshotReader, column: str, where: str) -> None:
    columns = [item.name for item in reader.info.columns]
    if column not in columns:
        raise BindingError(
            f"{reader.info.ref} has no column {column!r}",
            where=where,
            remedy=suggestion(column, columns, kind="columns"),
        )


def _from_cell(card: MetricCard, item: CardInput, binding: CellBinding, reader: SnapshotReader, where: str) -> Reading:
    info = reader.info
    _check_column(reader, binding.column, where)
    ref = str(CellRef(info.ref, binding.row, binding.column))
    if info.row_count == 0:
        return Reading(MetricInput(item.name, item.text, (info.ref,), None), None, f"{info.ref} has no rows")
    if binding.row >= info.row_count:
        raise BindingError(
            f"{info.ref} has no row {binding.row}", where=where, remedy=f"rows are r0 to r{info.row_count - 1}"
        )
    value = reader.cell(binding.row, binding.column)
    number = to_number(value, exact=card.exact, where=where, ref=ref)
    note = None if number is not None else f"{ref} is {'null' if value is None else repr(value)}"
    recorded = value if number is not None else None
    return Reading(MetricInput(item.name, item.text, (ref,), recorded), number, note)


def _from_column(
    card: MetricCard, item: CardInput, binding: ColumnBinding, reader: SnapshotReader, where: str
) -> Reading:
    info = reader.info
    if binding.column is None:
        rows = Decimal(info.row_count)
        return Reading(MetricInput(item.name, item.text, (info.ref,), info.row_count), rows)
    _check_column(reader, binding.column, where)
    ref = f"{info.ref}.{binding.column}"
    column = reader.column(binding.column)
    if binding.aggregate == "count":
        count = sum(not _is_null(value) for value in column)
        return Reading(MetricInput(item.name, item.text, (ref,), count), Decimal(count))
    try:
        number = _aggregate(binding, _numbers(column, card.exact, where, info.ref, binding.column))
    except decimal.DecimalException as error:
        raise BindingError(
            f"the values of {ref} are out of range", where=where, remedy="scale them in the query"
        ) from error
    value: Value = number
    if number is not None and number == number.to_integral_value() and number.as_tuple().exponent == 0:
        value = int(number)
    note = None if number is not None else f"{ref} holds no values"
    return Reading(MetricInput(item.name, item.text, (ref,), value), number, note)


def _numbers(column: Sequence[Value], exact: bool, where: str, snapshot: str, name: str) -> list[Decimal]:
    found = []
    for row, value in enumerate(column):
        # The two common cases, a million times over.
        if type(value) is int:
            found.append(Decimal(value))
            continue
        if type(value) is float and not exact and math.isfinite(value):
            found.append(Decimal(repr(value)))
            continue
        number = to_number(value, exact=exact, where=where, ref=CellRef(snapshot, row, name))
        if number is not None:
            found.append(number)
    return found


def _aggregate(binding: ColumnBinding, numbers: list[Decimal]) -> Decimal | None:
    if not numbers:
        return None
    match binding.aggregate:
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case "mean":
            # The exact sum, divided and rounded once.
            return plain(context().divide(exact_sum(numbers), Decimal(len(numbers))))
    return plain(context().plus(exact_sum(numbers)))


def exact_sum(numbers: Iterable[Decimal]) -> Decimal:
    """The sum without rounding, whatever the order."""
    total = Decimal(0)
    for number in numbers:
        total = EXACT_SUM.add(total, number)
    return total


def _is_null(value: Value) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or (isinstance(value, Decimal) and not value.is_finite())


def to_number(value: Value, *, exact: bool, where: str, ref: object) -> Decimal | None:
    """A cell or parameter as a decimal; None for null, NaN and infinity.

    Raises:
        InexactInput: a float, while `exact`. BindingError: text, a date, bytes.
    """
    if exact and isinstance(value, float):
        raise InexactInput(
            f"{ref} holds the float {value!r}, but the card asks for exact decimals",
            where=where,
            remedy="cast it in the query: CAST(amount AS DECIMAL(18, 2))",
        )
    if _is_null(value):
        return None
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int):
        return Decimal(int(value))
    if isinstance(value, float):
        return plain(Decimal(repr(value)))
    raise BindingError(
        f"{ref} holds {type(value).__name__} {value!r:.60}, not a number",
        where=where,
        remedy="convert it in the query",
    )
