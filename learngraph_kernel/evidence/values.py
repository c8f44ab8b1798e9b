"""The values that evidence is made of: plain frozen data that every other part agrees on.

A *snapshot* is the stored result of a query (`Q1`, `Q2`, … in the order of the run's calls), an *input* is a run
parameter, a *metric result* is one evaluation of a metric card, a *passage* is a retrieved piece of text. The `Book`
holds all of them for one run; citations resolve against it and nothing else. No I/O here: snapshots are read through
`SnapshotReader`, which whoever opened the artifact hands in.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

from learngraph_kernel.canonical import decode_value, encode_value

Value: TypeAlias = bool | int | float | Decimal | str | dt.date | dt.datetime | dt.time | dt.timedelta | bytes | None
"""What one cell, input or metric can hold."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a snapshot: its name and its Arrow type as text (`int64`, `decimal128(18, 2)`, …)."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What is recorded of a query's result.

    Attributes:
        ref: `Q1`, `Q2`, … unique in the run.
        source: the declared source that was asked.
        sql: the statement as written by the caller.
        artifact: sha256 of the stored Arrow IPC file.
        columns: in order.
        row_count: rows stored.
        truncated: `rows`, `bytes` or None; a truncated snapshot cannot feed a metric.
        derived_from: refs this was merged from, empty for a query.
        constants: columns that no table's data goes into (`select 45 as share`); a formal report cannot cite them.
    """

    ref: str
    source: str
    sql: str
    artifact: str
    columns: tuple[Column, ...]
    row_count: int
    truncated: Literal["rows", "bytes"] | None = None
    derived_from: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """JSON form, as kept in the ledger."""
        body: dict[str, Any] = {
            "ref": self.ref,
            "source": self.source,
            "sql": self.sql,
            "artifact": self.artifact,
            "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            "row_count": self.row_count,
            "truncated": self.truncated,
            "derived_from": list(self.derived_from),
        }
        return body | ({"constants": list(self.constants)} if self.constants else {})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SnapshotInfo:
        """The inverse of `as_json`."""
        return cls(
            ref=body["ref"],
            source=body["source"],
            sql=body["sql"],
            artifact=body["artifact"],
            columns=tuple(Column(item["name"], item["type"]) for item in body["columns"]),
            row_count=body["row_count"],
            truncated=body["truncated"],
            derived_from=tuple(body["derived_from"]),
            constants=tuple(body.get("constants", ())),
        )


class SnapshotReader(Protocol):
    """Read access to one stored snapshot."""

    @property
    def info(self) -> SnapshotInfo: ...

    def cell(self, row: int, column: str) -> Value:
        """The value at a row (0-based) and column. Raises KeyError or IndexError when there is none."""

    def column(self, name: str) -> Sequence[Value]:
        """All values of a column, in row order. Raises KeyError."""

    def rows(self, start: int, stop: int) -> Iterator[tuple[Value, ...]]:
        """Rows `start` to `stop` (exclusive, clipped), in column order."""


@dataclass(frozen=True, slots=True)
class CellRef:
    """A cell of a snapshot; written `Q1.r0.gmv`."""

    snapshot: str
    row: int
    column: str

    def __str__(self) -> str:
        return f"{self.snapshot}.r{self.row}.{self.column}"


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A run parameter; cited as `i:name`."""

    name: str
    value: Value
    title: str | None = None


@dataclass(frozen=True, slots=True)
class MetricInput:
    """One named input of a metric evaluation.

    Attributes:
        name: the name used in the card's expression.
        binding: the card's own words, e.g. `sum(week.amount)`.
        refs: what was read: `Q1.r0.gmv` for a cell, `Q1.amount` for a whole column, `i:week`, `m:other`.
        value: the value that went in.
    """

    name: str
    binding: str
    refs: tuple[str, ...]
    value: Value

    def as_json(self) -> dict[str, Any]:
        """JSON form, as kept in the ledger."""
        return {
            "name": self.name,
            "binding": self.binding,
            "refs": list(self.refs),
            "value": encode_value(self.value),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> MetricInput:
        """The inverse of `as_json`."""
        return cls(body["name"], body["binding"], tuple(body["refs"]), decode_value(body["value"]))


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One evaluation of one version of a metric card; cited as `m:name`.

    Attributes:
        state: `ok`, `missing` (no value; `reason` says why) or `incomparable` (a newer card version, see DESIGN 6).
        value: exact decimal; None unless `state` is `ok`.
        unit: e.g. `USD`, `%`, `flights`; None for a pure number.
        precision: digits after the point when displayed; None means as computed.
        substituted: the expression with the input values put in.
        also: under the `dual` rule, the evaluation by the pinned older version.
    """

    name: str
    version: str
    title: Mapping[str, str]
    value: Decimal | None
    unit: str | None
    precision: int | None
    state: Literal["ok", "missing", "incomparable"]
    reason: str | None
    required: bool
    expression: str
    substituted: str
    inputs: tuple[MetricInput, ...]
    set: str = ""
    additivity: Literal["sum", "semi-additive", "ratio", "none"] = "none"
    also: MetricResult | None = None

    def as_json(self) -> dict[str, Any]:
        """JSON form, as kept in the ledger."""
        plain = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return plain | {
            "title": dict(self.title),
            "value": encode_value(self.value),
            "inputs": [item.as_json() for item in self.inputs],
            "also": None if self.also is None else self.also.as_json(),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> MetricResult:
        """The inverse of `as_json`."""
        typed = {
            "value": decode_value(body["value"]),
            "inputs": tuple(MetricInput.from_json(item) for item in body["inputs"]),
            "also": None if body["also"] is None else cls.from_json(body["also"]),
        }
        known = {item.name for item in dataclasses.fields(cls)}
        return cls(**{**{key: value for key, value in body.items() if key in known}, **typed})


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved piece of text; cited with `[[q:K1|the exact words]]`."""

    ref: str
    text: str
    document: str
    place: str


@dataclass(slots=True)
class Book:
    """Everything one run may cite."""

    run_id: str
    inputs: dict[str, InputRecord] = field(default_factory=dict)
    snapshots: dict[str, SnapshotReader] = field(default_factory=dict)
    metrics: dict[str, MetricResult] = field(default_factory=dict)
    passages: dict[str, Passage] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Known table names of the run's sources, with their columns."""
