"""The report document: a source with citations, every citation resolved, everything that is wrong with it.

The document is what gets hashed, sealed and rendered. It reads alone: each citation carries its opening. It names no
run and no time, so the same notebook over the same data yields the same bytes. Format: docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from learngraph_kernel.canonical import canonical_json, sha256_hex
from learngraph_kernel.errors import BadInput
from learngraph_kernel.evidence.bare_numbers import (
    Typed,
    find_altered_numbers,
    find_bare_numbers,
    find_claims_in_inputs,
    find_invented_names,
    known_words,
)
from learngraph_kernel.evidence.citations import parse_citations
from learngraph_kernel.evidence.code_claims import ReadNumerals
from learngraph_kernel.evidence.openings import Opening
from learngraph_kernel.evidence.resolve import resolve
from learngraph_kernel.evidence.values import Book
from learngraph_kernel.evidence.violations import Reason, Violation

FORMAT = "learngraph-report-v1"
LONGEST_SOURCE = 2_000_000  # characters; a report of this size would be a 1,000-page book

Tier = Literal["formal", "degraded", "withheld"]


class ReportTooLong(BadInput):
    """The source is longer than any report."""

    code = "report_too_long"


@dataclass(frozen=True, slots=True)
class ResolvedCitation:
    """One citation of a document; see docs/architecture.md for the fields."""

    markup: str
    start: int
    end: int
    kind: str
    target: str
    display: str
    opening: Opening | None

    def as_json(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "markup": self.markup,
            "start": self.start,
            "end": self.end,
            "kind": self.kind,
            "target": self.target,
            "display": self.display,
            "opening": self.opening,
        }


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """A report, complete.

    Attributes:
        language: `en`, `zh`, …
        source: Markdown with citations, as written.
        citations: in text order.
        violations: in text order.
        tier: set by issuance; None until then and for exploratory runs.
        missing: required metrics without a value.
        formal: whether it was built in a formal run.
        reasons: what keeps the tier down, worst first.
    """

    language: str
    source: str
    citations: tuple[ResolvedCitation, ...]
    violations: tuple[Violation, ...]
    tier: Tier | None = None
    missing: tuple[str, ...] = ()
    formal: bool = False
    reasons: tuple[Reason, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The document as stored; contains only JSON values."""
        return {
            "format": FORMAT,
            "language": self.language,
            "source": self.source,
            "citations": [citation.as_json() for citation in self.citations],
            "violations": [violation.as_json() for violation in self.violations],
            "formal": self.formal,
            "tier": self.tier,
            "missing": list(self.missing),
            "reasons": [reason.as_json() for reason in self.reasons],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ReportDocument:
        """The inverse of `as_json`. Raises BadInput when the format is another."""
        if body.get("format") != FORMAT:
            raise BadInput(f"not a report document: format is {body.get('format')!r}", remedy=f"expected {FORMAT}")
        return cls(
            language=body["language"],
            source=body["source"],
            citations=tuple(ResolvedCitation(**item) for item in body["citations"]),
            violations=tuple(Violation.from_json(item) for item in body["violations"]),
            tier=body["tier"],
            missing=tuple(body["missing"]),
            formal=body.get("formal", False),
            reasons=tuple(Reason(**item) for item in body.get("reasons", ())),
        )

    def to_bytes(self) -> bytes:
        """Canonical bytes; their sha256 is the document's hash."""
        return canonical_json(self.as_json())

    @property
    def sha256(self) -> str:
        """The document's hash."""
        return sha256_hex(self.to_bytes())

    def issued(self, tier: Tier | None, missing: Sequence[str] = (), reasons: Sequence[Reason] = ()) -> ReportDocument:
        """The same document with the outcome of issuance."""
        return replace(self, tier=tier, missing=tuple(missing), reasons=tuple(reasons))


def build_document(
    source: str,
    book: Book,
    *,
    language: str = "en",
    formal: bool = False,
    read_numerals: ReadNumerals | None = None,
) -> ReportDocument:
    """Resolves every citation of a source and lists everything that is wrong with it.

    Takes the Markdown with citations, the run's book, the report's language; `read_numerals` replaces the reader of
    numbers (tests). Returns the document, without a tier: `issuance.issue` decides that. Raises ReportTooLong.
    """
    if len(source) > LONGEST_SOURCE:
        raise ReportTooLong(f"the report has {len(source):,} characters", remedy=f"keep it under {LONGEST_SOURCE:,}")
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    parsed = parse_citations(source)
    outcomes = [resolve(citation, book, language) for citation in parsed.citations]
    resolved = [outcome[0] for outcome in outcomes]
    typed = Typed(source, parsed, resolved)
    reader = read_numerals or _reader(language)
    violations = [
        *parsed.violations,
        *(violation for outcome in outcomes for violation in outcome[1]),
        *find_bare_numbers(typed, reader, known_words(book)),
        *find_claims_in_inputs(typed, reader),
        *find_altered_numbers(typed),
        *find_invented_names(typed, book),
    ]
    violations.sort(key=lambda violation: (violation.start, violation.end, violation.code))
    return ReportDocument(
        language=language,
        source=source,
        citations=tuple(
            ResolvedCitation(
                markup=item.citation.markup,
                start=item.citation.start,
                end=item.citation.end,
                kind=item.citation.kind,
                target=str(item.citation.target),
                display=item.display,
                opening=item.opening,
            )
            for item in resolved
        ),
        violations=tuple(violations),
        formal=formal,
    )


def _reader(language: str) -> Callable[[str], Sequence[Any]]:
    from learngraph_kernel.evidence.numerals import read_numerals  # imported late: its tables are large

    return lambda text: read_numerals(text, language=language[:2])
