"""An overview of tables: columns and row counts of CSV files, sheets and columns of XLSX files.

XLSX is XML in a ZIP file. It is read with expat, as a stream, with a bound on what is unpacked; a document type
declaration ends the reading, so there are no entities to expand. Formulas, macros and links are reported, never run.
"""

from __future__ import annotations

import csv
import io
import lzma
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO
from xml.parsers import expat

from learngraph_kernel.sandbox.inside.archives import check_zip, open_zip
from learngraph_kernel.sandbox.inside.findings import MAX_ITEMS, Details, Unreadable, Warnings, clean
from learngraph_kernel.sandbox.inside.kinds import delimiter_of

MAX_PART = 64 << 20
MAX_STRINGS = 20_000
MAX_SHEETS = 100
MAX_CELL = 100_000
SAMPLE_ROWS = 1_000
_BROKEN = (EOFError, OSError, ValueError, RuntimeError, zlib.error, lzma.LZMAError)  # of zipfile and its codecs
_INTEGER = re.compile(r"[+-]?\d{1,3}(,?\d{3})*|[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d[\d,]*)?\.?\d+(e[+-]?\d+)?%?", re.I)
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T]\d{1,2}:\d{2}.*)?|\d{4}年\d{1,2}月(\d{1,2}日)?")


def describe_csv(file: BinaryIO, encoding: str, warnings: Warnings) -> Details:
    """Delimiter, columns with a guessed type each, and the number of rows of a CSV file. Raises Unreadable."""
    file.seek(0)
    text = io.TextIOWrapper(file, encoding, errors="replace", newline="")
    try:
        start = text.read(64 << 10)
        delimiter = delimiter_of([line for line in start.split("\n")[:50] if line.strip()]) or ","
        text.seek(0)
        rows = _rows(csv.reader(_bounded_lines(text, warnings), delimiter=delimiter), warnings)
        header = next(rows, [])
        types: list[set[str]] = [set() for _ in header]
        count = ragged = 0
        for row in rows:
            count += 1
            ragged += len(row) != len(header)
            if count <= SAMPLE_ROWS:
                for column, cell in zip(types, row, strict=False):
                    column.add(_type_of(cell))
                for cell in row:
                    if cell[:1] in ("=", "@") or (cell[:1] in ("+", "-") and not _NUMBER.fullmatch(cell)):
                        warnings.add("formula", "cells start like a formula of a spreadsheet", cell)
    finally:
        text.detach()
    if ragged:
        warnings.add("ragged", f"{ragged:,} rows have another number of cells than the header")
    names = [clean(name) for name in header[:MAX_ITEMS]]
    columns = [{"name": name, "type": _common(kinds)} for name, kinds in zip(names, types, strict=False)]
    return {"delimiter": delimiter, "rows": count, "column_count": len(header), "columns": columns}


def describe_xlsx(file: BinaryIO, warnings: Warnings) -> Details:
    """Sheets of an XLSX file: name, visibility, rows and columns, the cells of the first row. Raises Unreadable."""
    with open_zip(file) as archive:
        check_zip(archive.infolist(), warnings)
        names = set(archive.namelist())
        if any(name.endswith("vbaProject.bin") for name in names):
            warnings.add("macros", "the workbook contains macros")
        if any(name.startswith("xl/externalLinks/") for name in names):
            warnings.add("external_links", "the workbook refers to other files")
        targets: dict[str, str] = {}
        parse_part(archive, "xl/_rels/workbook.xml.rels", lambda tag, a: _relation(targets, tag, a))
        sheets: list[dict[str, str]] = []
        parse_part(archive, "xl/workbook.xml", lambda tag, a: sheets.append(a) if tag == "sheet" else None)
        strings = _shared_strings(archive) if "xl/sharedStrings.xml" in names else []
        described: list[Details] = []
        for sheet in sheets[:MAX_SHEETS]:
            relation = next((value for key, value in sheet.items() if key.endswith(":id")), "")
            part = targets.get(relation, "")
            entry: Details = {"name": clean(sheet.get("name", "")), "state": sheet.get("state", "visible")[:12]}
            if part in names:
                entry |= _describe_sheet(archive, part, strings, warnings)
            elif part:
                warnings.add("missing_part", "a sheet's content is missing", part)
            described.append(entry)
            if entry["state"] != "visible":
                warnings.add("hidden_sheet", "sheets are hidden", sheet.get("name"))
    return {"sheet_count": len(sheets), "sheets": described}


def parse_part(
    archive: zipfile.ZipFile,
    name: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    """Streams one XML part through handlers, which get tags without their prefix.

    Raises:
        Unreadable: the part is missing, damaged, larger than 64 MiB unpacked, or declares a document type.
    """
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise Unreadable(f"{clean(name)} declares a document type; entities are not read")

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = lambda tag, attributes: start(tag.rpartition(":")[2], attributes)
    if end is not None:
        ended = end
        parser.EndElementHandler = lambda tag: ended(tag.rpartition(":")[2])
    if text is not None:
        parser.CharacterDataHandler = text
    size = 0
    try:
        with archive.open(name) as part:
            while chunk := part.read(64 << 10):
                size += len(chunk)
                if size > MAX_PART:
                    raise Unreadable(f"{clean(name)} unpacks to more than {MAX_PART:,} bytes")
                parser.Parse(chunk, False)
            parser.Parse(b"", True)
    except KeyError as error:
        raise Unreadable(f"{clean(name)} is missing") from error
    except (expat.ExpatError, zipfile.BadZipFile, *_BROKEN) as error:
        raise Unreadable(f"{clean(name)} is damaged ({clean(str(error))})") from error


def _relation(targets: dict[str, str], tag: str, attributes: dict[str, str]) -> None:
    if tag == "Relationship" and attributes.get("TargetMode") != "External":
        target = attributes.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"xl/{target}")
        targets[attributes.get("Id", "")] = path


def _shared_strings(archive: zipfile.ZipFile) -> list[str]:
    strings: list[str] = []
    current: list[str] = []

    def end(tag: str) -> None:
        if tag == "si":
            if len(strings) < MAX_STRINGS:
                strings.append("".join(current)[:200])
            current.clear()

    def text(data: str) -> None:
        if len(current) < 100:
            current.append(data[:200])

    parse_part(archive, "xl/sharedStrings.xml", lambda *_: None, end, text)
    return strings


def _describe_sheet(archive: zipfile.ZipFile, part: str, strings: list[str], warnings: Warnings) -> Details:
    rows = columns = 0
    header: list[str] = []
    cell: dict[str, str] = {}
    value: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal rows
        if tag == "row":
            rows += 1
        elif tag == "c":
            cell.clear()
            cell.update(attributes)
            value.clear()
        elif tag == "f":
            warnings.add("formulas", "cells are computed; their stored values are what is read", part)

    def end(tag: str) -> None:
        nonlocal columns
        if tag == "c":
            columns = max(columns, _column_number(cell.get("r", "")))
            if rows == 1 and len(header) < MAX_ITEMS:
                header.append(_cell_text(cell.get("t"), "".join(value), strings))

    def text(data: str) -> None:
        if rows <= 1 and len(value) < 100:
            value.append(data)

    try:
        parse_part(archive, part, start, end, text)
    except Unreadable as error:
        warnings.add("sheet_unreadable", str(error), part)
        return {"rows": None, "columns": None, "header": [clean(each) for each in header]}
    return {"rows": rows, "columns": columns, "header": [clean(each) for each in header]}


def _cell_text(kind: str | None, value: str, strings: list[str]) -> str:
    if kind != "s":
        return value
    index = int(value) if value.isascii() and value.isdigit() and len(value) < 9 else -1
    return strings[index] if 0 <= index < len(strings) else "…"


def _column_number(reference: str) -> int:
    number = 0
    for letter in reference[:3]:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number


def _bounded_lines(text: io.TextIOWrapper, warnings: Warnings) -> Iterator[str]:
    """Lines for the csv module, which would otherwise take a file without line ends into memory at once."""
    while line := text.readline(MAX_CELL):
        if len(line) >= MAX_CELL and not line.endswith("\n"):
            warnings.add("long_line", f"lines of {MAX_CELL:,} characters or more; they are cut up")
            line += "\n"
        yield line.replace("\0", "")


def _rows(reader: Iterator[list[str]], warnings: Warnings) -> Iterator[list[str]]:
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            warnings.add("malformed", f"rows cannot be read ({error})")


def _type_of(cell: str) -> str:
    cell = cell.strip()
    if len(cell) > 64:
        return "text"
    if not cell:
        return "empty"
    if _INTEGER.fullmatch(cell):
        return "integer"
    if _NUMBER.fullmatch(cell):
        return "number"
    return "date" if _DATE.fullmatch(cell) else "text"


def _common(kinds: set[str]) -> str:
    kinds = kinds - {"empty"}
    if not kinds:
        return "empty"
    if kinds == {"integer", "number"}:
        return "number"
    return next(iter(kinds)) if len(kinds) == 1 else "text"
