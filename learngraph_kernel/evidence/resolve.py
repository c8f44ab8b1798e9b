"""A citation and a book in, the text and the opening out; or the reason why there is none, with the nearest known
names.

Resolution never guesses: a name that is nearly right is a violation with a suggestion, not a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from learngraph_kernel.evidence.citations import (
    CellTarget,
    Citation,
    InputTarget,
    MetricTarget,
    NameTarget,
    PassageTarget,
    QuoteTarget,
    SeeTarget,
    TableTarget,
    Target,
    quoted,
)
from learngraph_kernel.evidence.display import NOTHING, Style, Unshowable, display, safe_text
from learngraph_kernel.evidence.openings import (
    Opening,
    cell_opening,
    input_opening,
    metric_opening,
    name_opening,
    passage_opening,
    table_opening,
)
from learngraph_kernel.evidence.values import Book, SnapshotReader, Value
from learngraph_kernel.evidence.violations import Code, Violation, excerpt, nearest

T = TypeVar("T")

MOST_TABLE_ROWS = 200
DEFAULT_TABLE_ROWS = 20
MOST_TABLE_CELLS = 2_000


@dataclass(frozen=True, slots=True)
class Resolved:
    """A citation with its answer.

    Attributes:
        citation: as read.
        display: what stands in the text instead of the markup; empty for `see`.
        value: the value behind it, None for tables, names, quotes.
        unit: the unit of a metric.
        opening: what opening it shows; None when the citation could not be resolved.
    """

    citation: Citation
    display: str
    value: Value
    unit: str | None
    opening: Opening | None


class _Fails(Exception):
    """Why a citation does not resolve."""

    def __init__(self, code: Code, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.suggestion = suggestion


def resolve(citation: Citation, book: Book, language: str) -> tuple[Resolved, list[Violation]]:
    """Looks one citation up.

    Takes the citation, the book of the run and the report's language. Returns the resolved citation (its markup as
    display when it does not resolve) and what is wrong with it. Raises nothing of its own.
    """
    try:
        resolved = _resolve(citation, book, language)
    except _Fails as failure:
        unresolved = Resolved(citation, safe_text(citation.markup, limit=120), None, None, None)
        return unresolved, [_violation(citation, failure)]
    except Unshowable as problem:
        unresolved = Resolved(citation, safe_text(citation.markup, limit=120), None, None, None)
        hint = f"; {problem.remedy}" if problem.remedy else ""
        return unresolved, [_violation(citation, _Fails("bad_format", f"{problem}{hint}", _unformatted(citation)))]
    return resolved, _valueless(citation, book)


def _resolve(citation: Citation, book: Book, language: str) -> Resolved:
    target, shape = citation.target, citation.format
    match target:
        case MetricTarget(name):
            result = _known(name, book.metrics, "metric", "m:")
            style = Style(language, result.unit, result.precision)
            text = NOTHING if result.state != "ok" else display(result.value, style, shape)
            return Resolved(citation, text, result.value, result.unit, metric_opening(result, book, language))
        case InputTarget(name):
            record = _known(name, book.inputs, "input", "i:")
            return Resolved(
                citation, display(record.value, Style(language), shape), record.value, None, input_opening(record)
            )
        case CellTarget():
            reader = _cell(target, book)
            value = reader.cell(target.row, target.column)
            opening = cell_opening(reader, target.row, target.column, book)
            return Resolved(citation, display(value, Style(language), shape), value, None, opening)
        case TableTarget():
            return _table(citation, target, book)
        case NameTarget(text, is_column):
            return Resolved(citation, safe_text(text), None, None, _name(text, is_column, book))
        case QuoteTarget(ref, words):
            return Resolved(citation, safe_text(words, limit=4_000), None, None, _quote(ref, words, book))
        case SeeTarget(refs):
            for part in refs:
                _check(part, book)
            rests_on = [str(part) for part in refs]
            return Resolved(citation, "", None, None, {"ref": str(target), "kind": "see", "rests_on": rests_on})
        case PassageTarget(ref):  # stands only inside `see`
            raise AssertionError(ref)


def _check(target: Target, book: Book) -> None:
    match target:
        case MetricTarget(name):
            _known(name, book.metrics, "metric", "m:")
        case InputTarget(name):
            _known(name, book.inputs, "input", "i:")
        case CellTarget():
            _cell(target, book)
        case TableTarget():
            _snapshot(target.snapshot, target.run, book)
        case PassageTarget(ref):
            _known(ref, book.passages, "passage", "")
        case NameTarget(text, is_column):
            _name(text, is_column, book)
        case _:
            raise AssertionError(target)


def _known(name: str, where: dict[str, T], noun: str, prefix: str) -> T:
    if name in where:
        return where[name]
    close = [prefix + other for other in nearest(name, where)]
    raise _Fails(
        "unresolvable_citation",
        f"this run has no {noun} {_shown(name)!r}{_list(close)}",
        ", ".join(close) or None,
    )


def _snapshot(ref: str, run: str | None, book: Book) -> SnapshotReader:
    if run is not None and run != book.run_id:
        raise _Fails(
            "foreign_run",
            f"{_shown(ref)} belongs to run {_shown(run)}, not to this one; a report cites only its own run",
            "query it again in this run",
        )
    return _known(ref, book.snapshots, "snapshot", "")


def _column(reader: SnapshotReader, name: str) -> None:
    names = [column.name for column in reader.info.columns]
    if name not in names:
        close = [f"{reader.info.ref}.{quoted(other)}" for other in nearest(name, names)]
        raise _Fails(
            "unresolvable_citation",
            f"{reader.info.ref} has no column {_shown(name)!r}{_list(close)}",
            ", ".join(close) or None,
        )


def _cell(target: CellTarget, book: Book) -> SnapshotReader:
    reader = _snapshot(target.snapshot, target.run, book)
    _column(reader, target.column)
    if target.row >= reader.info.row_count:
        raise _Fails("unresolvable_citation", f"{target.snapshot} has no row r{target.row}; {_rows(reader)}")
    return reader


def _table(citation: Citation, target: TableTarget, book: Book) -> Resolved:
    reader = _snapshot(target.snapshot, target.run, book)
    for name in target.columns:
        _column(reader, name)
    columns = target.columns or tuple(column.name for column in reader.info.columns)
    count = reader.info.row_count
    first, last = target.rows if target.rows is not None else (0, min(count, DEFAULT_TABLE_ROWS) - 1)
    if target.rows is not None and last >= count:
        raise _Fails("unresolvable_citation", f"{target.snapshot} has no row r{last}; {_rows(reader)}")
    size = last - first + 1
    if size > MOST_TABLE_ROWS or size * len(columns) > MOST_TABLE_CELLS:
        raise _Fails(
            "table_too_large",
            f"a table shows at most {MOST_TABLE_ROWS} rows and {MOST_TABLE_CELLS} cells, this one has {size} rows",
            f"rows={first}-{first + DEFAULT_TABLE_ROWS - 1}",
        )
    opening = table_opening(reader, columns, first, last, book)
    return Resolved(citation, f"{target.snapshot} ({size} × {len(columns)})", None, None, opening)


def _name(text: str, is_column: bool, book: Book) -> Opening:
    tables = tables_of(book)
    if not is_column:
        columns = _known(text, tables, "table", "t:")
        return name_opening(text, columns, is_column=False)
    table, _, column = text.rpartition(".")
    columns = _known(table, tables, "table", "t:")
    if column not in columns:
        close = [f"c:{table}.{quoted(other)}" for other in nearest(column, columns)]
        raise _Fails(
            "unresolvable_citation",
            f"table {_shown(table)!r} has no column {_shown(column)!r}{_list(close)}",
            ", ".join(close) or None,
        )
    return name_opening(text, columns, is_column=True)


def tables_of(book: Book) -> dict[str, tuple[str, ...]]:
    """The sources' tables and the run's snapshots, with their columns."""
    own = {ref: tuple(column.name for column in reader.info.columns) for ref, reader in book.snapshots.items()}
    return {**book.tables, **own}


def _quote(ref: str, words: str, book: Book) -> Opening:
    passage = _known(ref, book.passages, "passage", "")
    # Runs of white space are equal (line breaks of the source document); nothing else is.
    pattern = r"\s+".join(re.escape(word) for word in words.split())
    match = re.search(pattern, passage.text)
    if match is None:
        raise _Fails(
            "quotation_not_verbatim",
            f"these words do not occur in {ref} as quoted",
            _closest_words(words, passage.text),
        )
    return passage_opening(passage, match.start(), match.end())


def _closest_words(words: str, text: str) -> str | None:
    """The sentence of the passage most like the quotation."""
    sentences = [part.strip() for part in re.split(r"(?<=[.!?。！？；])\s*|\n+", text[:20_000]) if part.strip()]
    best = nearest(words, sentences[:200], count=1)
    return safe_text(best[0], limit=200) if best else None


def _valueless(citation: Citation, book: Book) -> list[Violation]:
    """A cited metric without a value: it is shown as a dash, and the tier says so."""
    if not isinstance(citation.target, MetricTarget):
        return []
    result = book.metrics[citation.target.name]
    if result.state == "ok":
        return []
    code: Code = "missing_metric" if result.state == "missing" else "incomparable_metric"
    reason = result.reason or ("no reason recorded" if result.state == "missing" else "a newer card version exists")
    return [_violation(citation, _Fails(code, f"metric {_shown(result.name)!r} has no value: {_shown(reason, 300)}"))]


def _violation(citation: Citation, failure: _Fails) -> Violation:
    text = excerpt(citation.markup, 0, len(citation.markup))
    return Violation(failure.code, failure.message, citation.start, citation.end, text, failure.suggestion)


def _unformatted(citation: Citation) -> str:
    return citation.markup.split("|")[0] + "]]"


def _rows(reader: SnapshotReader) -> str:
    count = reader.info.row_count
    return "it has no rows" if count == 0 else f"it has {count} (r0 to r{count - 1})"


def _list(names: Iterable[str]) -> str:
    joined = ", ".join(names)
    return f"; nearest: {joined}" if joined else "; there are none"


def _shown(text: str, limit: int = 80) -> str:
    return safe_text(text, limit=limit)
