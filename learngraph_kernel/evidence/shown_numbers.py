"""Numbers that the source does not have and the report shows: `twen**ty**`, `Ⅼ`, `⁴⁵ %`, `[45] flights`, `4O %`.

The reader of numerals reads source text. This reads what is left after mark-up is gone, and judges the marks (of lists,
of footnotes, of enumerations) that are none where a unit follows or no list is continued.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from learngraph_kernel.evidence.code_spans import touches
from learngraph_kernel.evidence.numerals.numeral import Numeral
from learngraph_kernel.evidence.visible import visible

_ROMAN_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_ROMAN_NUMBER = r"(?=[IVXL]{2,}\b|[IVXLCDM]{3,}\b)M{0,4}(?:CM|CD|D?C{0,4})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})\b"
_ROMAN = re.compile(
    rf"\b{_ROMAN_NUMBER}(?=\s?(?:%|‰|percent|per cent|thousand|million|billion|[千万亿成倍]))"
    rf"|(?:(?<=\bwere )|(?<=\bwas )|(?<=\bare )|(?<=\b(?:is|to|by|at|of) )|(?<=[为达至约])){_ROMAN_NUMBER}(?= [a-z])"
)
_MISREAD = re.compile(
    r"(?<![A-Za-z0-9])(?=[0-9OoIl]{2})[0-9OoIl]*[OoIl][0-9OoIl]*(?=\s?(?:%|‰|percent\b|per cent\b|百分点))"
)
_LOOKS_LIKE_DIGITS = re.compile(r"(?=.*[OoIl])[0-9OoIl]{2,}")
_DRAWN_AS_DIGITS = str.maketrans("OoIl", "0011")
_SMALL_MARK = 3
_MOST_MARKS = 99


def is_settled(numeral: Numeral) -> bool:
    """Whether a number that the reader left out stays out, however the text is shown."""
    return numeral.reason not in ("list_number", "footnote") and not _LOOKS_LIKE_DIGITS.fullmatch(numeral.text)


class ListMarks:
    """The numbers of list marks so far: a mark that continues no list (`6077. flights`) is shown as a number."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def out_of_order(self, numeral: Numeral) -> bool:
        """Whether a list mark follows on nothing. Small ones are let be: a section may well begin with a 3."""
        if numeral.reason != "list_number" or numeral.value is None or numeral.value != int(numeral.value):
            return False
        number = int(numeral.value)
        follows = number <= _SMALL_MARK or number - 1 in self._seen or number in self._seen
        self._seen.add(number)
        return not follows


def shown_numbers(
    source: str, settled: list[tuple[int, int]], read_numerals: Callable[[str], Sequence[Numeral]]
) -> Iterator[tuple[tuple[int, int], Numeral]]:
    """The conclusions in the text as shown, with their places in the source, except where `settled` has judged."""
    shown = visible(source)
    text = _ROMAN.sub(_roman, _MISREAD.sub(lambda match: match.group().translate(_DRAWN_AS_DIGITS), shown.text))
    if text == source:
        return
    for numeral in read_numerals(text):
        padded = re.search(r"[IVXLCDM]*\Z", shown.text[max(0, numeral.start - 12) : numeral.start])
        place = shown.source_range(numeral.start - len(padded[0] if padded else ""), numeral.end)
        if numeral.conclusion and not touches(settled, *place) and _states(source, place[0], numeral):
            yield place, numeral


def _states(source: str, start: int, numeral: Numeral) -> bool:
    """Whether it states something, being perhaps only a mark: `[3]`, `③`, `word³`."""
    character, before = source[start], source[max(0, start - 1) : start]
    measured = numeral.unit is not None or numeral.kind != "number"
    large = numeral.value is None or abs(numeral.value) > _MOST_MARKS
    if before == "[":
        return measured or large
    if character.isascii() or character.isdecimal() or not character.isnumeric() or character >= "\u3400":
        return True
    if unicodedata.decomposition(character).startswith(("<super>", "<sub>")):
        return before in ("", " ", "\n") or numeral.kind != "number"
    if "\u2160" <= character <= "\u217f" and unicodedata.numeric(character) <= 12:
        return numeral.kind != "number"  # Ⅱ期
    if unicodedata.category(character) == "Nl":
        return True
    at_start = re.search(r"(?:^|[\n.:;,，。：；、(（|*>-])\s*\Z", source[max(0, start - 4) : start]) is not None
    return numeral.kind != "number" or ((measured or large) and not at_start)


def _roman(match: re.Match[str]) -> str:
    """A Roman number in digits, in as many characters."""
    values = [_ROMAN_DIGITS[character] for character in match.group()]
    total = sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))
    digits = str(total)
    return digits.rjust(len(values)) if len(digits) <= len(values) else "9" * len(values)
