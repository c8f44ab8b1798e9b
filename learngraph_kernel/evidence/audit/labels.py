"""Words of labels and of sentences, made comparable: which label does a piece of text name?

Both sides are cut into the same `words`, so that 华东 finds 华东地区 and "week 7" finds 2013-W07. A label is *named*
where at least half of the words that set it apart from its neighbours occur; of two labels that claim the same
words the fuller wins.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from learngraph_kernel.evidence.audit.words import Word, forms, words

MIN_COVERAGE = 0.5
"""Least share of a label's own words that must occur for the label to count as named."""
MAX_LABELS_PER_WORD = 64
"""A word that stands in more labels of one axis than this tells nothing apart."""


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

    @property
    def latest(self) -> frozenset[int]:
        """The last of its periods, or the only one; empty when it has none."""
        periods = [label.id for label in self.labels if label.period is not None and not label.changes]
        if self.ordered and self.rank:
            return frozenset({max(self.rank, key=lambda label: self.rank[label])})
        return frozenset(periods) if len(periods) == 1 else frozenset()


@dataclass(frozen=True, slots=True)
class Mention:
    """A label named in a text: from its first to the end of its last word, with the share of its words that occur."""

    label: Label
    start: int
    end: int
    coverage: float
    words: frozenset[int]


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
