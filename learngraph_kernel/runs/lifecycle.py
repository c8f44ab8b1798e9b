"""The life of a run: begun, executed, issued, sealed; or stopped, and recorded as such.

Everything a run leaves behind is written here, in this order: the run and its first event before any code runs; cells
and calls while they happen; the artifacts of the end before the event that names them; the seal last. A process
killed anywhere in between leaves a run that `resume` can go on with.
"""

from __future__ import annotations

import asyncio
import functools
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from learngraph_kernel.broker.box import HOST, Isolation
from learngraph_kernel.broker.methods import load_all
from learngraph_kernel.broker.recording import Recording
from learngraph_kernel.broker.server import BrokerServer
from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import encode_value
from learngraph_kernel.data.limits import RunLimits
from learngraph_kernel.data.source import BUILT_IN_KINDS
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.evidence.values import Book, InputRecord
from learngraph_kernel.runs.closing import Closing, close_run
from learngraph_kernel.runs.engine import CellObserver, Executor
from learngraph_kernel.runs.notebook_file import notebook_text
from learngraph_kernel.runs.outcome import Cancelled, RunOutcome
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.runs.recorder import CellRecorder
from learngraph_kernel.runs.run_kernel import RunKernel
from learngraph_kernel.store.clock import utcnow
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.process import ProcessIdentity
from learngraph_kernel.store.run_record import RunRecord, new_run_id

DEFAULT_LIMITS = RunLimits()
PACKAGES = ("learngraph", "duckdb", "pyarrow", "nbclient", "ipykernel")


class NotResumable(BadInput):
    """The run has ended, or is still running."""

    code = "not_resumable"


class Lifecycle:
    """One attempt at one run.

    Args:
        kernel: started, perhaps not yet answering; the caller ends it.
        secret: what the kernel was given as its ticket.
        recording: external answers to reuse (a rerun).
        cards: artifact of the metric cards to evaluate with (a rerun).
    """

    def __init__(
        self,
        store: Store,
        home: Home,
        plan: RunPlan,
        kernel: RunKernel,
        *,
        secret: str,
        progress: CellObserver,
        actor: str,
        recording: Recording | None = None,
        cards: str | None = None,
    ) -> None:
        self._store = store
        self._home = home
        self._plan = plan
        self._kernel = kernel
        self._secret = secret
        self._progress = progress
        self._actor = actor
        self._recording = recording
        self._cards = cards

    async def run(self, run_id: str | None = None) -> RunOutcome:
        """Begins a new run (under an id that was chosen for it, if one was) and takes it to its end."""
        run_id = begin_run(self._store, self._plan, self._actor, run_id, isolation=self._kernel.isolation)
        return await self._go(run_id, self._recording, externals_only=self._recording is not None)

    async def resume(self, run_id: str) -> RunOutcome:
        """Goes on with a run that was killed, interrupted or failed. Raises as `take_over`."""
        recording = take_over(self._store, run_id, self._actor)
        return await self._go(run_id, recording, externals_only=False)

    async def _go(self, run_id: str, recording: Recording | None, *, externals_only: bool) -> RunOutcome:
        state = new_state(self._store, self._home, self._plan, run_id)
        state.cards = self._cards
        state.isolation, state.grant = self._kernel.isolation, self._kernel.grant
        session = RunSession(
            state,
            self._store.ledger,
            new_ticket(self._secret, run_id, self._plan.workspace.runs),
            actor=self._actor,
            recording=recording,
            externals_only=externals_only,
        )
        try:
            error = await self._execute(session)
        finally:
            self._plan.workspace.close()
        closing = Closing(self._store, self._home, self._plan, self._plan.nb, state, self._actor)
        return await asyncio.to_thread(close_run, closing, error)

    async def _execute(self, session: RunSession) -> LearnGraphError | None:
        """Runs the cells; None when all of them ended well, else what stopped them."""
        recorder = CellRecorder(self._store, session, self._progress, actor=self._actor)
        warming = asyncio.ensure_future(asyncio.to_thread(warm_up, self._plan))
        try:
            async with BrokerServer(session, self._kernel.broker, private=self._kernel.broker_private):
                await self._kernel.connect()
                await Executor(self._plan.nb, self._kernel, self._plan.limits, recorder).run()
                self._kernel.dismiss()
            return None
        except LearnGraphError as error:
            # The kernel only saw that a call failed; a divergence says more than the exception it became there.
            return session.divergence or error
        except asyncio.CancelledError:
            return Cancelled("the run was interrupted", remedy=f"learngraph resume {session.state.run_id}")
        finally:
            session.close()
            await warming
            recorder.flush()


def take_over(store: Store, run_id: str, actor: str) -> Recording:
    """Makes this process the one that runs a run; returns what the ledger holds of it.

    Raises:
        NotResumable: it has ended for good, or another process runs it.
        RunChanged: another process took it over at the same moment.
    """
    record = store.run(run_id)
    check_resumable(record)
    with store.unit_of_work(actor) as work:
        work.expect_run(run_id, status=record.status, process=record.process)
        work.update_run(run_id, status="running", process=ProcessIdentity.current(), finished_at=None)
        work.append(run_id, "run.resumed", {"from_seq": record.events})
        work.audit("run.resumed", run_id)
    return Recording.from_events(store.ledger.events(run_id), store.artifacts)


def warm_up(plan: RunPlan) -> None:
    """Imports what the notebook's calls will need, while its kernel boots and its first cells import their own.

    Only a head start: a call that comes earlier, or from a notebook that reaches `lg` in another way, imports it then.
    """
    if not any("learngraph_kernel" in cell.source for cell in plan.nb.cells if cell.cell_type == "code"):
        return
    load_all()
    for kind in {config.kind for config in plan.workspace.sources.values()} & BUILT_IN_KINDS.keys():
        BUILT_IN_KINDS[kind].load()


def begin_run(
    store: Store, plan: RunPlan, actor: str, run_id: str | None = None, *, isolation: Isolation = HOST
) -> str:
    """Records a new run and its first event; returns the run's id (a new one unless it was chosen before)."""
    run_id = run_id or new_run_id()
    source = store.artifacts.put(notebook_text(plan.nb).encode())
    record = RunRecord(
        run_id=run_id,
        actor=actor,
        started_at=utcnow(),
        formal=plan.formal,
        title=plan.title,
        notebook=plan.path,
        workspace=str(plan.workspace.root),
        parameters=encode_value(plan.parameters),
        origin=plan.origin,
        parent=plan.parent,
        isolation=isolation.kind,
        process=ProcessIdentity.current(),
    )
    started = {
        "notebook": Path(plan.path).name,
        "source": source,
        "cwd": str(plan.cwd),
        "kernel": plan.kernel,
        "parameters": encode_value(plan.parameters),
        "formal": plan.formal,
        "origin": plan.origin,
        "parent": plan.parent,
        "isolation": isolation.kind,
        "image": isolation.image,
        "environment": _environment(),
    }
    with store.unit_of_work(actor) as work:
        work.insert_run(record)
        work.append(run_id, "run.started", started)
        work.audit("run.started", run_id)
    return run_id


def new_state(store: Store, home: Home, plan: RunPlan, run_id: str) -> RunState:
    """The evidence of a run before its first call: its inputs, and what its declaration lays down for calls."""
    declaration = plan.declaration
    titles = {} if declaration.parameters is None else declaration.parameters.titles
    inputs = {name: InputRecord(name, value, titles.get(name)) for name, value in plan.parameters.items()}
    return RunState(
        run_id=run_id,
        artifacts=store.artifacts,
        workspace=plan.workspace,
        home=home,
        book=Book(run_id=run_id, inputs=inputs),
        formal=plan.formal,
        language=declaration.language,
        open_model=_model_opener(store, home, plan),
        max_repairs=declaration.max_repairs,
        metric_pins=declaration.metrics,
        on_newer_metric=declaration.on_newer_metric,
    )


def new_ticket(secret: str, run_id: str, limits: RunLimits = DEFAULT_LIMITS) -> Ticket:
    """The ticket of a run's kernel, within the limits of its workspace."""
    return Ticket(secret, run_id, None, limits.calls, time.monotonic() + limits.seconds)


def check_resumable(record: RunRecord) -> None:
    """Raises NotResumable when the run has ended for good or still runs."""
    if record.status in ("completed", "withheld"):
        raise NotResumable(
            f"run {record.run_id} is {record.status}", remedy="`learngraph rerun` runs it again, `learngraph run` anew"
        )
    if record.status == "running" and record.alive():
        raise NotResumable(f"run {record.run_id} is still running", remedy="wait for it, or stop its process first")


def _model_opener(store: Store, home: Home, plan: RunPlan) -> Callable[[], Any]:
    @functools.cache  # one adapter a run: a script counts what it has played
    def opener() -> Any:
        from learngraph_kernel.accounts.opening import open_declared
        from learngraph_kernel.models.config import choose_model, parse_models

        declared = parse_models(plan.workspace.models, root=plan.workspace.root)
        return open_declared(choose_model(declared), store, home)

    return opener


def _environment() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: version(name) for name in PACKAGES},
    }
