"""Words of labels and of sentences, made comparable: which label does a piece of text name?

Both sides are cut into the same words: English words in a light stem, Chinese as overlapping pairs of characters (so
that 华东 finds 华东地区), periods in one form (`week 7`, `2013-W07`, 第7周 → `w7`). A label is *named* where at least
half of the words that set it apart from its neighbours occur; of two labels that claim the same words the fuller wins.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MIN_COVERAGE = 0.5
"""Least share of a label's own words that must occur for the label to count as named."""
MAX_LABELS_PER_WORD = 64
"""A word that stands in more labels of one axis than this tells nothing apart."""


@dataclass(frozen=True, slots=True)
class Word:
    """One comparable word and where it stands in its text (code points)."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Label:
    """One label on an axis of a table.

    Attributes:
        id: unique in the audit.
        axis: id of its axis.
        text: as written.
        period: sortable time (`2013-W07` → (2013, 7, 0)) or None.
        total: the label says that its cells are totals of the others.
        falls: the label itself names a fall (decline, loss, 降幅), so that a positive cell is one.
        changes: the label names a change (growth, 同比).
        outflow: the label names money that goes out (cost, loss), which tables write with a minus and prose without.
    """

    id: int
    axis: int
    text: str
    period: tuple[int, ...] | None
    total: bool
    falls: bool
    changes: bool
    outflow: bool


@dataclass(slots=True)
class Axis:
    """A dimension of a table: one label column, one header line, the section rows, or the tables themselves.

    Attributes:
        kind: `row`, `header`, `section` or `table`.
        labels: distinct labels, in table order.
        measure: the labels are different quantities (flights, delay), not members of one set (JFK, LGA; 2023, 2024).
        ordered: the labels are periods, in the order of `rank`.
        rank: place of each label that is no total, in the axis's order.
        title: what stands over a label column ("airport").
        ref: the cells that hold the labels.
    """

    id: int
    table: int
    kind: str
    labels: list[Label] = field(default_factory=list)
    by_text: dict[str, Label] = field(default_factory=dict)
    measure: bool = False
    ordered: bool = False
    rank: dict[int, int] = field(default_factory=dict)
    title: str = ""
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """A label named in a text: from its first to the end of its last word, with the share of its words that occur."""

    label: Label
    start: int
    end: int
    coverage: float
    words: frozenset[int]


_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "by",
        "for",
        "to",
        "and",
        "or",
        "with",
        "from",
        "per",
        "as",
        "is",
        "was",
        "were",
        "are",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "we",
        "our",
        "their",
        "there",
        "which",
        "who",
        "whose",
        "than",
        "then",
        "into",
        "over",
        "under",
        "between",
        "among",
        "all",
        "any",
        "each",
        "no",
        "not",
        "vs",
        "via",
        "but",
        "so",
        "if",
        "also",
    ]
)
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
    |(?:\b(?P<md>[0-3]?\d)(?:st|nd|rd|th)?[ ](?:of[ ])?)?\b(?P<mon>(?-i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)
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


_TOTAL = re.compile(
    r"^(?:grand |sub)?-?(?:totals?|sum|overall|all|whole)\b|\btotals?$"
    r"|^(?:合计|总计|小计|总和|全部|总)$|(?:合计|总计)$",
    re.I,
)
_FALLS = re.compile(
    r"\b(?:fall|falls|drop|drops|decline|declines|decrease|decreases|reduction|reductions|loss|losses|shrinkage"
    r"|deficit|"
    r"cuts?|down)\b|下降|降幅|减少|跌幅|下跌|下滑|亏损|降低|减幅",
    re.I,
)


_CHANGE = re.compile(
    r"\b(?:growth|grew|changes?|chg|delta|yoy|qoq|mom|wow|vs|versus|increases?|rises?|gains?|diff|difference|up"
    r"|movement)\b|y/y|m/m"
    r"|Δ|同比|环比|增|变|涨|差|升",
    re.I,
)


def names_a_change(text: str) -> bool:
    """Whether a label names a change, so that "rose 8.1 %" may rest on its cells."""
    return _CHANGE.search(text.replace("_", " ")) is not None


_OUTFLOW = re.compile(
    r"\b(?:costs?|expenses?|charges?|loss(?:es)?|outflows?|payments?|paid|deficit|depreciation|spending|tax(?:es)?)\b"
    r"|成本|费用|支出|亏损|流出",
    re.I,
)


def names_an_outflow(text: str) -> bool:
    """Whether a label names money that goes out."""
    return _OUTFLOW.search(text.replace("_", " ")) is not None


def is_total(text: str) -> bool:
    """Whether a label says that its cells are the total of the others."""
    return _TOTAL.search(text.strip()) is not None


def names_a_fall(text: str) -> bool:
    """Whether a label itself names a fall or a loss."""
    return _FALLS.search(text.replace("_", " ")) is not None


class LabelIndex:
    """Finds the labels of all tables in a piece of text."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self._variants: list[tuple[Label, int]] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for axis in axes:
            self._add_axis(axis)

    def _add_axis(self, axis: Axis) -> None:
        bags = [
            (label, [frozenset(w.word for w in words(form, label=True)) for form in forms(label.text)])
            for label in axis.labels
        ]
        members = [variants for label, variants in bags if not label.total]
        counts = Counter(word for variants in members for word in variants[0])
        common = len(members) if len(members) < 3 else len(members) // 2 + 1
        for label, variants in bags:
            for bag in variants:
                own = [w for w in bag if counts[w] <= MAX_LABELS_PER_WORD and (len(members) < 2 or counts[w] < common)]
                for word in own:
                    self._by_word[word].append(len(self._variants))
                if own:
                    self._variants.append((label, len(own)))

    def knows(self, word: str) -> bool:
        """Whether any label has this word."""
        return word in self._by_word

    def share_a_label(self, first: str, second: str) -> bool:
        """Whether some label holds both words."""
        return not set(self._by_word.get(first, ())).isdisjoint(self._by_word.get(second, ()))

    def mentions(self, text_words: Sequence[Word]) -> dict[int, list[Mention]]:
        """The labels that these words name, by axis id, in the order of the text."""
        hits: dict[int, dict[str, list[Word]]] = defaultdict(dict)
        for word in text_words:
            for variant in self._by_word.get(word.word, ()):
                hits[variant].setdefault(word.word, []).append(word)
        by_axis: dict[int, list[Mention]] = defaultdict(list)
        for variant, found in hits.items():
            label, size = self._variants[variant]
            coverage = len(found) / size
            if coverage >= MIN_COVERAGE:
                places = [place for occurrences in found.values() for place in occurrences]
                start, end = min(place.start for place in places), max(place.end for place in places)
                spots = frozenset(spot for place in places for spot in range(place.start, place.end))
                by_axis[label.axis].append(Mention(label, start, end, coverage, spots))
        return {axis: _undominated(found) for axis, found in by_axis.items()}


def _undominated(found: list[Mention]) -> list[Mention]:
    kept = [mention for mention in found if not any(_beats(other, mention) for other in found)]
    unique: dict[int, Mention] = {}
    for mention in sorted(kept, key=lambda item: (item.start, item.end, -item.coverage)):
        unique.setdefault(mention.label.id, mention)
    return list(unique.values())


def _beats(other: Mention, mention: Mention) -> bool:
    if other.label.id == mention.label.id:
        return False
    if mention.words < other.words:
        return True
    return mention.words == other.words and other.coverage > mention.coverage


def forms(text: str) -> list[str]:
    """The ways to say a label: whole, without its brackets, and what the brackets hold ("Kennedy (JFK)" → JFK)."""
    whole = fold(text)
    if "(" not in whole and "[" not in whole:
        return [whole]
    inside = [part for part in re.findall(r"[(\[]([^()\[\]]+)[)\]]", whole) if len(part) > 1]
    outside = re.sub(r"[(\[][^()\[\]]*[)\]]", " ", whole).strip()
    return list(dict.fromkeys([whole, *([outside] if inside and outside else []), *(inside if outside else [])]))
