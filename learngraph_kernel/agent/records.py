"""What an owner's runs and conversations left behind, for reading: runs, their pages, their seals, stored results.

A run of somebody else is told as unknown. Everything here blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import delete, insert, or_, select

from learngraph_kernel.agent.values import MAX_ATTACHMENT
from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.history import calls_of
from learngraph_kernel.runs.records import REPORT_HTML
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.errors import UnknownRun
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.run_record import RunRecord
from learngraph_kernel.store.schema import session_attachments as table
from learngraph_kernel.store.schema import session_events, session_messages
from learngraph_kernel.store.writer import Batch

MOST_RUNS = 2_000
"""Runs of all owners that are looked through for one owner's latest."""


class NoReport(BadInput):
    """The run has no page."""

    code = "unknown_report"


class NotReferred(BadInput):
    """The conversation refers to no such artifact."""

    code = "unknown_artifact"


class UnknownAttachment(BadInput):
    """The owner has brought no such file."""

    code = "unknown_attachment"


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
        for place, text in ((session_events, session_events.c.data), (session_messages, session_messages.c.parts)):
            named = select(place.c.session_id).where(
                place.c.session_id == session_id, or_(text.contains(f'"{sha256}"'), text.contains(f"'{sha256}'"))
            )
            if self._store.rows(named.limit(1)):
                return self._store.artifacts.read(sha256)
        raise NotReferred("this conversation refers to no such artifact", where=sha256, remedy="load it again")

    def attach(self, owner: str, name: str, data: bytes) -> dict[str, Any]:
        """Stores a file that the owner wants to go with a question.

        Returns: `{"name", "sha256", "media_type", "bytes"}`, as a question carries it.

        Raises:
            BadInput: too large, or no name. StorageFull.
        """
        if len(data) > MAX_ATTACHMENT:
            raise BadInput(f"{name} has {len(data):,} bytes", remedy=f"attach less than {MAX_ATTACHMENT:,} bytes")
        if not 0 < len(name) <= 300 or not name.isprintable():
            raise BadInput("a file has a name of 1 to 300 printable characters", remedy="name the file")
        sha256 = self._store.artifacts.put(data)
        row = {"owner": owner, "sha256": sha256, "name": name, "bytes": len(data)}

        def note(batch: Batch) -> None:
            mine = (table.c.owner == owner) & (table.c.sha256 == sha256)
            batch.connection.execute(delete(table).where(mine))
            batch.connection.execute(insert(table).values(**row, at=to_text(batch.clock())))

        with self._store.unit_of_work(owner) as work:
            work.change(note)
        return {"name": name, "sha256": sha256, "media_type": "application/octet-stream", "bytes": len(data)}

    def check_attachments(self, owner: str, attachments: Sequence[Mapping[str, Any]]) -> None:
        """A question may carry what its owner brought, and nothing else. Raises UnknownAttachment."""
        for attachment in attachments:
            sha256 = str(attachment.get("sha256"))
            mine = select(table.c.sha256).where(table.c.owner == owner, table.c.sha256 == sha256)
            if not self._store.rows(mine):
                raise UnknownAttachment("you brought no such file", where=sha256[:64], remedy="upload it first")

    def note_refusal(self, owner: str, code: str, target: str) -> None:
        """Puts on record that a call of the owner's was refused before it did anything: too many, large, unknown."""
        with self._store.unit_of_work(owner) as work:
            work.audit("call.refused", target, {"code": code})

    def _own(self, owner: str, run_id: str) -> RunRecord:
        record = self._store.run(run_id)
        if record.actor != owner:
            raise UnknownRun(f"there is no run {run_id}", remedy="list your runs")
        return record


def _shown(record: RunRecord) -> dict[str, Any]:
    """A run without what names this machine."""
    body = {key: value for key, value in record.as_json().items() if key not in ("process", "workspace")}
    return body | {"notebook": None if record.notebook is None else Path(record.notebook).name}
