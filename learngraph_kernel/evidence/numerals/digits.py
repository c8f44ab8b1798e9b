# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Numbers written in digits: separators, decimals, powers of ten, fractions, and whose style the text uses.

In English and Chinese text `10.000` is ten. Only a text whose other numbers are unmistakably continental
(`1.234.567`, `1.234,56`, `12,5 %`) and never English is read the other way round.
"""

from __future__ import annotations

import re
from decimal import Decimal

from learngraph_kernel.evidence.numerals.reading import ONE, Amount

LONGEST = 40
"""A longer run of digits is an identifier; it is skipped, never converted."""

VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip

_GROUPED = (
    r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"  # 1,234.5
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])(?:\.[0-9]+)?"  # 1,23,456
    r"|[0-9]{1,3}(?:[\u2009\u202f ][0-9]{3})+(?![0-9])(?![\u2009\u202f ][0-9])(?:\.[0-9]+)?"  # 1 234
    r"|[0-9]{1,3}(?:'[0-9]{3})+(?![0-9])(?:\.[0-9]+)?"  # 1'234
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,}(?![0-9.])"  # 1.234.567
)
_UNIT = r"\s?(?:%|€|EUR|km|kg|Mio|Mrd|million|milliard|Prozent|per cent|percent)"
_COMMA_DECIMAL = r"(?<![0-9],)[0-9]{1,6},[0-9]{1,2}(?=" + _UNIT + ")"
"""`12,5 %` has no English reading, whatever the rest of the text is like."""
_ENGLISH = re.compile(_COMMA_DECIMAL + "|" + _GROUPED + r"|[0-9]++(?:\.[0-9]++)?|\.[0-9]++")
_CONTINENTAL = re.compile(
    r"[0-9]{1,3}(?:[. '\u2009\u202f][0-9]{3})+(?![0-9])(?:,[0-9]++)?|[0-9]++\.[0-9]++|[0-9]++(?:,[0-9]++)?|\.[0-9]++"
)
_CONTINENTAL_EVIDENCE = re.compile(
    r"(?<![\w.,])(?:[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]{1,6},[0-9]{1,2}"
    + _UNIT
    + r")(?![\w]|[.,][0-9])"
)
_ENGLISH_EVIDENCE = re.compile(
    r"(?<![\w.,])(?:[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3}){2,}|[0-9]{1,3},[0-9]{3}|[0-9]{1,9}\.[0-9]{1,2}|[0-9]{1,9}\.[0-9]{4,9})(?![0-9]|[.,][0-9])"
)
_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})$")
_POWER = re.compile(
    r"(?:[eE]([+-]?[0-9]{1,2})(?![0-9A-Za-z]|\.[0-9]))|\s?(?:×|\\times|[xX*·⋅])\s?10(?:\^\{?|\*\*|<sup>)?([+-]?[0-9]{1,2}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?:\}|</sup>)?(?![0-9])"
)
_SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_MIXED = re.compile(r" ([0-9]{1,2})/([0-9]{1,2})(?![0-9/])")
_SLASH = re.compile(r"/([0-9]{1,4})(?![0-9/.%]|,[0-9])")


def is_continental(text: str, language: str | None = None) -> bool:
    """Whether the numbers of a folded text use `.` for thousands and `,` for decimals."""
    if language is not None and language.split("-")[0] in {"de", "fr", "es", "it", "nl", "pt", "da", "id", "tr"}:
        return True
    found = next((m for m in _CONTINENTAL_EVIDENCE.finditer(text) if not _OCTETS.match(m.group())), None)
    return found is not None and _ENGLISH_EVIDENCE.search(text) is None


def read_digits(text: str, start: int, *, continental: bool) -> Amount:
    """The number in digits at `start`, where a digit, a vulgar fraction or `.` + digit stands."""
    if text[start] in VULGAR:
        return _fraction(start + 1, *VULGAR[text[start]])
    match = (_CONTINENTAL if continental else _ENGLISH).match(text, start)
    if match is None:
        raise ValueError(f"no digit at offset {start}")
    raw, end = match.group(), match.end()
    plain = _plain(raw, continental=continental)
    digits = Decimal(plain) if len(plain) <= LONGEST else ONE
    place = Decimal(1).scaleb(-len(plain.partition(".")[2]))
    if end < len(text) and text[end] in VULGAR:
        top, bottom = VULGAR[text[end]]
        return Amount(end + 1, digits + Decimal(top) / bottom, Decimal("0.01"), form="fraction")
    if raw.isdigit():
        if (mixed := _MIXED.match(text, end)) and int(mixed[1]) < int(mixed[2]) <= 16:
            return Amount(mixed.end(), digits + Decimal(mixed[1]) / int(mixed[2]), Decimal("0.01"), form="fraction")
        if (slash := _SLASH.match(text, end)) and len(raw) <= 4 and int(slash[1]) > 1:
            return _fraction(slash.end(), int(raw), int(slash[1]))
    if power := _POWER.match(text, end):
        exponent = int((power[1] or power[2]).translate(_SUPERSCRIPT))
        return Amount(power.end(), digits.scaleb(exponent), place.scaleb(exponent), scaled=True)
    return Amount(end, digits, place)


def _fraction(end: int, top: int, bottom: int) -> Amount:
    return Amount(end, Decimal(top) / bottom, Decimal("0.01"), form="fraction")


def _plain(raw: str, *, continental: bool) -> str:
    """`1,234.5`, `1.234,5`, `1 234` … as `1234.5`."""
    if re.fullmatch(r"[0-9]+,[0-9]{1,2}", raw):
        return raw.replace(",", ".")
    if (
        continental
        and not raw.startswith(".")
        and not (raw.count(".") == 1 and len(raw.partition(".")[2]) != 3 and "," not in raw)
    ):
        return re.sub(r"[^0-9,]", "", raw).replace(",", ".")
    if raw.count(".") > 1:
        return raw.replace(".", "")
    return re.sub(r"[^0-9.]", "", raw)
