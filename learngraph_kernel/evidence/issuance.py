"""What a report may be issued as: formal, degraded or withheld; decided from the contract and the evidence alone.

| what is found | formal run | exploratory run |
|---|---|---|
| result breaks `output_schema` | failed | failed |
| blocking violations left after repair | failed | issued, marked in the text |
| `required_rows` unmet, no report | withheld | issued, reasons listed |
| a metric input not traced to source data, or cut off by a limit | withheld | issued, reasons listed |
| a cited number or metric input that the SQL itself states (`select 45`) | withheld | issued, reasons listed |
| an uncited number in the result (`uncited_outputs: refuse`) | withheld | issued, reasons listed |
| a required metric without a value | degraded, named on the report | issued, named |
| nothing | formal | issued |

An exploratory run has no tier: only a formal run promises anything. The worst finding wins, and all are listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from learngraph_kernel.errors import BadInput
from learngraph_kernel.evidence.display import as_number
from learngraph_kernel.evidence.openings import lineage, split_ref
from learngraph_kernel.evidence.values import Book, MetricResult, SnapshotReader
from learngraph_kernel.evidence.violations import Reason, Violation, nearest
from learngraph_kernel.schemas import SchemaInvalid, check_schema
from learngraph_kernel.schemas import violations as schema_violations

if TYPE_CHECKING:
    from learngraph_kernel.evidence.document import ReportDocument, ResolvedCitation, Tier

MOST_CELLS_SEARCHED = 20_000  # of small snapshots, when a number of the result is looked for

_TYPED = "is written into the statement and comes from no table; cite an input, or select it from the data"
_NUMBER_TYPE = re.compile(r"u?int|float|double|half|decimal")


class BadContract(BadInput):
    """The contract in the notebook's metadata cannot be used."""

    code = "bad_contract"


@dataclass(frozen=True, slots=True)
class Contract:
    """What a workflow promises; `contract` in the notebook's metadata.

    Attributes:
        required_metrics: names without whose values the report is degraded.
        required_rows: snapshot → least number of rows.
        report: whether a report must be given.
        output_schema: JSON Schema of the result, None when any will do.
        uncited_outputs: `refuse`: every number of the result must be a value of this run.
    """

    required_metrics: tuple[str, ...] = ()
    required_rows: Mapping[str, int] = field(default_factory=dict)
    report: bool = False
    output_schema: Mapping[str, Any] | None = None
    uncited_outputs: Literal["allow", "refuse"] = "allow"

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Contract:
        """Reads the metadata block. Raises BadContract naming the key."""
        known = ("required_metrics", "required_rows", "report", "output_schema", "uncited_outputs")
        for key in body:
            if key not in known:
                raise BadContract(
                    f"unknown key {key!r}", where="contract", remedy=f"did you mean {nearest(key, known)[0]}?"
                )
        _expect("required_metrics", _is_names(body.get("required_metrics", [])), "a list of metric names")
        _expect("required_rows", _is_counts(body.get("required_rows", {})), "snapshot names with whole numbers")
        _expect("report", isinstance(body.get("report", False), bool), "true or false")
        _expect("output_schema", isinstance(body.get("output_schema"), Mapping | None), "a JSON Schema")
        _expect("uncited_outputs", body.get("uncited_outputs", "allow") in ("allow", "refuse"), "allow or refuse")
        return cls(
            required_metrics=tuple(body.get("required_metrics", ())),
            required_rows=dict(body.get("required_rows", {})),
            report=body.get("report", False),
            output_schema=body.get("output_schema"),
            uncited_outputs=body.get("uncited_outputs", "allow"),
        )


@dataclass(frozen=True, slots=True)
class Issuance:
    """The outcome.

    Attributes:
        status: `issued`, `withheld` or `failed`.
        tier: None for exploratory runs and failed ones.
        missing: required metrics without a value.
        reasons: everything that kept the tier down, worst first.
    """

    status: Literal["issued", "withheld", "failed"]
    tier: Tier | None
    missing: tuple[str, ...]
    reasons: tuple[Reason, ...]

    def apply(self, document: ReportDocument) -> ReportDocument:
        """The document as issued: the outcome stands in it and on it."""
        return document.issued(self.tier, self.missing, self.reasons)


_NO_VIOLATIONS_GIVEN: tuple[Violation, ...] = ()


def issue(
    contract: Contract | Mapping[str, Any] | None,
    book: Book,
    document: ReportDocument | None,
    result: Any,
    *,
    formal: bool,
    violations: Sequence[Violation] | None = None,
) -> Issuance:
    """Decides the tier.

    Takes the contract (or its JSON), the book, the report document or None, the result as JSON or None, and what is
    left of the violations (default: the document's). Returns the outcome; raises BadContract for a contract that
    cannot be read.
    """
    agreed = contract if isinstance(contract, Contract) else Contract.from_json(contract or {})
    left = document.violations if violations is None and document is not None else violations or _NO_VIOLATIONS_GIVEN
    broken = list(_breaches(agreed, result))
    unrepaired = [_unrepaired(violation) for violation in left if violation.blocking]
    withheld = [
        *_unmet_rows(agreed, book),
        *_no_report(agreed, document),
        *_untraced(agreed, book, document),
        *_uncited(agreed, book, result),
    ]
    missing = _missing(agreed, book)
    named = [reason for _, reason in missing]
    names = tuple(name for name, _ in missing)
    reasons = (*broken, *unrepaired, *withheld, *named)
    if broken or (formal and unrepaired):
        return Issuance("failed", None, names, reasons)
    if not formal:
        return Issuance("issued", None, names, reasons)
    if withheld:
        return Issuance("withheld", "withheld", names, reasons)
    return Issuance("issued", "degraded" if missing else "formal", names, reasons)


def _unmet_rows(contract: Contract, book: Book) -> Iterator[Reason]:
    for ref, least in contract.required_rows.items():
        reader = book.snapshots.get(ref)
        if reader is None:
            yield Reason("required_rows", f"{ref} was never queried; the contract asks for at least {least} rows", ref)
        elif reader.info.row_count < least:
            count = reader.info.row_count
            had = "no rows" if count == 0 else f"{count} row{'s' if count != 1 else ''}"
            yield Reason("required_rows", f"{ref} has {had}; the contract asks for at least {least}", ref)


def _no_report(contract: Contract, document: ReportDocument | None) -> Iterator[Reason]:
    if contract.report and (document is None or not document.source.strip()):
        yield Reason("no_report", "the contract asks for a report and the run gave none", "report")


def _missing(contract: Contract, book: Book) -> list[tuple[str, Reason]]:
    found = []
    for name in dict.fromkeys(
        (*contract.required_metrics, *(item.name for item in book.metrics.values() if item.required))
    ):
        result = book.metrics.get(name)
        if result is None:
            found.append((name, Reason("missing_metric", f"metric {name} was not evaluated", f"m:{name}")))
        elif result.state != "ok":
            why = result.reason or result.state
            found.append((name, Reason(f"{result.state}_metric", f"metric {name} has no value: {why}", f"m:{name}")))
    return found


def _untraced(contract: Contract, book: Book, document: ReportDocument | None) -> Iterator[Reason]:
    """Every metric that is required or cited rests on recorded data, all the way down."""
    cited = [item.target[2:] for item in document.citations if item.kind == "metric"] if document is not None else []
    seen: set[str] = set()
    for name in dict.fromkeys((*contract.required_metrics, *cited)):
        if name in book.metrics:
            yield from _trace(book.metrics[name], book, seen)
    for item in document.citations if document is not None else ():
        if item.kind in ("cell", "table") and item.opening is not None:
            yield from _typed_into_sql(item, book)


def _typed_into_sql(item: ResolvedCitation, book: Book) -> Iterator[Reason]:
    """Cited numbers that the statement itself states: `select 45 as share` is no source of data."""
    ref = item.target if item.kind == "table" else item.target.partition(".")[0]
    reader = book.snapshots.get(ref.rpartition("/")[2])
    if reader is None or item.opening is None:
        return
    cited = item.opening["columns"] if item.kind == "table" else [item.opening["title"]]
    for name in cited:
        if name in reader.info.constants and _is_number(reader, name):
            yield Reason("untraced_input", f"{reader.info.ref}.{name} {_TYPED}", f"{reader.info.ref}.{name}")


def _is_number(reader: SnapshotReader, name: str) -> bool:
    kind = next((column.type for column in reader.info.columns if column.name == name), "")
    return _NUMBER_TYPE.match(kind) is not None


def _trace(result: MetricResult, book: Book, seen: set[str]) -> Iterator[Reason]:
    if result.name in seen:
        return
    seen.add(result.name)
    about = f"m:{result.name}"
    for item in result.inputs:
        if not item.refs and result.state == "ok":
            yield Reason("untraced_input", f"input {item.name} of metric {result.name} names no source", about)
        for ref in item.refs:
            yield from _trace_ref(ref, item.name, result, book, seen)


def _trace_ref(ref: str, name: str, result: MetricResult, book: Book, seen: set[str]) -> Iterator[Reason]:
    about = f"m:{result.name}"
    if ref.startswith("m:") and ref[2:] in book.metrics:
        yield from _trace(book.metrics[ref[2:]], book, seen)
        return
    if ref.startswith("i:") and ref[2:] in book.inputs:
        return
    found = split_ref(ref, book)
    if found is None:
        if result.state == "ok":  # a metric without a value is missing, which is said elsewhere
            yield Reason(
                "untraced_input", f"input {name} of metric {result.name} cites {ref}, which is not in this run", about
            )
        return
    if found[2] in found[0].info.constants and result.state == "ok":
        yield Reason("untraced_input", f"input {name} of metric {result.name} rests on {ref}, which {_TYPED}", about)
    for info in lineage(found[0].info, book):
        if info.truncated is not None:
            why = f"{info.ref} was cut off by its limit on {info.truncated}; metric {result.name} cannot rest on it"
            yield Reason("truncated_snapshot", why, info.ref)
        for parent in info.derived_from:
            if parent not in book.snapshots:
                yield Reason(
                    "untraced_input", f"{info.ref} was merged from {parent}, which is not in this run", info.ref
                )


def _breaches(contract: Contract, result: Any) -> Iterator[Reason]:
    if contract.output_schema is None:
        return
    try:
        check_schema(contract.output_schema, where="contract.output_schema")
        if result is None and schema_violations(None, contract.output_schema):
            yield Reason("output_schema", "the contract asks for a result, and lg.output was not called", "result")
            return
        found = schema_violations(result, contract.output_schema)
    except SchemaInvalid as error:
        raise BadContract(error.what, where="contract.output_schema", remedy=error.remedy) from error
    for item in found:
        path = "result" + item.path.removeprefix("$")
        yield Reason("output_schema", f"{path}: expected {item.expected}, got {item.got}", path)


def _uncited(contract: Contract, book: Book, result: Any) -> Iterator[Reason]:
    """Numbers of the result that are no value of this run (metric, input, metric input, cell of a small snapshot)."""
    if contract.uncited_outputs != "refuse":
        return
    numbers = list(_numbers(result, "result"))
    if not numbers:
        return
    known = _run_values(book)
    for path, number in numbers:
        if number not in known:
            yield Reason("uncited_output", f"{path} is {number}, which is no value of this run", path)


def _numbers(value: Any, path: str) -> Iterator[tuple[str, Decimal]]:
    if isinstance(value, Mapping):
        if len(value) == 1 and isinstance(value.get("$decimal"), str):
            yield path, Decimal(value["$decimal"])
            return
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{path}[{index}]")
    elif (number := as_number(value)) is not None:
        yield path, number


def _run_values(book: Book) -> set[Decimal]:
    values: set[Decimal] = set()
    for metric in book.metrics.values():
        read = (metric.value, *(entry.value for entry in metric.inputs))
        values.update(number for item in read if (number := as_number(item)) is not None)
        if (
            metric.value is not None
        ):  # a result often carries floats: the shortest form of the float counts as the value
            values.add(Decimal(repr(float(metric.value))))
    for record in book.inputs.values():
        if (number := as_number(record.value)) is not None:
            values.add(number)
    budget = MOST_CELLS_SEARCHED
    for reader in book.snapshots.values():
        size = reader.info.row_count * len(reader.info.columns)
        if size > budget:
            continue
        budget -= size
        for row in reader.rows(0, reader.info.row_count):
            values.update(number for cell in row if (number := as_number(cell)) is not None)
    values.update(Decimal(reader.info.row_count) for reader in book.snapshots.values())
    return values


def _unrepaired(violation: Violation) -> Reason:
    place = f"characters {violation.start}–{violation.end}"
    return Reason(violation.code, f"{violation.message} ({place})", place)


def _expect(key: str, holds: bool, wanted: str) -> None:
    if not holds:
        raise BadContract(f"{key} must be {wanted}", where=f"contract.{key}", remedy="see docs/architecture.md")


def _is_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _is_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in value.values()
    )
