"""What an author typed instead of citing: numbers, changes to a cited number, and names that exist nowhere.

The promise is that no number of a report was typed. So besides plain numbers this looks at what stands *next to* a
citation (`-[[m:x]]`, `[[m:x]]万`, `[[m:x]]000` would all show another number than the one that opens) and at
back-ticks, where a number would otherwise pass for code.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from learngraph_kernel.evidence.citations import SCALES, CellTarget, Citation, InputTarget, Parsed
from learngraph_kernel.evidence.code_claims import ReadNumerals, claims_in_code
from learngraph_kernel.evidence.code_spans import touches
from learngraph_kernel.evidence.display import as_number
from learngraph_kernel.evidence.numerals.numeral import Numeral
from learngraph_kernel.evidence.resolve import Resolved, tables_of
from learngraph_kernel.evidence.shown_numbers import ListMarks, is_settled, shown_numbers
from learngraph_kernel.evidence.values import Book
from learngraph_kernel.evidence.violations import Violation, excerpt, nearest
from learngraph_kernel.evidence.visible import Visible, visible

_SCALE_AFTER = re.compile(
    r"(?: ?[（(](?:in )?| *)(?:万亿|千万|百万|[十百千万亿兆成折]|"
    r"(?:k|K|M|mn|mm|bn|B|tn|T|×)(?![A-Za-z]|-[A-Za-z])|"
    r"(?:hundred|thousand|million|billion|trillion|lakh|crore|dozen)s?\b)",
)
_SCALE_FORMATS = {"K": "k", "thousand": "k", "million": "M", "mn": "M", "billion": "bn", "B": "bn", "trillion": "T"}
_PERCENT_AFTER = re.compile(r" *(?:[%％‰‱]|个百分点|个基点|(?:per\s?cent|percentage points?|basis points?|pp|bps?)\b)")
_DIGIT_AFTER = re.compile(r"[.,·']?\d|[eE][+-]?\d|\^")
_BEFORE = re.compile(r"(?:[-−–+~±/×*]|负|minus |\d[.,·']?|[.])\Z")
_CURRENCY_BEFORE = re.compile(r"(?:[$€£¥￥₹₩]|US\$|USD |EUR |CNY |RMB )\Z")
_ENTITY = re.compile(r"&#?\w{2,12};")

_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*){0,3}")
_FILE = re.compile(
    r"\.(?:py|ipynb|csv|tsv|json|jsonl|ya?ml|toml|md|txt|html?|xlsx?|parquet|arrow|sql|sh|js|ts|css|png|svg|pdf)$"
)
_ORDINARY_WORDS = frozenset(
    word
    for line in (
        "all and any array as asc avg between bigint bool boolean by bytes case cast char coalesce count cross date",
        "datetime decimal desc distinct double else end except exists false filter first float float32 float64 from",
        "full group having hour if in inner int int8 int16 int32 int64 integer interval into intersect is join json",
        "last lead left like limit list map max mean median min minute month n na nan natural none not null number",
        "numeric object offset on or order outer over partition percentile python quantile real right round row rows",
        "second select set sql std str string struct sum table text then time timestamp true tuple uint8 uint16",
        "uint32 uint64 union unique using uuid values varchar when where window with year lg learngraph pandas polars",
        "duckdb sqlite arrow jupyter",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True)
class Typed:
    """The parts of a source that matter here: as parsed, and as resolved."""

    source: str
    parsed: Parsed
    resolved: Sequence[Resolved]


def find_bare_numbers(typed: Typed, read_numerals: ReadNumerals, known_names: Collection[str] = ()) -> list[Violation]:
    """Numbers that state something and are no citation: in prose, headings, tables, link texts, and in code."""
    source, parsed = typed.source, typed.parsed
    cited = [(citation.start, citation.end) for citation in parsed.citations]
    unread = [(violation.start, violation.end) for violation in parsed.violations]
    code = [(found.start, found.end) for found in parsed.code]
    found: list[Violation] = []
    read: list[tuple[int, int]] = []
    marks = ListMarks()
    for numeral in read_numerals(source):
        if _within(cited, numeral) or _within(unread, numeral) or touches(code, numeral.start, numeral.end):
            continue
        if numeral.conclusion or marks.out_of_order(numeral) or _shown_after_all(numeral, read_numerals):
            found.append(_bare(source, numeral.start, numeral.end, typed.resolved, numeral))
        elif is_settled(numeral):
            read.append((numeral.start, numeral.end))
    found += _foreign_digits(source, sorted([*read, *cited, *code, *unread, *_places(found)]))
    settled = _merge(sorted([*read, *cited, *code, *unread, *_places(found)]))
    found += [
        _bare(source, *place, typed.resolved, numeral)
        for place, numeral in shown_numbers(source, settled, read_numerals)
    ]
    for span in parsed.code:
        found += [
            _bare(source, span.start, span.end, typed.resolved, claim)
            for claim in islice(claims_in_code(span, read_numerals, known_names), 1)
        ]
    return found


def _places(found: Iterable[Violation]) -> list[tuple[int, int]]:
    return [(violation.start, violation.end) for violation in found]


def find_altered_numbers(typed: Typed) -> list[Violation]:
    """Signs, digits, scales and units that stand against a citation and would change the number it shows."""
    shown = visible(typed.source)
    return [
        violation
        for resolved, following in zip_longest(typed.resolved, typed.resolved[1:])
        if resolved is not None and as_number(resolved.value) is not None
        for violation in _altered(typed.source, shown, resolved, following)
    ]


def find_claims_in_inputs(typed: Typed, read_numerals: ReadNumerals) -> list[Violation]:
    """Inputs whose *text* states a quantity (`sales rose 45 %`): a parameter is no source of data.

    A label with a number in it (`2013-W07`, `Terminal 5`) and a number given as an input state nothing of the kind.
    """
    found = []
    for resolved in typed.resolved:
        if not isinstance(resolved.citation.target, InputTarget) or not isinstance(resolved.value, str):
            continue
        for numeral in read_numerals(resolved.value):
            if numeral.conclusion and (numeral.kind != "number" or numeral.unit is not None):
                citation = resolved.citation
                claim = excerpt(resolved.value, numeral.start, numeral.end)
                message = f"the input's text states {claim!r}, which rests on no data"
                found.append(
                    Violation(
                        "bare_number", message, citation.start, citation.end, citation.markup, "cite a metric or a cell"
                    )
                )
                break
    return found


def find_invented_names(typed: Typed, book: Book) -> list[Violation]:
    """Names in back-ticks that look like tables or columns and exist nowhere in the run's sources or results."""
    tables = tables_of(book)
    if not tables:
        return []  # nothing is known of the sources, so nothing can be said to be missing
    known = _known_words(book, tables)
    folded = {word.casefold() for word in known}
    found: list[Violation] = []
    for span in typed.parsed.code:
        name = span.content
        if not span.inline or not _IDENTIFIER.fullmatch(name) or _is_ordinary(name) or name.casefold() in folded:
            continue
        close = nearest(name, known)
        message = f"the name {name[:80]!r} may be invented: no table or column of this run is called that"
        found.append(
            Violation(
                "invented_name",
                message + (f"; nearest: {', '.join(close)}" if close else ""),
                span.start,
                span.end,
                excerpt(typed.source, span.start, span.end),
                ", ".join(f"`{other}`" for other in close) or None,
            )
        )
    return found


def _altered(source: str, shown: Visible, resolved: Resolved, following: Resolved | None) -> Iterable[Violation]:
    """Changes by what is *seen* beside the citation: `[[m:x]] **million**` says the same as `[[m:x]] million`."""
    citation = resolved.citation
    at, stop = bisect_left(shown.offsets, citation.start), bisect_left(shown.offsets, citation.end)
    after = _beside(shown.text[stop : stop + 24].partition("\n\n")[0])
    before = _beside(shown.text[max(0, at - 8) : at].rpartition("\n\n")[2])
    percent = resolved.display.endswith(("%", "‰", "pp", "bp", "个百分点", "个基点"))
    is_cell = isinstance(citation.target, CellTarget)

    def end_of(match: re.Match[str]) -> int:
        return shown.source_range(stop, stop + match.end())[1]

    def start_of(match: re.Match[str]) -> int:
        return shown.offsets[at - len(match.group())]

    if match := _DIGIT_AFTER.match(after):
        yield _change(source, citation.start, end_of(match), citation, "digits after it")
    elif match := _SCALE_AFTER.match(after):
        scale = _SCALE_FORMATS.get(match.group().strip(" ()"), match.group().strip(" ()"))
        better = f"{citation.markup[:-2]}|{scale}]]" if scale in SCALES and not citation.format.scale else None
        yield _change(source, citation.start, end_of(match), citation, "a scale after it", better)
    elif (match := _PERCENT_AFTER.match(after)) and (percent or not is_cell):
        what = "its unit a second time" if percent else "a unit after it that it does not have"
        better = f"{citation.markup[:-2]}|%]]" if not percent and resolved.unit is None else None
        yield _change(source, citation.start, end_of(match), citation, what, better)
    elif following is not None and _run_together(resolved, following, shown, stop):
        what = "the next one runs into it, so that they read as one number"
        yield _change(source, citation.start, following.citation.end, citation, what)
    if (match := _BEFORE.search(before)) and not _is_list_or_range(shown.text[: at - 1][-3:], match.group()):
        yield _change(source, start_of(match), citation.end, citation, "a sign or digits before it")
    elif (match := _CURRENCY_BEFORE.search(before)) and (resolved.unit is not None and not is_cell):
        yield _change(
            source, start_of(match), citation.end, citation, "a currency before it: its unit is shown with it"
        )


def _beside(text: str) -> str:
    """The text next to a citation on one line; an entity, which reports don't decode, is the blank it reads as."""
    return _ENTITY.sub(lambda match: " " * len(match.group()), text.replace("\n", " "))


def _run_together(left: Resolved, right: Resolved, shown: Visible, stop: int) -> bool:
    if not (left.display[-1:].isdigit() and right.display[:1].isdigit()):
        return False
    between = shown.text[stop : bisect_left(shown.offsets, right.citation.start)]
    return len(between) <= 1 and between in ("", ",", ".", "'", "·")


def _is_list_or_range(previous: str, mark: str) -> bool:
    """Whether a mark joins rather than signs: `[[m:a]]–[[m:b]]`, `a/[[m:b]]`."""
    if mark not in ("-", "−", "–", "~", "/", "×"):
        return False
    return bool(previous) and (previous.endswith("]]") or (previous[-1].isalpha() and mark in "-–/"))


def _change(source: str, start: int, end: int, citation: Citation, what: str, better: str | None = None) -> Violation:
    message = f"the text changes the cited number: {what}"
    return Violation("altered_number", message, start, end, excerpt(source, start, end), better or citation.markup)


def _bare(source: str, start: int, end: int, resolved: Sequence[Resolved], numeral: Numeral | None) -> Violation:
    text = excerpt(source, start, end, limit=80)
    suggestion = _same_value(resolved, numeral)
    return Violation(
        "bare_number",
        f"the number {text!r} was typed, not cited",
        start,
        end,
        excerpt(source, start, end),
        suggestion or "cite it: [[m:…]], [[v:Q1.r0.…]] or [[i:…]]",
    )


def _same_value(resolved: Sequence[Resolved], numeral: Numeral | None) -> str | None:
    """A citation of this report whose value the number states."""
    if numeral is None or numeral.low is None or numeral.high is None:
        return None
    for candidate in resolved:
        number = as_number(candidate.value)
        if number is not None and numeral.low <= number <= numeral.high:
            return candidate.citation.markup
    return None


def _foreign_digits(source: str, covered: list[tuple[int, int]]) -> list[Violation]:
    """Digits of other scripts (٥, ५, 𝟓) that the reader of numerals did not take for numbers."""
    if source.isascii():
        return []
    found = []
    merged = _merge(covered)
    for match in re.finditer(r"\d+", source):
        text = match.group()
        if text.isascii() or touches(merged, match.start(), match.end()):
            continue
        found.append(_bare(source, match.start(), match.end(), (), None))
    return found


def _shown_after_all(numeral: Numeral, read_numerals: ReadNumerals) -> bool:
    """Whether the reader left out, as mark-up, something that the report shows.

    The reader knows Markdown by its looks; what is code, a citation or mark-up *here* is settled by the report's own
    parser: `[[50 %]]` is no citation, `<!-- 50 % -->` is shown as it stands, a picture's words instead of it.
    """
    if numeral.reason not in ("code", "citation", "markup", "link"):
        return False
    inner = numeral.text.strip("![]<>()- ")
    if numeral.reason == "link" and not numeral.text.startswith("!["):
        _, _, inner = numeral.text.partition(" ")  # the title, shown when pointed at; the address is not
    return any(found.conclusion for found in read_numerals(inner))


def _merge(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _within(ranges: list[tuple[int, int]], numeral: Numeral) -> bool:
    return touches(ranges, numeral.start, numeral.end) and any(
        start <= numeral.start and numeral.end <= end for start, end in ranges if start < numeral.end
    )


def known_words(book: Book) -> frozenset[str]:
    """The tables, columns and other names of a run, lower case."""
    return frozenset(word.casefold() for word in _known_words(book, tables_of(book)))


def _known_words(book: Book, tables: dict[str, tuple[str, ...]]) -> list[str]:
    words: set[str] = {*tables, *book.metrics, *book.inputs, *book.passages}
    for table, columns in tables.items():
        words.update(columns)
        words.update(f"{table}.{column}" for column in columns)
        words.add(table.rpartition(".")[2])
    for reader in book.snapshots.values():
        words.add(reader.info.source)
        # Names the statement itself introduces (aliases, CTEs); what stands in string literals does not count.
        words.update(re.findall(r"[^\W\d]\w*", re.sub(r"'(?:[^']|'')*'", " ", reader.info.sql)))
    return sorted(unicodedata.normalize("NFC", word) for word in words)


def _is_ordinary(name: str) -> bool:
    head = name.split(".")[0]
    return (
        name.casefold() in _ORDINARY_WORDS
        or keyword.iskeyword(name)
        or bool(_FILE.search(name))
        or head in ("lg", "learngraph", "pd", "np", "pl")
    )
