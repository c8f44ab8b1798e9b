"""Where Markdown source is code: fenced blocks and back-tick spans.

Citations and numbers in code are left alone, so what counts as code here must be exactly what the report shows as code:
otherwise a number could hide in prose that only this module takes for code. The blocks therefore come from the same
parser that renders the report (`parser`), and only the spans inside one block of prose are found by hand, because the
parser keeps no offsets there.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TICKS = re.compile(r"`+")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class CodeRange:
    """A stretch of code.

    Attributes:
        start: offset of the fence or first back-tick, in code points.
        end: offset after the last back-tick or the closing fence.
        inline: a back-tick span (True) or a fenced block.
        content: the code itself, without its marks.
    """

    start: int
    end: int
    inline: bool
    content: str


def parser() -> MarkdownIt:
    """The Markdown of reports: CommonMark with tables; no raw HTML, no entities, no indented code.

    Entities are off because `&#53;0` would otherwise show a number that no check has read.
    """
    from markdown_it import MarkdownIt  # only a text with code needs it

    markdown = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["code", "entity", "html_block", "html_inline", "autolink"])
    return markdown


def code_ranges(text: str) -> list[CodeRange]:
    """Fenced blocks and code spans of Markdown source, in order, never overlapping."""
    if "`" not in text and "~~~" not in text:
        return []
    starts = [0, *accumulate(len(line) for line in _LINE.findall(text))]
    ranges: list[CodeRange] = []
    row: tuple[int, int] | None = None
    for token in parser().parse(text.replace("\r", " ").replace("\x00", " ")):
        if token.type == "fence" and token.map:
            ranges.append(_fence(text, starts, token))
        elif token.type == "tr_open" and token.map:
            row = (starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)])
        elif token.type == "tr_close" and row:
            edges = [row[0], *(match.end() for match in _CELL_EDGE.finditer(text, *row)), row[1]]
            for begin, end in pairwise(edges):
                ranges += _spans(text, begin, end)
            row = None
        elif token.type == "inline" and token.map and row is None:
            ranges += _spans(text, starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)])
    return sorted(ranges, key=lambda found: found.start)


def touches(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether `[start, end)` overlaps any of the ordered, disjoint ranges."""
    at = bisect.bisect_left(ranges, (end, -1)) - 1
    return at >= 0 and ranges[at][1] > start


def _fence(text: str, starts: list[int], token: Token) -> CodeRange:
    assert token.map is not None
    return CodeRange(starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)], False, token.content)


def _spans(text: str, start: int, stop: int) -> list[CodeRange]:
    """Code spans within one block of prose (CommonMark 6.1): a run of back-ticks up to the next run as long."""
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(text, start, stop)]
    # For each length, the runs that could close a span, last first: popping keeps the whole search linear.
    closers: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        closers.setdefault(runs[number][1] - runs[number][0], []).append(number)
    spans: list[CodeRange] = []
    number = 0
    while number < len(runs):
        begin, end = runs[number]
        begin += _escaped(text, begin, start)  # a backslash takes the first back-tick away
        candidates = closers.get(end - begin, [])
        while candidates and candidates[-1] <= number:
            candidates.pop()
        if begin == end or not candidates:
            number += 1
            continue
        close_begin, close_end = runs[candidates[-1]]
        spans.append(CodeRange(begin, close_end, True, text[end:close_begin].replace("\n", " ").strip()))
        number = candidates[-1] + 1
    return spans


def _escaped(text: str, position: int, start: int) -> int:
    backslashes = 0
    while position - backslashes > start and text[position - backslashes - 1] == "\\":
        backslashes += 1
    return backslashes % 2
