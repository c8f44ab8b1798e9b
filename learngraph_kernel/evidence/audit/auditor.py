"""The audit itself: every number of a text, what it claims, and what in the tables bears it out.

For each conclusion: identity first (a cell holds the number); then, where the sentence licenses it, derivation. A
derivation is tried in contexts from the narrowest to the widest (the labels attached to the number, those named so far,
all that the sentence names), and the chance matches to expect add up over the contexts tried.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from learngraph_kernel.evidence.audit import cues
from learngraph_kernel.evidence.audit.chance import MAX_EXPECTED, expected_matches
from learngraph_kernel.evidence.audit.claims import Claim, as_percentage, compatible, make_claim, thing
from learngraph_kernel.evidence.audit.counts import find_counts
from learngraph_kernel.evidence.audit.derive import Derived, Deriver, How, Request
from learngraph_kernel.evidence.audit.labels import LabelIndex
from learngraph_kernel.evidence.audit.lines import Context
from learngraph_kernel.evidence.audit.matching import Identity, Named, ValueIndex, find_identities
from learngraph_kernel.evidence.audit.sentences import (
    Attribution,
    Clause,
    Sentence,
    attribute,
    coordinated,
    read_sentences,
)
from learngraph_kernel.evidence.audit.tables import Fact, Facts, read_tables
from learngraph_kernel.evidence.audit.units import FRACTION, PROPORTIONS
from learngraph_kernel.evidence.numerals.numeral import Numeral

MAX_CANDIDATES = 10
"""Cells listed for one number; the best supported come first."""
MAX_CELLS = 6
"""Cells written out in the reference of a derivation; more are abbreviated."""


def audit_numerals(
    text: str, numerals: Sequence[Numeral], tables: Mapping[str, Sequence[Sequence[str]]]
) -> list[dict[str, Any]]:
    """Check numbers already read from a text against tables.

    Takes the text, its numerals in text order, and rows of strings by table name. Returns one dict per numeral, as
    `audit_text` documents.
    """
    facts = read_tables(tables)
    auditor = _Auditor(facts)
    findings: dict[int, dict[str, Any]] = {}
    for sentence in read_sentences(text, numerals, auditor.labels):
        for numeral in sentence.numerals:
            findings[numeral.start] = auditor.check(numeral, sentence)
        auditor.topic = _union(sentence, lambda _: True)
    return [findings.get(numeral.start) or _finding(numeral, "not_a_conclusion", []) for numeral in numerals]


def _finding(numeral: Numeral, status: str, candidates: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "text": numeral.text,
        "start": numeral.start,
        "end": numeral.end,
        "value": None if numeral.value is None else json_number(numeral.value),
        "unit": numeral.unit,
        "status": status,
        "candidates": candidates,
    }


def json_number(value: Decimal | float) -> int | float:
    """A JSON number: an integer where the value is one, else a float (shortest form)."""
    if value == int(value):
        return int(value)
    return float(value) if isinstance(value, Decimal) else round(value, 10)


class _Auditor:
    """Checks the numbers of one text against one set of facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.labels = LabelIndex(facts.axes)
        self.values = ValueIndex(facts)
        self.deriver = Deriver(facts, _factor)
        self.topic: Context = {}
        """What the sentence before named: where this one names nothing, a derivation is first looked for there."""

    def check(self, numeral: Numeral, sentence: Sentence) -> dict[str, Any]:
        claim = make_claim(numeral, sentence)
        if claim is None:
            return _finding(numeral, "ungrounded", [])
        named = self._named(numeral, sentence)
        if numeral.kind == "fraction" and claim.unit is None:
            shared = self._judge(numeral, as_percentage(claim), sentence, named)
            if shared["status"] != "ungrounded":
                return shared
        return self._judge(numeral, claim, sentence, named)

    def _judge(self, numeral: Numeral, claim: Claim, sentence: Sentence, named: Named) -> dict[str, Any]:
        identities = find_identities(claim, self.facts, self.values, named)
        if any(each.rejected is None for each in identities):
            kept = [each for each in identities if each.rejected is None]
            return _finding(numeral, "grounded", [_identity(each) for each in kept[:MAX_CANDIDATES]])
        rejected = [_identity(each) for each in identities[:MAX_CANDIDATES]]
        counted = find_counts(claim, self.facts)
        if counted:
            return _finding(numeral, "derived", counted[:MAX_CANDIDATES])
        derived, accepted = self._derive(claim, sentence, named)
        if accepted:
            return _finding(numeral, "derived", derived)
        return _finding(numeral, "ungrounded", [*rejected, *derived][:MAX_CANDIDATES])

    def _named(self, numeral: Numeral, sentence: Sentence) -> dict[int, Attribution]:
        found: dict[int, Attribution] = {}
        for axis in sentence.named:
            attribution = attribute(numeral, sentence, self.facts.axes[axis], self.labels)
            if attribution is not None:
                found[axis] = attribution
        return found

    # --- derivation

    def _derive(self, claim: Claim, sentence: Sentence, named: Named) -> tuple[list[dict[str, Any]], bool]:
        clause = next(each for each in sentence.clauses if each.start <= claim.numeral.start < each.end)
        operations = _licensed(claim, sentence)
        if not operations or claim.numeral.kind == "range":
            return [], False
        intervals = _intervals(claim, sentence, clause, self._base(sentence) is not None)
        expected = 0.0
        seen: dict[tuple[str, tuple[int, ...]], tuple[Derived, float]] = {}
        for allowed, context in self._contexts(claim, sentence, clause, named):
            wanted = frozenset(operations & allowed)
            if not wanted:
                continue
            smaller = 0
            for across_time in (False, True):
                moves = claim.numeral.direction is not None
                request = Request(wanted, claim.unit, self._base(sentence), moves, across_time)
                pool = self.deriver.pool(request, context)
                if pool is None:
                    return [], False
                if across_time and len(pool.derived) == smaller:
                    continue  # nothing but what has just been tried
                smaller = len(pool.derived)
                matches: list[Derived] = []
                for low, high, width in intervals:
                    slack = 1e-9 * max(abs(low), abs(high))
                    expected += expected_matches(pool.distinct, low - slack, high + slack, width)
                    first, last = bisect_left(pool.values, low - slack), bisect_right(pool.values, high + slack)
                    matches += pool.derived[first:last]
                for match in matches:
                    seen.setdefault((match.how, tuple(fact.index for fact in match.facts)), (match, expected))
                if matches and expected <= MAX_EXPECTED:
                    return [_derivation(match, expected) for match in matches[:MAX_CANDIDATES]], True
        return [
            _derivation(match, chance) | {"rejected": "chance"}
            for match, chance in list(seen.values())[:MAX_CANDIDATES]
        ], False

    def _base(self, sentence: Sentence) -> int | None:
        """The label that the number is compared with: the first named after "than", 比, …"""
        marker = cues.BASE.search(sentence.text)
        if marker is None:
            return None
        after = [
            (self.facts.axes[axis].measure, mention.start, mention.label.id)
            for axis, mentions in sentence.named.items()
            if axis != self.facts.table_axis.id and len({mention.label.id for mention in mentions}) > 1
            for mention in mentions
            if mention.start >= sentence.start + marker.start()
        ]
        return min(after)[2] if after else None

    def _contexts(
        self, claim: Claim, sentence: Sentence, clause: Clause, named: Named
    ) -> Iterator[tuple[frozenset[How], Context]]:
        """From the narrowest to the widest, each with the operations it may serve; no context twice."""
        groups = frozenset[How]({"sum", "mean"})
        everything = frozenset[How]({"difference", "ratio", "percent_change", "share", "sum", "mean"})
        own = {axis: coordinated(sentence, self.facts.axes[axis], each.labels) for axis, each in named.items()}
        measures = {axis for axis in own if self.facts.axes[axis].measure}
        stated = {axis: labels for axis, labels in own.items() if not named[axis].carried or axis in measures}
        single = stated | {axis: own[axis] for axis in own if len(own[axis]) == 1 and not named[axis].later}
        start = claim.numeral.start
        so_far = _union(sentence, lambda mention_start: mention_start < max(start, clause.start))
        so_far = {axis: so_far.get(axis, frozenset()) | own.get(axis, frozenset()) for axis in {*so_far, *own}}
        whole = _union(sentence, lambda _: True)
        together = cues.BACK_REFERENCE.search(
            sentence.text[clause.start - sentence.start : clause.end - sentence.start]
        )
        topic = {axis: labels for axis, labels in self.topic.items() if axis not in sentence.named}
        pairs = everything - groups
        base = self._base(sentence)
        compared = {} if base is None else {self.facts.labels[base].axis: whole[self.facts.labels[base].axis]}
        candidates: list[tuple[frozenset[How], Context]] = [
            (pairs, {**topic, **own, **compared}),
            (pairs, own),
            (groups, single),
            (groups, stated),
        ]
        if together is not None:
            candidates.append((groups, {**whole, **so_far}))
        candidates += [(pairs, so_far), (pairs, whole)]
        done: set[tuple[frozenset[How], frozenset[tuple[int, frozenset[int]]]]] = set()
        for allowed, context in candidates:
            key = (allowed, frozenset(context.items()))
            if key not in done:
                done.add(key)
                yield allowed, context


def _union(sentence: Sentence, keep: Any) -> dict[int, frozenset[int]]:
    found = {
        axis: frozenset(mention.label.id for mention in mentions if keep(mention.start))
        for axis, mentions in sentence.named.items()
    }
    return {axis: labels for axis, labels in found.items() if labels}


def _licensed(claim: Claim, sentence: Sentence) -> set[How]:
    """The operations that the sentence's words and the claim's unit allow."""
    text = sentence.text
    change = cues.CHANGE.search(text) is not None or claim.numeral.direction is not None
    compared = cues.COMPARISON.search(text) is not None
    operations: set[How] = set()
    if claim.unit in ("%", "‰"):
        if (change or compared) and not claim.level:
            operations.add("percent_change")
        if cues.SHARE.search(text) and claim.sign is None:
            operations.add("share")
    elif claim.unit in ("pp", "bp"):
        return {"difference"}
    elif claim.unit == "x":
        return {"ratio"}
    else:
        if (change or compared) and not claim.level:
            operations.add("difference")
        if claim.unit is None and cues.RATIO.search(text) and not cues.AVERAGE.search(text):
            operations.add("ratio")
    if claim.sign is None:
        if cues.TOTAL.search(text):
            operations.add("sum")
        if cues.MEAN.search(text):
            operations.add("mean")
    return operations


def _factor(claim_unit: str | None, fact_unit: str | None, how: How) -> float | None:
    """What a result in the cells' unit is multiplied with to be in the claim's unit; None when it cannot be."""
    if claim_unit in ("pp", "bp"):
        if how != "difference":
            return None
        points = {"%": 1.0, FRACTION: 100.0}.get(fact_unit or "")
        return None if points is None else points * (100 if claim_unit == "bp" else 1)
    if how == "difference" and claim_unit in ("%", "‰"):
        return None
    if claim_unit is None and fact_unit == FRACTION and how != "mean":
        return None
    if thing(claim_unit) and fact_unit is not None and fact_unit != claim_unit:
        return None
    factor = compatible(claim_unit, fact_unit)
    return None if factor is None else float(1 / factor)


def _intervals(claim: Claim, sentence: Sentence, clause: Clause, has_base: bool) -> list[tuple[float, float, float]]:
    """The intervals a derived value may lie in, each with the width to count chance with.

    A verb of direction fixes the sign; so does "more" or "less" when the sentence says than what; otherwise either is
    admitted.
    """
    low, high, width = float(claim.low), float(claim.high), float(claim.width)
    if claim.integer:
        half = 0.5 if claim.unit in PROPORTIONS else 0.0
        low, high = low - half, high + half
    up, down = (low, high, width), (-high, -low, width)
    if claim.numeral.signed or claim.unit == "x":
        return [up]  # "halved" is a ratio of 0.5, whatever its direction
    if claim.sign in ("down", "loss"):
        return [down]
    if claim.sign == "up":
        return [up]
    words = sentence.text[clause.start - sentence.start : clause.end - sentence.start]
    more, less = cues.MORE.search(words) is not None, cues.LESS.search(words) is not None
    if has_base and more != less and claim.numeral.hedge is None:
        return [up] if more else [down]
    return [up, down] if low > 0 else [up]


# --- output


def _identity(found: Identity) -> dict[str, Any]:
    body: dict[str, Any] = {"ref": found.fact.ref, "value": json_number(found.fact.value), "how": "identity"}
    if found.rejected is not None:
        body["rejected"] = found.rejected
    return body


def _derivation(found: Derived, expected: float) -> dict[str, Any]:
    return {
        "ref": _refs((*found.facts, *found.whole)),
        "value": json_number(found.value),
        "how": found.how,
        "expected_chance_matches": round(expected, 6),
    }


def _refs(facts: Sequence[Fact]) -> str:
    refs = [fact.ref for fact in facts]
    if len(refs) <= MAX_CELLS:
        return ",".join(refs)
    return ",".join([*refs[: MAX_CELLS - 1], "…", refs[-1]]) + f" ({len(refs)} cells)"


@dataclass(frozen=True, slots=True)
class Summary:
    """How many numbers of an audit have each status."""

    grounded: int
    derived: int
    ungrounded: int
    not_a_conclusion: int

    @classmethod
    def of(cls, findings: Sequence[Mapping[str, Any]]) -> Summary:
        counts = {name: sum(1 for each in findings if each["status"] == name) for name in cls.__slots__}
        return cls(**counts)
