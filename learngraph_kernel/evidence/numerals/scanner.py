# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Folding a text to one alphabet without moving an offset, and finding the stretches where prose rules do not hold.

`fold` maps full-width and typographic variants to one form, character for character. `protected_spans` finds code,
citations, link targets, addresses: what stands there is quoted machinery, not a claim. Everything here is one pass over
the text, whatever the text is: repetition in patterns is bounded or possessive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FOLDED = {ord("０") + digit: ord("0") + digit for digit in range(10)}
_FOLDED |= {ord("Ａ") + letter: ord("A") + letter for letter in range(26)}
_FOLDED |= {ord("ａ") + letter: ord("a") + letter for letter in range(26)}
_FOLDED |= {
    ord(variant): ord(plain)
    for variant, plain in {
        "％": "%", "．": ".", "（": "(", "）": ")", "：": ":", "～": "~", "〜": "~", "－": "-", "＋": "+", "−": "-",
        "﹣": "-", "‑": "-", "‐": "-", "＄": "$", "￥": "¥", "／": "/", "＃": "#", "　": " ", "\u00a0": " ",
        "\u2007": " ", "’": "'", "‘": "'", "＇": "'", "＜": "<", "＞": ">", "［": "[", "］": "]", "─": "—",
        "＝": "=", "｜": "|", "\t": " ", "\r": " ", "壹": "一", "贰": "二", "叁": "三", "肆": "四", "伍": "五",
        "陆": "六", "柒": "七", "捌": "八", "玖": "九", "拾": "十", "佰": "百", "仟": "千", "萬": "万", "億": "亿",
        "兩": "两", "點": "点", "個": "个", "﹪": "%", "⁄": "/",
    }.items()
}  # fmt: skip
_WIDE_COMMA = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")


def fold(text: str) -> str:
    """The text with variants of digits, signs and spaces made one; same length, so that offsets hold."""
    return _WIDE_COMMA.sub(",", text).translate(_FOLDED)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text that is not prose."""

    start: int
    end: int
    reason: str
    whole: bool
    """True: one thing (an address); False: a container whose numbers are listed one by one (a code block)."""


_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)", re.MULTILINE)
_TICKS = re.compile(r"`++")
_CITATION = re.compile(r"\[\[(?:[^\[\]\n]|\[[^\[\]\n]{0,200}+\]|\](?!\])){0,1000}+\]\]")
_TARGET = re.compile(r"(?<=\])\([^()\s]{1,500}+(?: \"[^\"\n]{0,200}+\")?\)")
_IMAGE = re.compile(r"!\[[^\[\]\n]{0,300}+\]")
_FOOTNOTE = re.compile(r"(?<!\[)\[\^?\d{1,3}(?:[,;–-] ?\d{1,3}){0,9}+\](?!\])")
_ADDRESS = re.compile(
    r"(?:https?|ftp|s3|file|wss?)://[^\s<>\"'，。；）)\]]++"
    r"|(?<![\w.@])www\.[^\s<>\"'，。；）)\]]++"
    r"|(?<![\w.@-])[A-Za-z0-9][A-Za-z0-9-]{0,62}+(?:\.[A-Za-z0-9-]{1,63}+)*?\.(?:com|org|net|io|cn|gov|edu|dev|co\.uk)(?![\w-])(?:/[^\s<>\"'，。；）)]*+)?"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}(?:\.[\w-]{1,63}+){1,6}", re.ASCII)
_MATH = re.compile(r"<!--.{0,2000}?-->|<[a-zA-Z/][^<>\n]{0,300}+>")


def protected_spans(text: str) -> list[Span]:
    """Code, citations, link targets, images, addresses and footnote marks of a folded text, in order, not overlapping."""
    spans = [*_fences(text), *_code_spans(text)]
    for pattern, reason, whole, needle in (
        (_CITATION, "citation", True, "[["),
        (_IMAGE, "link", True, "!["),
        (_TARGET, "link", True, "]("),
        (_FOOTNOTE, "footnote", True, "["),
        (_EMAIL, "address", True, "@"),
        (_ADDRESS, "address", True, "."),
        (_MATH, "markup", False, "<"),
    ):
        if needle in text:
            spans += [Span(match.start(), match.end(), reason, whole) for match in pattern.finditer(text)]
    return _without_overlap(spans)


def _fences(text: str) -> list[Span]:
    spans: list[Span] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        mark = match.group(1)
        if opened is None:
            opened = (match.start(), mark)
        elif mark[0] == opened[1][0] and len(mark) >= len(opened[1]):
            spans.append(Span(opened[0], match.end(), "code", False))
            opened = None
    if opened is not None:
        spans.append(Span(opened[0], len(text), "code", False))
    return spans


def _code_spans(text: str) -> list[Span]:
    """CommonMark's rule: a run of back-ticks is closed by the next run of the same length in the same paragraph."""
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(text)] if "`" in text else []
    following: dict[int, int] = {}
    next_same = [-1] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        next_same[index] = following.get(length, -1)
        following[length] = index
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        partner = next_same[index]
        inside = partner >= 0 and runs[partner][0] - runs[index][1] < 5000
        if inside and "\n\n" not in text[runs[index][1] : runs[partner][0]]:
            spans.append(Span(runs[index][0], runs[partner][1], "code", False))
            index = partner + 1
        else:
            index += 1
    return spans


def _without_overlap(spans: list[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda item: (item.start, -item.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept
