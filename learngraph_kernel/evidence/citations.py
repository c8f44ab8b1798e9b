"""Citation markup, read: `[[m:gmv|万]]`, `[[v:Q1.r0."net amount"]]`, `[[table:Q1 cols=region rows=0-4]]`, …

A citation says where a value comes from and, at most, how to show it; it never contains the value. This module only
reads the markup, it knows nothing of runs (`resolve` does). What looks like a citation but is not one is a `syntax`
violation with its place. Markup in code spans and fences is left alone.

```
[[m:NAME|FORMAT…]]  [[i:NAME|FORMAT…]]  [[v:Q1.r0.COLUMN|FORMAT…]]
[[table:Q1 cols=a,"b c" rows=0-4]]      rows count from 0, both ends included
[[t:TABLE]]  [[c:TABLE.COLUMN]]         [[q:K1|the exact words]]     [[see:m:gmv,Q1,K1]]
```
FORMAT is a scale (`k M bn T 千 万 百万 千万 亿 万亿`), `%` (shows a ratio as percent) or digits after the point
(`%.1` or `.1`); scale and digits combine: `[[m:gmv|万|.2]]`. A name may be quoted with `"…"`, a quote inside doubled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from learngraph_kernel.evidence.code_spans import CodeRange, code_ranges, touches
from learngraph_kernel.evidence.violations import Violation, excerpt

Kind = Literal["metric", "input", "cell", "table", "name", "quote", "see"]

SCALES: dict[str, int] = {
    "k": 3, "M": 6, "bn": 9, "T": 12,
    "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "万亿": 12,
}  # fmt: skip
MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Format:
    """How a value is shown: a scale's sign, `%` for a ratio as percent, digits after the point; None means default."""

    scale: str | None = None
    percent: bool = False
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """`m:gmv`"""

    name: str

    def __str__(self) -> str:
        return f"m:{self.name}"


@dataclass(frozen=True, slots=True)
class InputTarget:
    """`i:week`"""

    name: str

    def __str__(self) -> str:
        return f"i:{self.name}"


@dataclass(frozen=True, slots=True)
class CellTarget:
    """`Q1.r0.gmv`; `run` is set when the author named a run."""

    snapshot: str
    row: int
    column: str
    run: str | None = None

    def __str__(self) -> str:
        return f"{_of_run(self.run)}{self.snapshot}.r{self.row}.{self.column}"


@dataclass(frozen=True, slots=True)
class TableTarget:
    """Part of a snapshot; empty `columns` means all, `rows` None means from the first."""

    snapshot: str
    columns: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    run: str | None = None

    def __str__(self) -> str:
        return f"{_of_run(self.run)}{self.snapshot}"


@dataclass(frozen=True, slots=True)
class NameTarget:
    """The name of a table, or of a column (then `text` is `table.column`)."""

    text: str
    is_column: bool

    def __str__(self) -> str:
        return f"{'c' if self.is_column else 't'}:{self.text}"


@dataclass(frozen=True, slots=True)
class QuoteTarget:
    """Words that must occur in a passage."""

    passage: str
    words: str

    def __str__(self) -> str:
        return self.passage


@dataclass(frozen=True, slots=True)
class SeeTarget:
    """What a conclusion rests on; shown nowhere."""

    refs: tuple[Target, ...]

    def __str__(self) -> str:
        return ",".join(str(ref) for ref in self.refs)


@dataclass(frozen=True, slots=True)
class PassageTarget:
    """A whole passage, inside `see` only."""

    ref: str

    def __str__(self) -> str:
        return self.ref


Target: TypeAlias = (
    MetricTarget | InputTarget | CellTarget | TableTarget | NameTarget | QuoteTarget | SeeTarget | PassageTarget
)


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation as it stands in the source.

    Attributes:
        markup: the exact characters, with brackets.
        start: offset of the first bracket, in code points.
        end: offset after the last.
        kind: what is cited.
        target: where to look.
        format: how to show it.
    """

    markup: str
    start: int
    end: int
    kind: Kind
    target: Target
    format: Format = field(default_factory=Format)


class Parsed(NamedTuple):
    """Citations in text order, the markup that could not be read, and where the source is code."""

    citations: list[Citation]
    violations: list[Violation]
    code: list[CodeRange]


class _Unreadable(Exception):
    """Why one piece of markup is no citation, and how it should be written."""

    def __init__(self, reason: str, example: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.example = example


_MARKUP = re.compile(r"\[\[((?:[^\[\]\n]|\[(?!\[)|\](?!\]))+)\]\]")
_LOOSE = re.compile(r"\[\[\s*(?:m|i|v|table|t|c|q|see)\s*:")
_KINDS = "m, i, v, table, t, c, q, see"
_PREFIX = re.compile(r"\s*(m|i|v|table|t|c|q|see)\s*:\s*")
_LOOKS_MEANT = re.compile(r"\s*[A-Za-z]\w*\s*(?::.*)?", re.DOTALL)  # [[gmv]], [[metric:gmv]]; not [[1]]
_RUN = re.compile(r"(r_[A-Za-z0-9]+)[/:.]")
_CELL = re.compile(r"([A-Za-z]\w*)\.r(\d{1,12})\.(.+)", re.DOTALL)
_SNAPSHOT = re.compile(r"[A-Za-z]\w*")
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')
_ROWS = re.compile(r"(\d{1,12})(?:\s*-\s*(\d{1,12}))?")
_DIGITS = re.compile(r"%?\.(\d{1,2})f?")
_BARE_NAME = re.compile(r"[^\s\",|\]]+")


def parse_citations(text: str) -> Parsed:
    """Reads every citation of a Markdown source.

    Takes the source; returns citations, syntax violations and code ranges, each in text order. Raises nothing: what
    cannot be read is a violation.
    """
    code = code_ranges(text)
    blocked = [(found.start, found.end) for found in code]
    citations: list[Citation] = []
    violations: list[Violation] = []
    covered: list[tuple[int, int]] = []
    for match in _MARKUP.finditer(text):
        start, end = match.span()
        if touches(blocked, start, end) or not _LOOKS_MEANT.fullmatch(match.group(1)):
            continue
        covered.append((start, end))
        try:
            kind, target, shape = _read(match.group(1))
        except _Unreadable as problem:
            violations.append(_syntax(text, start, end, problem.reason, problem.example))
        else:
            citations.append(Citation(match.group(), start, end, kind, target, shape))
    for match in _LOOSE.finditer(text):
        if not touches(covered, *match.span()) and not touches(blocked, *match.span()):
            line_end = text.find("\n", match.start())
            end = min(len(text) if line_end < 0 else line_end, match.start() + 80)
            violations.append(_syntax(text, match.start(), end, "the citation is not closed with ]]", "[[m:gmv]]"))
    violations.sort(key=lambda violation: violation.start)
    return Parsed(citations, violations, code)


def quoted(name: str) -> str:
    """A name as it is written in markup: in quotes only when it has characters that mean something there."""
    return name if re.fullmatch(r"[^\s\",|\[\].]+", name) else '"' + name.replace('"', '""') + '"'


def _syntax(text: str, start: int, end: int, reason: str, example: str) -> Violation:
    return Violation("syntax", f"{reason}; write for example {example}", start, end, excerpt(text, start, end), example)


def _of_run(run: str | None) -> str:
    return "" if run is None else f"{run}/"


def _read(inner: str) -> tuple[Kind, Target, Format]:
    prefix = _PREFIX.match(inner)
    if prefix is None:
        raise _Unreadable(f"a citation starts with its kind ({_KINDS})", "[[m:gmv]]")
    kind, rest = prefix.group(1), inner[prefix.end() :]
    match kind:
        case "q":
            return "quote", _read_quote(rest), Format()
        case "table":
            return "table", _read_table(rest.strip()), Format()
        case "see":
            return "see", _read_see(rest), Format()
        case "t" | "c":
            return "name", _read_name(rest.strip(), is_column=kind == "c"), Format()
        case _:
            body, *formats = _split(rest, "|")
            meant, target = _read_value(kind, body.strip())
            return meant, target, _read_format([part.strip() for part in formats])


def _read_value(kind: str, body: str) -> tuple[Kind, Target]:
    if kind == "v":
        return "cell", _read_cell(body)
    name = _unquote(body)
    if name is None:
        raise _Unreadable("the name is empty or has spaces without quotes", f"[[{kind}:name]]")
    return ("metric", MetricTarget(name)) if kind == "m" else ("input", InputTarget(name))


def _read_cell(body: str) -> CellTarget:
    run, body = _take_run(body)
    match = _CELL.fullmatch(body)
    column = _unquote(match.group(3), dots=True) if match else None
    if match is None or column is None:
        raise _Unreadable("a cell is snapshot, row and column", "[[v:Q1.r0.amount]]")
    return CellTarget(match.group(1), int(match.group(2)), column, run)


def _read_table(body: str) -> TableTarget:
    example = "[[table:Q1 cols=region,amount rows=0-4]]"
    run, body = _take_run(body)
    name, *options = _split(body, " ")
    if not _SNAPSHOT.fullmatch(name):
        raise _Unreadable("a table names a snapshot first", example)
    columns: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    for option in filter(None, options):
        key, _, value = option.partition("=")
        if key == "cols":
            names = [_unquote(part.strip(), dots=True) for part in _split(value, ",")]
            if None in names:
                raise _Unreadable("cols is a list of column names", example)
            columns = tuple(name for name in names if name is not None)
        elif key == "rows":
            match = _ROWS.fullmatch(value)
            if match is None or int(match.group(2) or match.group(1)) < int(match.group(1)):
                raise _Unreadable("rows is first-last, counted from 0", example)
            rows = (int(match.group(1)), int(match.group(2) or match.group(1)))
        else:
            raise _Unreadable(f"a table has no option {key[:40]!r}, only cols= and rows=", example)
    return TableTarget(name, columns, rows, run)


def _read_name(body: str, *, is_column: bool) -> NameTarget:
    parts = [_unquote(part) for part in _split(body, ".")]
    if not body or None in parts or (is_column and len(parts) < 2):
        example = "[[c:orders.week]]" if is_column else "[[t:orders]]"
        raise _Unreadable("a column is table and column" if is_column else "the table's name is missing", example)
    return NameTarget(".".join(part for part in parts if part is not None), is_column)


def _read_quote(rest: str) -> QuoteTarget:
    passage, bar, words = rest.partition("|")
    if not bar or not words.strip() or not _SNAPSHOT.fullmatch(passage.strip()):
        raise _Unreadable("a quotation names a passage and the words", "[[q:K1|the exact words]]")
    return QuoteTarget(passage.strip(), words.strip())


def _read_see(rest: str) -> SeeTarget:
    refs = tuple(_read_ref(part.strip()) for part in _split(rest, ",") if part.strip())
    if not refs:
        raise _Unreadable("see names at least one thing", "[[see:m:gmv,Q1]]")
    return SeeTarget(refs)


def _read_ref(part: str) -> Target:
    prefix = _PREFIX.match(part)
    if prefix and prefix.group(1) in "mi":
        return _read_value(prefix.group(1), part[prefix.end() :].strip())[1]
    if prefix and prefix.group(1) in "tc":
        return _read_name(part[prefix.end() :].strip(), is_column=prefix.group(1) == "c")
    body = part[prefix.end() :] if prefix and prefix.group(1) in ("v", "q", "table") else part
    run, bare = _take_run(body)
    if re.fullmatch(r"K\d+", bare):
        return PassageTarget(bare)
    return TableTarget(bare, run=run) if _SNAPSHOT.fullmatch(bare) else _read_cell(body)


def _read_format(parts: list[str]) -> Format:
    scale: str | None = None
    percent, digits = False, None
    for part in parts:
        match = _DIGITS.fullmatch(part)
        if match and digits is None and int(match.group(1)) <= MOST_DIGITS:
            digits = int(match.group(1))
        elif part in ("%", "％") and not percent:
            percent = True
        elif part in SCALES and scale is None:
            scale = part
        else:
            raise _Unreadable(f"{part[:40]!r} is no display format", f"a scale ({' '.join(SCALES)}), % or .1")
    if percent and scale:
        raise _Unreadable("a percentage has no scale", "[[m:rate|%]]")
    return Format(scale, percent, digits)


def _take_run(body: str) -> tuple[str | None, str]:
    match = _RUN.match(body)
    return (match.group(1), body[match.end() :]) if match else (None, body)


def _unquote(part: str, *, dots: bool = False) -> str | None:
    """A bare or quoted name; None when it is neither. `dots` lets a bare column name keep spaces and points."""
    match = _QUOTED.fullmatch(part)
    if match:
        return match.group(1).replace('""', '"')
    if dots:
        return part if part.strip() == part and part and '"' not in part else None
    return part if _BARE_NAME.fullmatch(part) else None


def _split(text: str, separator: str) -> list[str]:
    """Splits at a separator outside quotes."""
    parts: list[str] = []
    current: list[str] = []
    in_quotes = False
    for character in text:
        if character == '"':
            in_quotes = not in_quotes
        if character == separator and not in_quotes:
            parts.append("".join(current))
            current = []
        else:
            current.append(character)
    parts.append("".join(current))
    return parts
