"""What is wrong with a report, said so that a model or a person can repair it.

A violation has a place in the source (`start`, `end` in code points), a stable `code`, one sentence, and where possible
what to write instead. *Blocking* violations fail a formal step once repairs are used up; the others (a cited metric
that has no value) lower the tier instead, because nothing the author writes could mend them.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Code = Literal[
    "syntax",
    "bare_number",
    "altered_number",
    "unresolvable_citation",
    "foreign_run",
    "bad_format",
    "invented_name",
    "quotation_not_verbatim",
    "table_too_large",
    "missing_metric",
    "incomparable_metric",
]

NOT_BLOCKING: frozenset[str] = frozenset({"missing_metric", "incomparable_metric"})
COMPARED_CLOSELY = 60
LONGEST_NAME = 120  # names beyond this are cut before they are compared or shown


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding.

    Attributes:
        code: stable, for programs.
        message: one sentence for a person.
        start: offset of the first character in the source, in code points.
        end: offset after the last.
        text: the characters it is about, at most 200.
        suggestion: what to write instead, None when there is nothing to offer.
    """

    code: Code
    message: str
    start: int
    end: int
    text: str
    suggestion: str | None = None

    @property
    def blocking(self) -> bool:
        """Whether a formal step fails on it."""
        return self.code not in NOT_BLOCKING

    def as_json(self) -> dict[str, Any]:
        """JSON form, as it stands in the report document."""
        return {
            "code": self.code,
            "message": self.message,
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "suggestion": self.suggestion,
            "blocking": self.blocking,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Violation:
        """The inverse of `as_json`."""
        return cls(body["code"], body["message"], body["start"], body["end"], body["text"], body["suggestion"])


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a report is not issued as formal: a stable code, a sentence, and the thing it is about (`m:gmv`, `Q1`)."""

    code: str
    message: str
    about: str

    def as_json(self) -> dict[str, str]:
        """JSON form."""
        return {"code": self.code, "message": self.message, "about": self.about}


def nearest(name: str, known: Iterable[str], *, count: int = 3) -> list[str]:
    """The known names most like `name`, best first; ties in alphabetical order, so that the answer never varies."""
    wanted = name[:LONGEST_NAME].casefold()

    def likeness(candidate: str) -> float:
        return difflib.SequenceMatcher(None, wanted, candidate[:LONGEST_NAME].casefold(), autojunk=False).ratio()

    candidates = sorted(set(known))
    if len(candidates) > COMPARED_CLOSELY:  # letters in common are counted first: a wide schema has thousands of names
        letters = Counter(wanted)

        def shared(candidate: str) -> float:
            other = Counter(candidate[:LONGEST_NAME].casefold())
            return 2 * (letters & other).total() / (letters.total() + other.total() or 1)

        candidates = sorted(candidates, key=lambda candidate: (-shared(candidate), candidate))[:COMPARED_CLOSELY]
    return sorted(candidates, key=lambda candidate: (-likeness(candidate), candidate))[:count]


def excerpt(text: str, start: int, end: int, *, limit: int = 200) -> str:
    """The characters a violation is about, cut to `limit`."""
    cut = text[start : min(end, start + limit)]
    return cut if end - start <= limit else cut + "…"
