"""Values the metric tests share: snapshots in memory, and one-card files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from learngraph_kernel.evidence.metrics import CardLibrary, evaluate_set, parse_cards
from learngraph_kernel.evidence.values import Book, Column, InputRecord, MetricResult, SnapshotInfo, Value


class Table:
    """A SnapshotReader over a dict of columns."""

    def __init__(self, ref: str, columns: dict[str, list[Value]], truncated: Any = None) -> None:
        self.columns = columns
        rows = len(next(iter(columns.values()), []))
        names = tuple(Column(name, "any") for name in columns)
        self.info = SnapshotInfo(ref, "flights", "select 1", "0" * 64, names, rows, truncated)

    def cell(self, row: int, column: str) -> Value:
        return self.columns[column][row]

    def column(self, name: str) -> Sequence[Value]:
        return self.columns[name]

    def rows(self, start: int, stop: int) -> Iterator[tuple[Value, ...]]:
        return iter(list(zip(*self.columns.values(), strict=True))[start:stop])


def book(*tables: Table, **inputs: Value) -> Book:
    return Book(
        "r_1",
        inputs={name: InputRecord(name, value) for name, value in inputs.items()},
        snapshots={table.info.ref: table for table in tables},
    )


def card(expression: str = "x", name: str = "m", version: str = "1.0.0", **fields: Any) -> str:
    """One card as YAML; `inputs` defaults to x and y in the first row of week."""
    import json

    body = {"name": name, "version": version, "expression": expression, **fields}
    body.setdefault("inputs", {"x": "cell(week.r0.x)", "y": "cell(week.r0.y)"})
    return "- " + json.dumps(body, ensure_ascii=False)


def library(*cards: str) -> CardLibrary:
    return CardLibrary.of(parse_cards("metrics:\n" + "\n".join(cards), "metrics/weekly.yaml"))


@pytest.fixture
def one() -> Callable[..., MetricResult]:
    """Evaluates one card over one row of named values."""

    def run(expression: str, values: dict[str, Value] | None = None, **fields: Any) -> MetricResult:
        values = {"x": 1, "y": 2} if values is None else values
        fields.setdefault("inputs", {name: f"cell(week.r0.{name})" for name in values})
        table = Table("Q1", {name: [value] for name, value in values.items()})
        (result,) = evaluate_set(library(card(expression, **fields)), "weekly", {"week": "Q1"}, book=book(table))
        return result

    return run
