"""Writes a run's cells into its ledger and tells the session which cell is running."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.runs.content import canonical_outputs
from learngraph_kernel.runs.engine import CellObserver
from learngraph_kernel.store.database import Store


class CellRecorder:
    """A cell observer between the engine and the ledger; passes everything on to a progress display.

    Cell events are submitted, not waited for: what must be durable before the kernel goes on are calls, and the broker
    waits for those. `flush` waits for the rest.
    """

    def __init__(self, store: Store, session: RunSession, progress: CellObserver, *, actor: str) -> None:
        self._store = store
        self._session = session
        self._progress = progress
        self._actor = actor
        self._pending: list[Future[Any]] = []

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        self._submit("cell.started", {"cell": cell.id, "index": index})
        self._session.begin_cell(cell.id)
        self._progress.cell_started(cell, index, total)

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        self._session.end_cell()
        outputs = canonical_outputs(cell, run_id=self._session.state.run_id)
        sha256 = self._store.artifacts.put_json(outputs)
        self._submit("cell.completed", {"cell": cell.id, "index": index, "outputs": sha256})
        self._progress.cell_completed(cell, index, seconds)

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        self._submit("cell.failed", {"cell": cell.id, "index": index, "error": error.as_json()})
        self._progress.cell_failed(cell, index, error)

    def flush(self) -> None:
        """Waits until every cell event is durable. Raises what the store raised."""
        pending, self._pending = self._pending, []
        for future in pending:
            future.result()

    def _submit(self, kind: str, data: dict[str, Any]) -> None:
        run_id = self._session.state.run_id
        self._pending.append(self._store.ledger.submit(run_id, kind, data, actor=self._actor))
