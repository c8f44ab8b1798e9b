"""Words and periods, cut and folded so that a label and a sentence can be compared.

English words in a light stem, Chinese as overlapping pairs of characters, periods in one form whatever the writing
(`week 7`, `2013-W07`, 第7周 → `w7`; `Jan`, `2024-01`, 1月 → `m1`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One comparable word and where it stands in its text (code points)."""

    word: str
    start: int
    end: int


_STOP = frozenset([
    "a", "an", "the", "of", "in", "on", "at", "by", "for", "to", "and", "or", "with", "from", "per", "as", "is",
    "was", "were", "are", "be", "been", "it", "its", "this", "that", "these", "those", "we", "our", "their",
    "there", "which", "who", "whose", "than", "then", "into", "over", "under", "between", "among", "all", "any",
    "each", "no", "not", "vs", "via", "but", "so", "if", "also",
])  # fmt: skip
_SAME = {
    "avg": "mean", "average": "mean", "dep": "departure", "arr": "arrival", "pct": "percent", "percentage": "percent",
    "rev": "revenue", "qty": "quantity", "amt": "amount", "min": "minute", "hr": "hour", "yr": "year", "mgmt":
    "management", "ebit": "ebit", "turnover": "revenue", "depart": "departure", "arriv": "arrival",
}  # fmt: skip
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ZH_DIGITS = {character: index for index, character in enumerate("零一二三四五六七八九十")}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}

_PERIOD = re.compile(
    r"""(?P<wy>(?:19|20)\d\d)-?W(?P<wyw>\d{1,2})(?!\d)
    |(?P<iy>(?:19|20)\d\d)[-/.](?P<im>0?[1-9]|1[0-2])(?:[-/.](?P<id>[0-3]?\d))?(?![\d.])
    |(?P<zy>(?:19|20)\d\d)\s?年(?:度)?
    |(?P<zm>\d{1,2}|十[一二]?|[一二三四五六七八九])月(?:份)?(?:(?P<zd>\d{1,2})[日号])?
    |(?P<zw>(?:第(?:\d{1,2}|[一二三四五六七八九十]{1,3})周(?![年期转边围]))|\d{1,2}周(?![一二三四五六日年期转边围]))
    |第?(?P<zq>[一二三四1-4])季度?(?!节)
    |\b(?:week|wk)s?[ ]?(?P<w>\d{1,2})\b|\bW(?P<w2>\d{1,2})\b
    |\bQ(?P<q>[1-4])\b|\b(?P<q2>[1-4])Q\b|\b(?P<qo>first|second|third|fourth|1st|2nd|3rd|4th)[ -]quarter\b
    |\bFY[ ]?(?P<fy>\d{4}|\d\d)\b
    |(?:\b(?P<md>[0-3]?\d)(?:st|nd|rd|th)?[ ](?:of[ ])?)?\b(?P<mon>(?-i:
       Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)
       (?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?)\b\.?(?:[ ](?P<dm>[0-3]?\d)(?:st|nd|rd|th)?(?![\d.,]\d|\d))?
    |(?<![\d.,])(?P<y>(?:19|20)\d\d)(?![\d]|[.,]\d)""",
    re.X | re.I,
)
_WORDS = re.compile(r"[\u3400-\u9fff]+|[^\W\d_\u3400-\u9fff]+\d*|\d+")
_CJK = re.compile(r"[\u3400-\u9fff]")


def words(text: str, *, label: bool = False) -> list[Word]:
    """The comparable words of a text, in order.

    Takes the text and whether it is a label (labels may be `snake_case` or `camelCase`). Returns words with their
    places in the text; stop words are left out.
    """
    if label:
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    folded = fold(text).replace("_", " ")
    found: list[Word] = []
    cursor = 0
    for match in _PERIOD.finditer(folded):
        found += _plain_words(folded, cursor, match.start())
        found += [Word(word, match.start(), match.end()) for word in _period_words(match)]
        cursor = match.end()
    return [*found, *_plain_words(folded, cursor, len(folded))]


def fold(text: str) -> str:
    """Full-width letters and digits to their plain forms, one code point for one, so that places stay the same."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKC", c) if "\uff00" <= c <= "\uffef" or c == "\u3000" else c for c in text)


def _plain_words(text: str, start: int, end: int) -> Iterable[Word]:
    for match in _WORDS.finditer(text, start, end):
        token = match.group()
        if _CJK.match(token):
            if len(token) == 1:
                yield Word(token, match.start(), match.end())
            for offset in range(len(token) - 1):
                yield Word(token[offset : offset + 2], match.start() + offset, match.start() + offset + 2)
        elif len(token) == 1 and token.isalpha():
            if token.isupper() and not _article(text, match):
                yield Word(token, match.start(), match.end())
        elif token.lower() not in _STOP:
            yield Word(stem(token.lower()), match.start(), match.end())


def _article(text: str, match: re.Match[str]) -> bool:
    """`A` or `I` that begins a sentence is no label."""
    return match.group() in "AI" and re.match(r"\s+[a-z]", text[match.end() : match.end() + 3]) is not None


def stem(word: str) -> str:
    """A light stem: plural, -ed, -ing and -ation go; a few names for one thing become one."""
    word = _SAME.get(word, word)
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and re.search(r"(?:ss|x|ch|sh)es$", word):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ation", "ing", "ed"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "se":
        word = word[:-1]
    return _SAME.get(word, word)


def _period_words(match: re.Match[str]) -> list[str]:
    groups = {name: value for name, value in match.groupdict().items() if value}
    parts: list[str] = []
    for name, value in groups.items():
        if name in ("wy", "iy", "zy", "y", "fy"):
            parts.append(value if len(value) == 4 else "20" + value)
        elif name in ("wyw", "zw", "w", "w2"):
            parts.append(f"w{_small(value.strip('第周'))}")
        elif name in ("im", "zm"):
            parts.append(f"m{_small(value)}")
        elif name in ("id", "zd", "md", "dm"):
            parts.append(f"d{_small(value)}")
        elif name == "mon":
            parts.append(f"m{_MONTHS.index(value[:3].lower()) + 1}")
        else:
            parts.append(f"q{_ORDINALS.get(value.lower()) or _small(value)}")
    return parts


def _small(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, _, units = text.rpartition("十")
    if "十" in text:
        return (_ZH_DIGITS.get(tens, 1) if tens else 1) * 10 + _ZH_DIGITS.get(units, 0)
    return _ZH_DIGITS[text[0]]


_RELATIVE = {"previous": 0, "prior": 0, "last": 0, "before": 0, "上": 0, "去年": 0, "同期": 0, "current": 1, "after": 1}
_RELATIVE |= {"this": 1, "now": 1, "本": 1, "今年": 1}


def period_of(text: str) -> tuple[int, ...] | None:
    """A sortable time for a label that is a period and nothing else (`2013`, `Q1 2024`, `last week`), else None."""
    period, rest = period_and_rest(text)
    return None if rest else period


def period_and_rest(text: str) -> tuple[tuple[int, ...] | None, str]:
    """The sortable time that a label holds, if any, and the words round it ("Year ended June 30, 2024")."""
    folded = fold(text).replace("_", " ")
    matches = list(_PERIOD.finditer(folded))
    if not matches:
        lowered = folded.strip().lower()
        for word, rank in _RELATIVE.items():
            if re.fullmatch(rf"{word} ?(?:week|month|quarter|year|period|周|月|季度?|年|期)?", lowered):
                return (rank, 0, 0), ""
        return None, lowered
    rest = " ".join(re.findall(r"[^\W\d_]+", _PERIOD.sub(" ", folded).replace("年", "").replace("E", "")))
    parts = {
        word[0] if word[0].isalpha() else "y": int(word.lstrip("wmdq")) for m in matches for word in _period_words(m)
    }
    middle = parts.get("w") or parts.get("m") or parts.get("q", 0) * 3
    return (parts.get("y", 0), middle, parts.get("d", 0)), rest


def forms(text: str) -> list[str]:
    """The ways to say a label: whole, without its brackets, and what the brackets hold ("Kennedy (JFK)" → JFK)."""
    whole = fold(text)
    if "(" not in whole and "[" not in whole:
        return [whole]
    inside = [part for part in re.findall(r"[(\[]([^()\[\]]+)[)\]]", whole) if len(part) > 1]
    outside = re.sub(r"[(\[][^()\[\]]*[)\]]", " ", whole).strip()
    return list(dict.fromkeys([whole, *([outside] if inside and outside else []), *(inside if outside else [])]))
