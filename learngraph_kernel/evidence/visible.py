"""A report's source as a reader sees it: what mark-up, invisible characters and look-alike letters hide from a scan.

`twen**ty**` is shown as twenty, `for<ZWJ>ty` as forty, `ⅬⅤ` and `⁴⁵` are digits to a reader. `visible` gives the text
without what is not shown and with one spelling for what looks the same, and for each of its characters where it stands
in the source, so that a finding in it can be marked there. It is read *beside* the source, never instead of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

_MARKUP = re.compile(
    r"(?P<link>\]\([^()\s]{1,500}(?:\s+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?\)|\]\[[^\[\]\n]{0,100}\])"
    r"|(?P<emphasis>\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|\\(?=[!-/:-@\[-`{-~]))"
    r"|(?P<bracket>(?<!\[)\[(?!\[)|(?<!\])\](?!\]))"
    r"|(?P<unseen>[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\u20e3\U000e0000-\U000e01ef])"
)
_CITATION = re.compile(r"\[\[[^\[\]\n]{1,1000}\]\]")
_WORD = re.compile(r"[^\W\d_]{2,}")
# Cyrillic and Greek letters that are drawn like Latin ones (Unicode UTS 39, confusables), small case and capitals.
_LOOKALIKE = {
    ord(other): latin
    for other, latin in zip(
        "аеорсухіјѕһԁԛԝѵАВЕКМНОРСТУХІЈЅοανιΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "aeopcyxijshdqwvABEKMHOPCTYXIJSoaviABEZHIKMNOPTYX",
        strict=True,
    )
}


@dataclass(frozen=True, slots=True)
class Visible:
    """Text as shown, and the source's offset of each of its characters (and of its end)."""

    text: str
    offsets: tuple[int, ...]

    def source_range(self, start: int, end: int) -> tuple[int, int]:
        """Where characters `start` to `end` of the text stand in the source."""
        return self.offsets[start], self.offsets[end - 1] + 1


def visible(source: str) -> Visible:
    """The source without emphasis marks, link targets and invisible characters, in one spelling; citations stay."""
    characters: list[str] = []
    offsets: list[int] = []

    def show(text: str, at: int) -> None:
        characters.append(text)
        offsets.extend([at] * len(text))

    def plain(start: int, end: int) -> None:
        position = start
        for match in _MARKUP.finditer(source, start, end):
            _spell(source, position, match.start(), show)
            position = match.end()
        _spell(source, position, end, show)

    position = 0
    for citation in _CITATION.finditer(source):
        plain(position, citation.start())
        for at in range(citation.start(), citation.end()):
            show(source[at], at)
        position = citation.end()
    plain(position, len(source))
    return Visible(_latin("".join(characters)), (*offsets, len(source)))


def _spell(source: str, start: int, end: int, show: Callable[[str, int], None]) -> None:
    part = source[start:end]
    for at, character in enumerate(part, start):
        show(character if character.isascii() else _one_spelling(character), at)


def _one_spelling(character: str) -> str:
    number = unicodedata.decimal(character, None)
    if number is not None:
        return str(number)
    if unicodedata.category(character).startswith("P"):
        return character  # `，` is no thousands separator
    spelled = unicodedata.normalize("NFKC", character)
    if unicodedata.category(character) == "Nl" or (
        spelled == character and character.isnumeric() and not character.isalpha()
    ):
        value = unicodedata.numeric(character)  # Ⅼ, 〥: numerals of their own, not the letters they decompose to
        return str(int(value)) if value == int(value) else character
    return spelled if spelled.strip() else " " * len(spelled)


def _latin(text: str) -> str:
    """Words that mix Latin with look-alikes of other scripts, in Latin; length is kept."""
    if text.isascii():
        return text

    def one(match: re.Match[str]) -> str:
        word = match.group()
        folded = word.translate(_LOOKALIKE)
        return folded if folded != word and folded.isascii() else word

    return _WORD.sub(one, text)
