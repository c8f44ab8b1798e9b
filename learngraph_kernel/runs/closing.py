"""The end of a run: what it may be issued as, what it leaves behind, and its seal.

Documents and pages are imported by the functions that have one: a run without a report then needs neither the numeral
reader nor the renderer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.broker.state import RunState
from learngraph_kernel.canonical import canonical_json, sha256_hex
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.evidence.issuance import Issuance, issue
from learngraph_kernel.runs.content import content_hash, content_of_run
from learngraph_kernel.runs.folder import replace_file
from learngraph_kernel.runs.keys import load_or_create_signer
from learngraph_kernel.runs.notebook_file import notebook_text
from learngraph_kernel.runs.outcome import Cancelled, RunOutcome
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.runs.records import NOTEBOOK, REPORT_HTML
from learngraph_kernel.runs.seal import seal_run_in_store
from learngraph_kernel.store.clock import utcnow
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

if TYPE_CHECKING:
    from learngraph_kernel.evidence.document import ReportDocument


@dataclass(frozen=True, slots=True)
class Closing:
    """What closing a run works on; `nb` is the notebook as executed."""

    store: Store
    home: Home
    plan: RunPlan
    nb: Any
    state: RunState
    actor: str

    @property
    def folder(self) -> Path:
        """Where people find the run's notebook and report."""
        return self.home.runs / self.state.run_id


def close_run(closing: Closing, error: LearnGraphError | None) -> RunOutcome:
    """Ends a run: completed or withheld and sealed, or failed and open to `resume`.

    Args:
        error: what stopped the cells, or None when all of them ended well.
    """
    if error is not None:
        return _stopped(closing, error)
    state = closing.state
    document = _last_document(state)
    output = None if state.output is None else state.output["values"]
    contract = closing.plan.declaration.contract.as_json()
    issuance = issue(contract, state.book, document, output, formal=state.formal)
    if issuance.status == "failed":
        return _stopped(closing, _contract_broken(issuance), issuance)
    return _completed(closing, issuance, None if document is None else issuance.apply(document))


class ContractBroken(LearnGraphError):
    """The run ended, but what it gave is not what its contract promises."""

    code = "contract_broken"


def _contract_broken(issuance: Issuance) -> ContractBroken:
    first = issuance.reasons[0]
    about = None if first.message.startswith(f"{first.about}:") else first.about
    more = f" (and {len(issuance.reasons) - 1} more)" if len(issuance.reasons) > 1 else ""
    return ContractBroken(
        f"{first.message}{more}",
        where=about,
        remedy="change the notebook or its contract",
        details={"reasons": [reason.as_json() for reason in issuance.reasons]},
    )


def _last_document(state: RunState) -> ReportDocument | None:
    if not state.documents:
        return None
    from learngraph_kernel.evidence.document import ReportDocument

    return ReportDocument.from_json(state.artifacts.read_json(state.documents[-1]))


def _completed(closing: Closing, issuance: Issuance, document: ReportDocument | None) -> RunOutcome:
    store, state, artifacts = closing.store, closing.state, closing.store.artifacts
    notebook = notebook_text(closing.nb).encode()
    report = None if document is None else document.to_bytes()
    result = None if state.output is None else canonical_json(state.output)
    content = content_of_run(
        (event.as_json() for event in store.ledger.events(state.run_id)),
        closing.nb,
        report=report,
        result=result,
        read_json=artifacts.read_json,
    )
    html = None if document is None else _page(closing, document, content_hash(content)).encode()
    status = "withheld" if issuance.status == "withheld" else "completed"
    violations = [] if document is None else [violation.as_json() for violation in document.violations]
    data = {
        "status": status,
        "tier": issuance.tier,
        "missing": list(issuance.missing),
        "reasons": [reason.as_json() for reason in issuance.reasons],
        "violations": len(violations),
        "content": artifacts.put_json(content),
        "notebook": artifacts.put(notebook),
        "report": None if report is None else artifacts.put(report),
        "report_html": None if html is None else artifacts.put(html),
        "result": None if result is None else artifacts.put(result),
    }
    with store.unit_of_work(closing.actor) as work:
        work.append(state.run_id, "run.completed", data)
        work.update_run(state.run_id, status=status, tier=issuance.tier, finished_at=utcnow())
        work.audit("run.completed", state.run_id, {"status": status, "tier": issuance.tier})
    return finish_run(store, closing.home, state.run_id, actor=closing.actor)


def finish_run(store: Store, home: Home, run_id: str, *, actor: str) -> RunOutcome:
    """What is left to do once a run's `run.completed` is in the ledger: its seal, and the copies for people.

    All of it follows from the ledger, so a run whose process was killed between the two is finished by this alone, and
    finishing a finished run changes nothing.

    Raises:
        SealIncomplete, NotFinished: see `seal_run_in_store`.
    """
    artifacts = store.artifacts
    seal = seal_run_in_store(store, run_id, signer=load_or_create_signer(home.keys), actor=actor)
    (*_, closed) = (event.data for event in store.ledger.events(run_id, types=["run.completed"]))
    html = None if closed["report_html"] is None else artifacts.read(closed["report_html"])
    violations = [] if closed["report"] is None else artifacts.read_json(closed["report"])["violations"]
    result = None if closed["result"] is None else artifacts.read_json(closed["result"])
    folder = home.runs / run_id
    return RunOutcome(
        run_id=run_id,
        status=closed["status"],
        tier=closed["tier"],
        content_hash=seal.content_hash,
        seal=seal.envelope_sha,
        isolation=store.run(run_id).isolation or "host",
        # The report first: `copied` looks for the notebook.
        report=None if html is None else _write(folder / REPORT_HTML, html),
        notebook=_write(folder / NOTEBOOK, artifacts.read(closed["notebook"])),
        result=None if result is None else result["values"],
        violations=violations,
        missing=list(closed["missing"]),
        reasons=[reason["message"] for reason in closed["reasons"]],
    )


def _page(closing: Closing, document: ReportDocument, content: str) -> str:
    from learngraph_kernel.evidence.html.facts import RunFacts
    from learngraph_kernel.evidence.html.page import render_report
    from learngraph_kernel.runs.figures import figures_of

    state = closing.state
    return render_report(
        document,
        title=closing.plan.declaration.titled(document.language) or Path(closing.plan.path).stem,
        run=RunFacts(
            state.run_id,
            content_hash=content,
            notebook=Path(closing.plan.path).name,
            actor=closing.actor,
            isolation=state.isolation.kind,
            parameters=closing.plan.parameters,
        ),
        images=figures_of(closing.nb),
        language=document.language,
    )


def _stopped(closing: Closing, error: LearnGraphError, issuance: Issuance | None = None) -> RunOutcome:
    store, state = closing.store, closing.state
    status = "cancelled" if isinstance(error, Cancelled) else "failed"
    notebook = notebook_text(closing.nb).encode()
    data = {"status": status, "error": error.as_json(), "notebook": store.artifacts.put(notebook)}
    with store.unit_of_work(closing.actor) as work:
        work.append(state.run_id, f"run.{status}", data)
        work.update_run(state.run_id, status=status, finished_at=utcnow())
        work.audit(f"run.{status}", state.run_id, {"code": error.code})
    return RunOutcome(
        run_id=state.run_id,
        status=status,
        isolation=state.isolation.kind,
        notebook=_write(closing.folder / NOTEBOOK, notebook),
        violations=list(state.violations),
        reasons=[] if issuance is None else [reason.message for reason in issuance.reasons],
        error=error.as_json(),
    )


def _write(path: Path, data: bytes) -> str:
    """A copy for people; the artifact is what counts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [data])
    return str(path)


def copied(store: Store, home: Home, run_id: str) -> bool:
    """Whether a completed run's notebook lies where people find it; an earlier attempt that failed left its own."""
    (*_, closed) = (event.data for event in store.ledger.events(run_id, types=["run.completed"]))
    copy = home.runs / run_id / NOTEBOOK
    return copy.exists() and sha256_hex(copy.read_bytes()) == closed["notebook"]
