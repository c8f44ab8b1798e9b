"""Which label does the text attach to a number? Sentences, clauses, and the attribution of labels to numbers.

Attribution is what catches a right number under a wrong name, so its rule is stated in full. For one axis of one table:

1. "A and B had 1 and 2, respectively": as many labels as numbers, in order (also without the word, when both are
lists).
2. Labels in the number's own clause. Several labels and several numbers that alternate are paired in their order;
   otherwise the label nearest to the number, or all of them if that is not clear. A quantity inside another number
   ("402 orders worth €11,870") belongs to that number alone.
3. Otherwise the nearest clause before it in the sentence that names one, else the nearest after it: *carried*.

A carried label is dropped where the clause may speak of something else: a quantity is carried only into a clause that
says nothing of its own ("… and LGA 5,200"); a period not into a comparison ("against 5,900"); any label not past a
capitalised name that no table knows.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from learngraph_kernel.evidence.audit import cues
from learngraph_kernel.evidence.audit.labels import Axis, LabelIndex, Mention
from learngraph_kernel.evidence.audit.words import Word, words
from learngraph_kernel.evidence.numerals.numeral import Numeral


@dataclass(slots=True)
class Clause:
    """A stretch of a sentence with what it names (by axis id) and the numbers it holds."""

    start: int
    end: int
    words: list[Word]
    mentions: dict[int, list[Mention]] = field(default_factory=dict)
    numerals: list[Numeral] = field(default_factory=list)


@dataclass(slots=True)
class Sentence:
    """A sentence, its clauses, its conclusions in order, and everything it names (by axis id, in text order)."""

    start: int
    end: int
    text: str
    clauses: list[Clause]
    numerals: list[Numeral]
    named: dict[int, list[Mention]]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The labels (ids) the text attaches to a number on one axis.

    `carried` when they come from another clause of the sentence, `later` when from one after the number.
    """

    labels: frozenset[int]
    carried: bool
    later: bool = False


_END = re.compile(
    r"[。！？!?]+[”’\"』」)]*|\.(?=[\"”’)]*(?:\s|$))|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+•#>|]|\d+[.)]\s"
    r"|\w+\s*[:：]\s*\S{1,24}$))|(?<=\|)[ \t]*\n",
    re.M,
)


_TABLE = re.compile(
    r"^[ \t]*(?P<head>\|[^\n]*\|)[ \t]*\n[ \t]*\|[-:| \t]+\|[ \t]*\n(?P<rows>(?:[ \t]*\|[^\n]*(?:\n|$))+)", re.M
)


MAX_SENTENCE = 1_000
"""Code points; a longer stretch without a full stop is read in pieces."""


def split_sentences(text: str, numerals: Sequence[Numeral]) -> list[tuple[int, int]]:
    """Start and end of each sentence, in code points; together they cover the text.

    A stop inside a number or after an abbreviation ends nothing; list items, headings and table rows end at their line.
    """
    inside = [(numeral.start, numeral.end) for numeral in numerals]
    starts = [start for start, _ in inside]
    spans: list[tuple[int, int]] = []
    begin = 0
    for match in _END.finditer(text):
        place = bisect_right(starts, match.start()) - 1
        if place >= 0 and match.start() < inside[place][1] and match.end() <= inside[place][1] and match.group() == ".":
            at_end = match.end() == inside[place][1]
            if not at_end:
                continue
        if match.group() == ".":
            before = re.search(r"([\w.]+)$", text[max(0, match.start() - 8) : match.start()])
            if before and (before.group(1).lower() in cues.ABBREVIATIONS or re.fullmatch(r"[A-Z]", before.group(1))):
                continue
        if match.end() > begin:
            spans.append((begin, match.end()))
            begin = match.end()
    if begin < len(text):
        spans.append((begin, len(text)))
    return [piece for span in spans for piece in _cut(span)]


def _cut(span: tuple[int, int]) -> list[tuple[int, int]]:
    """Endless "sentences" (data pasted into prose) in pieces, so that no work grows with the square of the text."""
    start, end = span
    return [(place, min(place + MAX_SENTENCE, end)) for place in range(start, end, MAX_SENTENCE)]


def read_sentences(text: str, numerals: Sequence[Numeral], index: LabelIndex) -> list[Sentence]:
    """The sentences that hold numbers, with clauses and mentions."""
    spans = split_sentences(text, numerals)
    grouped: dict[int, list[Numeral]] = {}
    starts = [start for start, _ in spans]
    for numeral in numerals:
        grouped.setdefault(bisect_right(starts, numeral.start) - 1, []).append(numeral)
    heads = _table_heads(text)
    return [_sentence(text, spans[place], inside, index, heads) for place, inside in grouped.items()]


def _table_heads(text: str) -> dict[int, list[list[Word]]]:
    """For each row of a Markdown table in the text, by the offset of its line: the words that head its columns."""
    heads: dict[int, list[list[Word]]] = {}
    for block in _TABLE.finditer(text):
        columns = [words(cell) for cell in block["head"].strip().strip("|").split("|")]
        for line in re.finditer(r"^.+$", block["rows"], re.M):
            heads[block.start("rows") + line.start()] = columns
    return heads


def _sentence(
    text: str, span: tuple[int, int], numerals: list[Numeral], index: LabelIndex, heads: dict[int, list[list[Word]]]
) -> Sentence:
    start, end = span[0], max(span[1], max(numeral.end for numeral in numerals))
    body = text[start:end]
    conclusions = [numeral for numeral in numerals if numeral.conclusion]
    found = [
        Word(word.word, word.start + start, word.end + start)
        for word in words(body)
        if not _is_digits_of(word, start, text, conclusions)
    ]
    clauses = []
    columns = heads.get(start + len(body) - len(body.lstrip()), [])
    for clause_start, clause_end in _clause_spans(body, start, found, numerals, index):
        own = [word for word in found if clause_start <= word.start < clause_end]
        column = text.count("|", start, clause_start + 1) - 1
        if 0 <= column < len(columns):
            own += [Word(word.word, clause_start, clause_start + 1) for word in columns[column]]
        clause = Clause(clause_start, clause_end, own, index.mentions(own))
        clause.numerals = [numeral for numeral in conclusions if clause_start <= numeral.start < clause_end]
        clauses.append(clause)
    named: dict[int, list[Mention]] = {}
    for clause in clauses:
        for axis, mentions in clause.mentions.items():
            named.setdefault(axis, []).extend(mentions)
    return Sentence(start, end, body, clauses, conclusions, named)


def _is_digits_of(word: Word, offset: int, text: str, conclusions: Sequence[Numeral]) -> bool:
    """Digits of a stated number name nothing; its unit word may."""
    start, end = word.start + offset, word.end + offset
    for numeral in conclusions:
        if numeral.start < end and start < numeral.end:
            piece = text[max(start, numeral.start) : min(end, numeral.end)]
            return any(character.isdigit() for character in piece) or (len(word.word) > 1 and word.word[1:].isdigit())
    return False


def _clause_spans(
    body: str, offset: int, found: Sequence[Word], numerals: Sequence[Numeral], index: LabelIndex
) -> list[tuple[int, int]]:
    spans = []
    begin = offset
    for match in cues.CLAUSE_BREAK.finditer(body):
        place = match.start() + offset
        if place <= begin or any(
            numeral.start < place + len(match.group()) and place < numeral.end for numeral in numerals
        ):
            continue
        if _inside_label(place, match.end() + offset, found, index):
            continue
        spans.append((begin, place))
        begin = place
    spans.append((begin, offset + len(body)))
    return spans


def _inside_label(start: int, end: int, found: Sequence[Word], index: LabelIndex) -> bool:
    """A break inside a label ("Food and beverages", 成本与费用) breaks nothing."""
    before = [word for word in found if word.end <= start and word.end >= start - 2]
    after = [word for word in found if word.start >= end and word.start <= end + 2]
    if not before:
        before = [word for word in found if word.start < start < word.end][:1]
    return bool(before and after) and any(index.share_a_label(a.word, b.word) for a in before[-1:] for b in after[:1])


def attribute(numeral: Numeral, sentence: Sentence, axis: Axis, index: LabelIndex) -> Attribution | None:
    """The labels of one axis that the text attaches to a number, or None when it attaches none."""
    named = sentence.named.get(axis.id)
    if not named:
        return None
    paired = _paired_lists(numeral, sentence, named)
    if paired is not None:
        return Attribution(frozenset({paired.label.id}), False)
    place = next(i for i, clause in enumerate(sentence.clauses) if clause.start <= numeral.start < clause.end)
    clause = sentence.clauses[place]
    own = clause.mentions.get(axis.id)
    if own and axis.measure:
        own = [mention for mention in own if not _counted_by_another(mention, numeral, clause)]
        if not own:
            return None
    if own:
        return Attribution(frozenset(mention.label.id for mention in _nearest(numeral, clause, own)), False)
    if _drops(clause, sentence, axis, index):
        return None
    for later, clauses in ((False, reversed(sentence.clauses[:place])), (True, iter(sentence.clauses[place + 1 :]))):
        for other in clauses:
            carried = other.mentions.get(axis.id)
            if carried:
                return Attribution(frozenset(mention.label.id for mention in carried), True, later)
    return None


def _paired_lists(numeral: Numeral, sentence: Sentence, named: Sequence[Mention]) -> Mention | None:
    """Rule 1: a list of labels and a list of numbers of the same length."""
    count = len(sentence.numerals)
    if count < 2 or len(named) != count:
        return None
    if not (named[-1].end <= sentence.numerals[0].start or sentence.numerals[-1].end <= named[0].start):
        return None
    said = cues.RESPECTIVELY.search(sentence.text) is not None
    if not said and not (
        _is_list([(m.start, m.end) for m in named], sentence)
        and _is_list([(n.start, n.end) for n in sentence.numerals], sentence)
    ):
        return None
    return named[sentence.numerals.index(numeral)]


def _is_list(spans: Sequence[tuple[int, int]], sentence: Sentence) -> bool:
    gaps = [sentence.text[a[1] - sentence.start : b[0] - sentence.start] for a, b in itertools.pairwise(spans)]
    return all(cues.CONJUNCTION.fullmatch(gap) for gap in gaps) and cues.LIST_END.search(gaps[-1]) is not None


def _nearest(numeral: Numeral, clause: Clause, own: list[Mention]) -> list[Mention]:
    """Rule 2: which of the clause's labels is this number's?"""
    if len(own) == 1 or len(clause.numerals) < 2:
        return own
    order = sorted([(m.start, 0) for m in own] + [(n.start, 1) for n in clause.numerals])
    kinds = [kind for _, kind in order]
    alternating = len(own) == len(clause.numerals) and all(a != b for a, b in itertools.pairwise(kinds))
    if alternating:
        return [own[clause.numerals.index(numeral)]]
    distances = [(_distance(numeral, mention), mention) for mention in own]
    least = min(distance for distance, _ in distances)
    return [mention for distance, mention in distances if distance <= least * 1.5 + 2]


def _counted_by_another(mention: Mention, numeral: Numeral, clause: Clause) -> bool:
    """The "orders" of "402 orders worth €11,870" says nothing of the second number."""
    return any(
        other is not numeral and other.start <= mention.start and mention.end <= other.end for other in clause.numerals
    )


def _distance(numeral: Numeral, mention: Mention) -> int:
    return max(mention.start - numeral.end, numeral.start - mention.end, 0)


def _drops(clause: Clause, sentence: Sentence, axis: Axis, index: LabelIndex) -> bool:
    """Rule 3's exceptions: may this clause speak of something else on that axis?"""
    text = sentence.text[clause.start - sentence.start : clause.end - sentence.start]
    if axis.ordered and cues.LAST_PERIOD.search(text):
        return True
    unknown = [word for word in clause.words if not index.knows(word.word) and not _filler(word)]
    if axis.measure:
        return bool(unknown)
    return any(
        sentence.text[word.start - sentence.start].isupper() and word.start != _first_letter(sentence)
        for word in unknown
    )


def _first_letter(sentence: Sentence) -> int:
    return sentence.start + len(sentence.text) - len(sentence.text.lstrip(' \n\t-*#>"“('))


def _filler(word: Word) -> bool:
    return (
        word.word.isdigit()
        or word.word in _FILLERS
        or len(word.word) == 1
        or any(cut in word.word for cut in _ZH_FILLERS)
    )


_FILLERS = frozenset(
    ["had", "has", "have", "only", "just", "about", "around", "nearly", "record", "report", "handle", "see", "saw",
    "reach", "came", "come", "stood", "total", "respectively", "just", "million", "billion", "thousand", "percent",
    "usd", "eur", "cny", "gbp", "flight", "week", "year", "month", "both", "each", "also", "still", "even", "in",
    "another", "other", "rest"]
)  # fmt: skip
_ZH_FILLERS = ("为", "有", "是", "达", "则", "仅", "约", "的", "了", "万", "亿", "元", "%", "分", "别", "共")


def coordinated(sentence: Sentence, axis: Axis, labels: frozenset[int]) -> frozenset[int]:
    """The labels together with those listed beside them: "JFK and LGA" is one group for a sum."""
    named = sentence.named.get(axis.id, [])
    groups: list[list[Mention]] = []
    for mention in named:
        if groups:
            gap = sentence.text[groups[-1][-1].end - sentence.start : mention.start - sentence.start]
            if cues.CONJUNCTION.fullmatch(gap):
                groups[-1].append(mention)
                continue
        groups.append([mention])
    wide = {m.label.id for group in groups if any(m.label.id in labels for m in group) for m in group}
    return frozenset(wide | labels)
