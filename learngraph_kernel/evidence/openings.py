"""What a reader sees when a number is opened: plain JSON, complete in itself.

An opening is built once, when the report document is built, from the book alone; afterwards nothing needs the book. It
holds no run id and no clock, because the document's hash is part of the run's content hash and two runs of the same
notebook must agree: whoever renders an opening says which run it belongs to. Format: docs/architecture.md.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from learngraph_kernel.canonical import encode_value
from learngraph_kernel.evidence.display import safe_text
from learngraph_kernel.evidence.values import (
    Book,
    InputRecord,
    MetricInput,
    MetricResult,
    Passage,
    SnapshotInfo,
    SnapshotReader,
    Value,
)

Opening: TypeAlias = dict[str, Any]

CONTEXT_ROWS = 2  # rows shown on either side of a cited cell
FIRST_ROWS = 5  # rows shown of a column that was read whole
MOST_COLUMNS = 8  # columns shown around a cited cell
LONGEST_CELL = 200
LONGEST_PASSAGE = 2_000


def metric_opening(result: MetricResult, book: Book, language: str) -> Opening:
    """A metric: formula, substituted formula, inputs, the cells or columns they were read from, the queries."""
    windows: list[dict[str, Any]] = []
    queries: dict[str, SnapshotInfo] = {}
    seen: set[str] = set()
    _trace(result, book, windows, queries, seen)
    opening: Opening = {
        "ref": f"m:{result.name}",
        "kind": "metric",
        "title": title_of(result, language),
        "version": result.version,
        "set": result.set,
        "state": result.state,
        "reason": result.reason,
        "value": encode_value(result.value),
        "unit": result.unit,
        "formula": result.expression,
        "substituted": result.substituted,
        "inputs": [_input(item) for item in result.inputs],
        "cells": windows,
        "queries": [query(info) for info in queries.values()],
    }
    if result.also is not None:
        opening["also"] = {
            "version": result.also.version,
            "value": encode_value(result.also.value),
            "formula": result.also.expression,
            "substituted": result.also.substituted,
        }
    return opening


def cell_opening(reader: SnapshotReader, row: int, column: str, book: Book) -> Opening:
    """One cell: its value, the rows around it, the query."""
    info = reader.info
    return {
        "ref": f"{info.ref}.r{row}.{column}",
        "kind": "cell",
        "title": column,
        "type": next(item.type for item in info.columns if item.name == column),
        "value": _cell(reader.cell(row, column)),
        "cells": [window(reader, row, column)],
        "queries": [query(item) for item in lineage(info, book)],
    }


def table_opening(reader: SnapshotReader, columns: tuple[str, ...], first: int, last: int, book: Book) -> Opening:
    """Part of a snapshot, rows `first` to `last` (both included): every cell of it opens from here."""
    info = reader.info
    at = [index for name in columns for index, item in enumerate(info.columns) if item.name == name]
    return {
        "ref": info.ref,
        "kind": "table",
        "columns": list(columns),
        "types": [info.columns[index].type for index in at],
        "first_row": first,
        "rows": [[_cell(row[index]) for index in at] for row in reader.rows(first, last + 1)],
        "row_count": info.row_count,
        "queries": [query(item) for item in lineage(info, book)],
    }


def input_opening(record: InputRecord) -> Opening:
    """A run parameter."""
    return {
        "ref": f"i:{record.name}",
        "kind": "input",
        "title": record.title or record.name,
        "value": _cell(record.value),
    }


def name_opening(text: str, columns: tuple[str, ...], *, is_column: bool) -> Opening:
    """A table's or column's name, with the columns beside it."""
    return {
        "ref": f"{'c' if is_column else 't'}:{text}",
        "kind": "name",
        "title": text,
        "columns": list(columns),
    }


def passage_opening(passage: Passage, start: int, end: int) -> Opening:
    """A quotation: the passage round it. `start` and `end` are offsets of the quoted words in the shown text."""
    begin = max(0, start - LONGEST_PASSAGE // 2)
    shown = passage.text[begin : end + LONGEST_PASSAGE // 2]
    return {
        "ref": passage.ref,
        "kind": "quote",
        "title": passage.document,
        "place": passage.place,
        "text": shown,
        "start": start - begin,
        "end": end - begin,
    }


def query(info: SnapshotInfo) -> dict[str, Any]:
    """The statement behind a snapshot."""
    return {
        "ref": info.ref,
        "source": info.source,
        "sql": info.sql,
        "artifact": info.artifact,
        "row_count": info.row_count,
        "truncated": info.truncated,
        "derived_from": list(info.derived_from),
    }


def lineage(info: SnapshotInfo, book: Book) -> list[SnapshotInfo]:
    """A snapshot and what it was merged from, nearest first."""
    found: dict[str, SnapshotInfo] = {}
    waiting = [info]
    while waiting:
        current = waiting.pop(0)
        if current.ref not in found:
            found[current.ref] = current
            waiting += [book.snapshots[ref].info for ref in current.derived_from if ref in book.snapshots]
    return list(found.values())


def window(reader: SnapshotReader, row: int, column: str) -> dict[str, Any]:
    """The cited cell with two rows on either side; wide snapshots are narrowed to the columns beside it."""
    info = reader.info
    names = [item.name for item in info.columns]
    shown = _columns_around(names, column)
    first = max(0, row - CONTEXT_ROWS)
    rows = [
        [_cell(values[names.index(name)]) for name in shown] for values in reader.rows(first, row + CONTEXT_ROWS + 1)
    ]
    return {
        "ref": f"{info.ref}.r{row}.{column}",
        "snapshot": info.ref,
        "columns": shown,
        "first_row": first,
        "rows": rows,
        "row": row,
        "column": column,
        "row_count": info.row_count,
        "column_count": len(names),
    }


def column_window(reader: SnapshotReader, column: str) -> dict[str, Any]:
    """A column that was read whole: its first rows and how many there are."""
    info = reader.info
    names = [item.name for item in info.columns]
    shown = _columns_around(names, column)
    rows = [[_cell(values[names.index(name)]) for name in shown] for values in reader.rows(0, FIRST_ROWS)]
    return {
        "ref": f"{info.ref}.{column}",
        "snapshot": info.ref,
        "columns": shown,
        "first_row": 0,
        "rows": rows,
        "row": None,
        "column": column,
        "row_count": info.row_count,
        "column_count": len(names),
    }


def title_of(result: MetricResult, language: str) -> str:
    """The metric's title in a language, else in English, else in any, else its name."""
    titles = result.title
    return (
        titles.get(language) or titles.get(language[:2]) or titles.get("en") or next(iter(titles.values()), result.name)
    )


def split_ref(ref: str, book: Book) -> tuple[SnapshotReader, int | None, str] | None:
    """What a metric input's ref points at: (snapshot, row or None for the whole column, column); None if nowhere."""
    snapshot, _, rest = ref.partition(".")
    reader = book.snapshots.get(snapshot)
    if reader is None or not rest:
        return None
    names = {item.name for item in reader.info.columns}
    row, _, column = rest.partition(".")
    if row[:1] == "r" and row[1:].isdigit() and column in names and int(row[1:]) < reader.info.row_count:
        return reader, int(row[1:]), column
    return (reader, None, rest) if rest in names else None


def _trace(
    result: MetricResult, book: Book, windows: list[dict[str, Any]], queries: dict[str, SnapshotInfo], seen: set[str]
) -> None:
    for ref in (ref for item in result.inputs for ref in item.refs):
        if ref in seen:
            continue
        seen.add(ref)
        if ref.startswith("m:"):
            inner = book.metrics.get(ref[2:])
            if inner is not None:
                _trace(inner, book, windows, queries, seen)
            continue
        found = split_ref(ref, book)
        if found is None:
            continue
        reader, row, column = found
        windows.append(column_window(reader, column) if row is None else window(reader, row, column))
        for info in lineage(reader.info, book):
            queries.setdefault(info.ref, info)


def _input(item: MetricInput) -> dict[str, Any]:
    return {"name": item.name, "binding": item.binding, "refs": list(item.refs), "value": _cell(item.value)}


def _cell(value: Value) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_CELL:
        return safe_text(value, limit=LONGEST_CELL)
    if isinstance(value, bytes):
        return encode_value(value[:64])
    if isinstance(value, list | dict):  # nested columns are shown, not computed with
        return safe_text(str(value), limit=LONGEST_CELL)
    return encode_value(value)


def _columns_around(names: list[str], column: str) -> list[str]:
    if len(names) <= MOST_COLUMNS:
        return names
    at = names.index(column)
    first = min(max(0, at - MOST_COLUMNS // 2), len(names) - MOST_COLUMNS)
    chosen = names[first : first + MOST_COLUMNS]
    # The first column usually names the row, so it stays.
    return chosen if names[0] in chosen else [names[0], *chosen[1:]]
