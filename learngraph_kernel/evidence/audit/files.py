"""Tables and texts from files: CSV, TSV, Parquet, XLSX, JSON, JSON lines. The only module of the audit that opens
anything.

Whatever the format, a table leaves here as rows of strings with its header line first, as a person would see it: an
XLSX cell of 0.081 formatted as a percentage is `8.1%`. Text is UTF-8 (with or without a byte order mark) or UTF-16
with one; bytes that are neither are read as GB18030 if they decode as that without a gap, and the caller is told.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from learngraph_kernel.errors import BadInput, Unavailable

Rows: TypeAlias = list[list[str]]
Notice: TypeAlias = Callable[[str], None]


class AuditInput(BadInput):
    """A text or a file of facts that cannot be read."""

    code = "audit_input"


def read_text(path: Path, notice: Notice) -> str:
    """The text of a file. Takes its path and where to say that it was not UTF-8. Raises AuditInput."""
    return decode(_bytes(path), str(path), notice)


def decode(data: bytes, where: str, notice: Notice) -> str:
    """Text from bytes; raises AuditInput naming `where` when they are empty or no text."""
    if not data.strip():
        raise AuditInput("the file is empty", where=where, remedy="pass a file with content")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = _gb18030(data, where, error, notice)
    if "\x00" in text:
        raise AuditInput("this is binary data, not text", where=where, remedy="pass a plain text or Markdown file")
    return text


def _gb18030(data: bytes, where: str, error: UnicodeDecodeError, notice: Notice) -> str:
    try:
        text = data.decode("gb18030")
    except UnicodeDecodeError:
        raise AuditInput(
            f"not UTF-8 (byte {error.start}: 0x{data[error.start]:02x}) and not GB18030 either",
            where=where,
            remedy="save it as UTF-8",
        ) from error
    notice(f"{where}: not UTF-8, read as GB18030")
    return text


def read_facts(paths: Sequence[Path], notice: Notice) -> dict[str, Rows]:
    """All tables of several files, by name.

    Takes the paths and where to say what was assumed. A file of one table gives a table named as the file; a workbook
    gives `file.xlsx[Sheet]`, a JSON object of tables `file.json[name]`. Two files of one name keep their folders in the
    name. Raises AuditInput, or Unavailable when a reader is not installed.
    """
    names = [path.name for path in paths]
    tables: dict[str, Rows] = {}
    for path in dict.fromkeys(paths):
        name = path.name if names.count(path.name) == 1 else str(path)
        found = _read(path, name, notice)
        if not any(cell for rows in found.values() for row in rows for cell in row):
            raise AuditInput("holds no table: every cell is empty", where=str(path), remedy="pass a file with rows")
        tables.update(found)
    return tables


def _read(path: Path, name: str, notice: Notice) -> dict[str, Rows]:
    data = _bytes(path)
    if not data:
        raise AuditInput("the file is empty", where=str(path), remedy="pass a file with rows")
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return {name: _parquet(path)}
    if suffix in (".xlsx", ".xlsm"):
        return _workbook(path, name)
    if suffix == ".xls":
        raise AuditInput("the old .xls format is not read", where=str(path), remedy="save it as .xlsx or .csv")
    if suffix == ".json":
        return _json(decode(data, str(path), notice), path, name)
    if suffix in (".jsonl", ".ndjson"):
        return {name: _json_lines(decode(data, str(path), notice), path)}
    if suffix in (".csv", ".tsv", ".txt", ""):
        return {name: _csv(decode(data, str(path), notice), path, suffix)}
    raise AuditInput(
        f"unknown kind of facts: {suffix}", where=str(path), remedy="pass .csv, .tsv, .parquet, .xlsx, .json or .jsonl"
    )


def _bytes(path: Path) -> bytes:
    if path.is_dir():
        raise AuditInput("this is a folder", where=str(path), remedy="name the files in it")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise AuditInput("no such file", where=str(path), remedy="check the path") from error
    except OSError as error:
        raise AuditInput(
            f"cannot be read: {error.strerror}", where=str(path), remedy="check its permissions"
        ) from error


# --- formats


def _csv(text: str, path: Path, suffix: str) -> Rows:
    sample = text[:20_000]
    delimiter = "\t" if suffix == ".tsv" else _delimiter(sample)
    try:
        return [
            [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        ]
    except csv.Error as error:
        raise AuditInput(f"is no CSV: {error}", where=str(path), remedy="check its quotes and separators") from error


def _delimiter(sample: str) -> str:
    """The separator that cuts most lines into equally many cells; the comma when none does."""
    best, most = ",", 0.0
    for candidate in ",;\t|":
        widths = [len(row) for row in csv.reader(io.StringIO(sample, newline=""), delimiter=candidate) if row]
        usual = max(set(widths), key=lambda width: (widths.count(width), width)) if widths else 1
        score = widths.count(usual) / len(widths) if usual > 1 else 0.0
        if score > most:
            best, most = candidate, score
    return best


def _parquet(path: Path) -> Rows:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise AuditInput("is no Parquet file", where=str(path), remedy="check how it was written") from error
    columns = [[_text(value) for value in column.to_pylist()] for column in table.columns]
    return [list(table.column_names), *(list(row) for row in zip(*columns, strict=True))]


def _workbook(path: Path, name: str) -> dict[str, Rows]:
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise Unavailable(
            "reading .xlsx needs openpyxl, which is not installed",
            where=str(path),
            remedy="pip install 'learngraph[excel]'",
        ) from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, InvalidFileException) as error:
        raise AuditInput(
            "is no XLSX workbook", where=str(path), remedy="open it and save it as .xlsx or .csv"
        ) from error
    try:
        return {
            f"{name}[{sheet.title}]": [[_excel_text(cell) for cell in row] for row in sheet.iter_rows()]
            for sheet in book.worksheets
        }
    finally:
        book.close()


_MONEY_FORMAT = re.compile(r"\[\$([A-Z]{3}|[A-Z]{0,2}[$€£¥₹₩])[^\]]*\]|([$€£¥])")
"""`[$€-407]`, `[$USD]`, `"$"#,##0`: what Excel shows before or behind the number."""


def _excel_text(cell: Any) -> str:
    value = cell.value
    number_format = getattr(cell, "number_format", None) or ""
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in number_format:
        percent = (Decimal(repr(value)) * 100).normalize()
        return f"{percent:f}%"
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and (money := _MONEY_FORMAT.search(number_format))
    ):
        return f"{'-' if value < 0 else ''}{(money[1] or money[2]).strip()}{_text(abs(value))}"
    return _text(value)


def _text(value: Any) -> str:
    """A cell's value as text that `parse_cell` reads back."""
    if value is None:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    return str(value).strip()


def _json(text: str, path: Path, name: str) -> dict[str, Rows]:
    try:
        body = json.loads(text, parse_float=str, parse_int=str, parse_constant=lambda _: None)
    except RecursionError as error:
        raise AuditInput("this JSON is nested too deeply", where=str(path), remedy="pass a plain table") from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text[: error.pos].strip().count("\n") == 0 and text[error.pos - 1] == "\n":
            return {name: _json_lines(text, path)}  # JSON lines under the plain suffix
        raise AuditInput(
            f"is no JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            where=str(path),
            remedy="check the file",
        ) from error
    rows = _json_table(body)
    if rows is not None:
        return {name: rows}
    if isinstance(body, Mapping) and body:
        tables = {f"{name}[{key}]": _json_table(value) for key, value in body.items() if key != "schema"}
        kept = {key: table for key, table in tables.items() if table is not None}
        if kept and all(
            f"{name}[{key}]" in kept or _scalars([value]) for key, value in body.items() if key != "schema"
        ):
            return kept  # a title or a date beside the tables is no table
    raise AuditInput(
        "this JSON is no table",
        where=str(path),
        remedy="pass a list of rows, a list of objects, an object of columns, or an object of such tables",
    )


def _json_table(body: Any) -> Rows | None:
    """Rows from a list of lists, a list of objects, an object of columns, or `{"columns", "rows"}`; else None."""
    if isinstance(body, list) and body:
        if all(isinstance(row, list) for row in body):
            return (
                [[_json_text(cell) for cell in row] for row in body]
                if _scalars(c for row in body for c in row)
                else None
            )
        if all(isinstance(row, Mapping) for row in body):
            body = [_flat(row) for row in body]
            header = list(dict.fromkeys(key for row in body for key in row))
            if _scalars(cell for row in body for cell in row.values()):
                return [header, *([_json_text(row.get(key)) for key in header] for row in body)]
        return None
    if not isinstance(body, Mapping) or not body:
        return None
    rows = body.get("rows", body.get("data"))
    if isinstance(body.get("columns"), list) and isinstance(rows, list):
        header = [
            str(column.get("name", "")) if isinstance(column, Mapping) else str(column) for column in body["columns"]
        ]
        names = body.get("index")  # as pandas splits a frame
        if isinstance(names, list) and _names_rows(names, rows):
            header, rows = ["", *header], [[name, *row] for name, row in zip(names, rows, strict=True)]
        inner = _json_table([header, *rows]) if all(isinstance(row, list) for row in rows) else None
        return inner or _json_table(rows)
    if all(isinstance(column, list) and _scalars(column) for column in body.values()):
        longest = max(len(column) for column in body.values())
        cells = [[_json_text(cell) for cell in column] + [""] * (longest - len(column)) for column in body.values()]
        return [list(body), *(list(row) for row in zip(*cells, strict=True))]
    if _scalars(body.values()):
        return [["name", "value"], *([key, _json_text(value)] for key, value in body.items())]
    return None


def _names_rows(names: list[Any], rows: list[Any]) -> bool:
    """Whether an index says more than the rows' places do."""
    fits = len(names) == len(rows) and all(isinstance(row, list) for row in rows)
    return fits and [str(name) for name in names] != [str(place) for place in range(len(rows))]


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object with objects inside as one level: `{"x": {"y": 5}}` → `{"x.y": 5}`."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _scalars(values: Any) -> bool:
    return all(value is None or isinstance(value, str | bool) for value in values)


def _json_text(value: str | bool | None) -> str:
    return _text(value)


def _json_lines(text: str, path: Path) -> Rows:
    records: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                records.append(json.loads(line, parse_float=str, parse_int=str, parse_constant=lambda _: None))
            except json.JSONDecodeError as error:
                raise AuditInput(
                    f"line {number} is no JSON: {error.msg}", where=str(path), remedy="check the file"
                ) from error
    rows = _json_table(records)
    if rows is None:
        raise AuditInput("these JSON lines are no table", where=str(path), remedy="write one object or list a line")
    return rows
