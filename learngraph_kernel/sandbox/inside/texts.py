"""Inert text: what a file says, without anything that could act. For a model to read as data from a stranger."""

from __future__ import annotations

import html.parser
import re
import unicodedata
from typing import BinaryIO

from learngraph_kernel.sandbox.inside.archives import open_zip
from learngraph_kernel.sandbox.inside.findings import Unreadable
from learngraph_kernel.sandbox.inside.tables import parse_part

MAX_CHARACTERS = 64_000
MAX_BYTES = 4 << 20
_SILENT = frozenset({"script", "style", "template", "noscript", "iframe", "object", "svg", "head"})
_BREAKS = frozenset("p div br li tr h1 h2 h3 h4 h5 h6 section article table ul ol pre blockquote".split())


def inert_text(file: BinaryIO, kind: str, encoding: str | None) -> tuple[str, bool]:
    """The text of a file, and whether it was cut.

    Args:
        kind: of `kinds.kind_of_head`, or `docx`.
        encoding: of the text; None when it is no text file.

    Raises:
        Unreadable: no text can be taken out of this kind of file.
    """
    if kind == "docx":
        text, cut = _docx(file)
    elif encoding is None:
        raise Unreadable(f"text cannot be taken out of a file of kind {kind}")
    else:
        file.seek(0)
        data = file.read(MAX_BYTES + 1)
        text, cut = data[:MAX_BYTES].decode(encoding, "replace"), len(data) > MAX_BYTES
        if kind in ("html", "xml"):
            text = _without_markup(text)
    text = defuse(text)
    return text[:MAX_CHARACTERS], cut or len(text) > MAX_CHARACTERS


def defuse(text: str) -> str:
    """Text without control, bidirectional, zero-width and tag characters: what is read is what is seen."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    kept = (c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn") else "" for c in text)
    return "".join(kept)


class _Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def _without_markup(text: str) -> str:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return re.sub(r"\n\s*\n+", "\n\n", "".join(reader.parts)).strip()


def _docx(file: BinaryIO) -> tuple[str, bool]:
    parts: list[str] = []
    size, inside = 0, False

    def start(tag: str, _: dict[str, str]) -> None:
        nonlocal inside
        inside = tag == "t"
        if tag in ("p", "br", "tab"):
            parts.append("\t" if tag == "tab" else "\n")

    def end(tag: str) -> None:
        nonlocal inside
        inside = False

    def text(data: str) -> None:
        nonlocal size
        if inside and size <= MAX_CHARACTERS:
            parts.append(data)
            size += len(data)

    with open_zip(file) as archive:
        parse_part(archive, "word/document.xml", start, end, text)
    return "".join(parts[: 4 * MAX_CHARACTERS]).strip(), size > MAX_CHARACTERS
