"""Snapshots: the result of a query, stored once as an Arrow IPC file and read back without copying.

The file is written uncompressed so that it can be memory-mapped, in the canonical form of `arrow_form`, with no
metadata: the same rows in the same order give the same bytes, hence the same artifact. The order of rows is the query's
own: without ORDER BY an engine may give groups and joins in another order next time, and the hash says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from learngraph_kernel.data.arrow_form import canonical_batches, canonical_schema
from learngraph_kernel.data.cells import python_value, python_values
from learngraph_kernel.data.constants import constant_columns
from learngraph_kernel.data.guard import guard
from learngraph_kernel.data.limits import Limits
from learngraph_kernel.data.source import Source
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.evidence.values import Column, SnapshotInfo, Value

Truncation = Literal["rows", "bytes"]


class ArtifactSink(Protocol):
    """What an artifact is written to; hash and size are known once its context has ended."""

    sha256: str
    size: int

    def write(self, data: Any, /) -> int: ...


class Artifacts(Protocol):
    """The part of the artifact store that snapshots need."""

    def writer(self) -> AbstractContextManager[Any]:
        """A context manager yielding an `ArtifactSink`."""

    def path(self, sha256: str) -> Path: ...


class SnapshotUnreadable(LearnGraphError):
    """The stored file is not what its record says."""

    code = "snapshot_unreadable"


def take_snapshot(
    source: Source, sql: str, *, artifacts: Artifacts, ref: str, limits: Limits | None = None
) -> ArrowSnapshot:
    """Run one guarded query and store its result.

    Takes an open source, the statement, the store, the snapshot's ref (`Q1`) and limits (default: the source's own).
    Returns the stored snapshot, open for reading; `info.truncated` says whether a limit cut it. Raises SqlRefused,
    QueryFailed, QueryTimeout, UnsupportedType, and whatever the store raises; then nothing is stored.
    """
    limits = limits or source.limits
    statement = guard(sql, source.dialect)
    with source.execute(statement, limits) as execution:
        schema = canonical_schema(execution.schema)
        cut = _Cut(limits)
        batches = canonical_batches(cut.rows(execution.batches()), execution.schema, schema)
        with artifacts.writer() as sink, pa.ipc.new_file(pa.PythonFile(_Whole(sink), mode="w"), schema) as file:
            for batch in cut.bytes(batches):
                file.write_batch(batch)
    columns = tuple(Column(field.name, str(field.type)) for field in schema)
    typed_in = (
        constant_columns(statement.sql, statement.dialect, tuple(schema.names)) if statement.kind == "select" else ()
    )
    info = SnapshotInfo(ref, source.name, sql, sink.sha256, columns, cut.stored, cut.truncated, constants=typed_in)
    return open_snapshot(info, artifacts)


def open_snapshot(info: SnapshotInfo, artifacts: Artifacts) -> ArrowSnapshot:
    """A stored snapshot, memory-mapped. Raises SnapshotUnreadable, and whatever the store raises for a missing one."""
    path = artifacts.path(info.artifact)
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except (pa.ArrowException, OSError) as error:
        raise SnapshotUnreadable(
            f"snapshot {info.ref} cannot be read: {error}",
            where=str(path),
            remedy="`learngraph doctor --deep` re-hashes every artifact",
        ) from error
    if table.num_rows != info.row_count or table.column_names != [column.name for column in info.columns]:
        raise SnapshotUnreadable(f"snapshot {info.ref} has other rows or columns than recorded", where=str(path))
    return ArrowSnapshot(info, table)


class _Whole:
    """A file for pyarrow that writes every byte it is given, whatever the sink takes at a time."""

    closed = False

    def __init__(self, sink: ArtifactSink) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += self._sink.write(view[done:])
        return len(view)

    def flush(self) -> None:
        """The sink flushes when its own context ends."""

    def close(self) -> None:
        self.closed = True


class _Cut:
    """Lets a result through up to its limits and remembers what it cut."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.truncated: Truncation | None = None
        self.stored = 0

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = self._limits.rows
        for batch in batches:
            if batch.num_rows > left:
                self.truncated = "rows"
                yield batch.slice(0, left)
                return
            left -= batch.num_rows
            yield batch

    def bytes(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left = self._limits.bytes
        for batch in batches:
            if batch.nbytes > left:
                self.truncated = "bytes"
                batch = batch.slice(0, _rows_within(batch, left))
                self.stored += batch.num_rows
                if batch.num_rows:
                    yield batch
                return
            left -= batch.nbytes
            self.stored += batch.num_rows
            yield batch


def _rows_within(batch: pa.RecordBatch, size: int) -> int:
    """The most leading rows of a batch that fit into `size` bytes."""
    low, high = 0, batch.num_rows
    while low < high:
        middle = (low + high + 1) // 2
        if batch.slice(0, middle).nbytes <= size:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class ArrowSnapshot:
    """One stored snapshot, read through Arrow; implements `evidence.values.SnapshotReader`.

    Attributes:
        table: the mapped table; nested values are lists of plain values or dictionaries.
    """

    info: SnapshotInfo
    table: pa.Table

    def cell(self, row: int, column: str) -> Value:
        """The value at a row (0-based) and column. Raises KeyError, IndexError, UnreadableCell."""
        values = self._column(column)
        if not 0 <= row < self.table.num_rows:
            raise IndexError(f"{self.info.ref} has no row {row}: it has {self.table.num_rows}")
        value: Value = python_value(values[row])
        return value

    def column(self, name: str) -> list[Value]:
        """All values of a column, in row order. Raises KeyError, UnreadableCell."""
        return python_values(self._column(name))

    def rows(self, start: int, stop: int) -> Iterator[tuple[Value, ...]]:
        """Rows `start` to `stop` (exclusive, clipped), in column order."""
        start, stop = max(0, start), min(stop, self.table.num_rows)
        part = self.table.slice(start, max(0, stop - start))
        columns = [python_values(column) for column in part.columns]
        return zip(*columns, strict=True) if columns else iter(())

    def _column(self, name: str) -> pa.ChunkedArray:
        index = self.table.schema.get_field_index(name)
        if index < 0:
            raise KeyError(name)
        return self.table.column(index)
