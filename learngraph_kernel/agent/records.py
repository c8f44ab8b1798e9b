"""What an owner's runs and conversations left behind, for reading: runs, their pages, their seals, stored results.

A run of somebody else is told as unknown. Everything here blocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import or_, select

from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.history import calls_of
from learngraph_kernel.runs.records import REPORT_HTML
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.errors import UnknownRun
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.run_record import RunRecord
from learngraph_kernel.store.schema import session_events, session_messages

MAX_ATTACHMENT = 16 * 1024 * 1024
MOST_RUNS = 2_000
"""Runs of all owners that are looked through for one owner's latest."""


class NoReport(BadInput):
    """The run has no page."""

    code = "unknown_report"


class NotReferred(BadInput):
    """The conversation refers to no such artifact."""

    code = "unknown_artifact"


class OwnersRecords:
    """Reads for one owner at a time."""

    def __init__(self, store: Store, home: Home) -> None:
        self._store, self._home = store, home

    def runs(self, owner: str, limit: int) -> list[dict[str, Any]]:
        """The owner's latest runs, newest first."""
        mine = [record for record in self._store.runs(limit=MOST_RUNS) if record.actor == owner]
        return [_shown(record) for record in mine[:limit]]

    def run(self, owner: str, run_id: str) -> dict[str, Any]:
        """One run with its calls. Raises UnknownRun."""
        record = self._own(owner, run_id)
        return _shown(record) | {"calls": calls_of(self._store.ledger.events(run_id))}

    def verify(self, owner: str, run_id: str) -> dict[str, Any]:
        """Verifies a run's seal: what `learngraph verify --json` prints. Raises UnknownRun, NotSealed."""
        from learngraph_kernel.runs.targets import verify

        self._own(owner, run_id)
        return verify(run_id, home=self._home, pin=None).as_json()

    def report(self, owner: str, run_id: str) -> bytes:
        """The page of a run. Raises UnknownRun, NoReport."""
        self._own(owner, run_id)
        path = self._home.runs / run_id / REPORT_HTML
        if not path.is_file():
            raise NoReport("the run has no report", where=run_id, remedy="its notebook calls lg.report(...)")
        return path.read_bytes()

    def artifact(self, session_id: str, sha256: str) -> bytes:
        """An artifact that a conversation names in its events or messages. Raises NotReferred."""
        for table, text in ((session_events, session_events.c.data), (session_messages, session_messages.c.parts)):
            named = select(table.c.session_id).where(
                table.c.session_id == session_id, or_(text.contains(f'"{sha256}"'), text.contains(f"'{sha256}'"))
            )
            if self._store.rows(named.limit(1)):
                return self._store.artifacts.read(sha256)
        raise NotReferred("this conversation refers to no such artifact", where=sha256, remedy="load it again")

    def attach(self, name: str, data: bytes) -> dict[str, Any]:
        """Stores a file that goes with a question. Raises BadInput (too large), StorageFull."""
        if len(data) > MAX_ATTACHMENT:
            raise BadInput(f"{name} has {len(data):,} bytes", remedy=f"attach less than {MAX_ATTACHMENT:,} bytes")
        sha256 = self._store.artifacts.put(data)
        return {"name": name, "sha256": sha256, "media_type": "application/octet-stream", "bytes": len(data)}

    def _own(self, owner: str, run_id: str) -> RunRecord:
        record = self._store.run(run_id)
        if record.actor != owner:
            raise UnknownRun(f"there is no run {run_id}", remedy="list your runs")
        return record


def _shown(record: RunRecord) -> dict[str, Any]:
    """A run without what names this machine."""
    body = {key: value for key, value in record.as_json().items() if key not in ("process", "workspace")}
    return body | {"notebook": None if record.notebook is None else Path(record.notebook).name}
