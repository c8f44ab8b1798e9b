"""The one way in for effects: state, audit record, outbox message and events in one transaction, or none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol

from sqlalchemy import func, insert, select, update

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.chain import Draft, Event
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.errors import RunChanged, RunExists, UnknownRun
from learngraph_kernel.store.ledger import checked_draft
from learngraph_kernel.store.run_record import COLUMNS, RunRecord, to_columns
from learngraph_kernel.store.schema import audit, outbox, runs
from learngraph_kernel.store.writer import Batch, Writer


class Step(Protocol):
    """One change; may run again when the transaction is tried again."""

    def __call__(self, batch: Batch) -> None: ...


@dataclass(frozen=True, slots=True)
class _InsertRun:
    run_id: str
    columns: Mapping[str, Any]

    def __call__(self, batch: Batch) -> None:
        if batch.connection.scalar(select(func.count()).where(runs.c.run_id == self.run_id)):
            raise RunExists(f"run {self.run_id} exists already", remedy="take a new id from new_run_id()")
        batch.connection.execute(insert(runs).values(self.columns))


@dataclass(frozen=True, slots=True)
class _ExpectRun:
    run_id: str
    columns: Mapping[str, Any]

    def __call__(self, batch: Batch) -> None:
        query = select(*(runs.c[name] for name in self.columns)).where(runs.c.run_id == self.run_id)
        row = batch.connection.execute(query).mappings().one_or_none()
        if row is None:
            raise _unknown(self.run_id)
        changed = [name for name, value in self.columns.items() if row[name] != value]
        if changed:
            raise RunChanged(
                f"the {changed[0]} of run {self.run_id} has changed meanwhile",
                remedy="another process works on this run: look at `learngraph show`, then decide again",
                details={"changed": changed},
            )


@dataclass(frozen=True, slots=True)
class _UpdateRun:
    run_id: str
    columns: Mapping[str, Any]

    def __call__(self, batch: Batch) -> None:
        done = batch.connection.execute(update(runs).where(runs.c.run_id == self.run_id).values(self.columns))
        if done.rowcount == 0:
            raise _unknown(self.run_id)


@dataclass(frozen=True, slots=True)
class _Record:
    """A row of the audit table or the outbox."""

    table: Any
    columns: Mapping[str, Any]

    def __call__(self, batch: Batch) -> None:
        batch.connection.execute(insert(self.table).values(**self.columns, at=to_text(batch.clock())))


@dataclass(frozen=True, slots=True)
class _AppendEvent:
    draft: Draft
    made: list[Event]

    def __call__(self, batch: Batch) -> None:
        self.made.append(batch.append(self.draft))


@dataclass(slots=True)
class UnitOfWork:
    """Collects changes inside a `with` block and writes them when the block ends; an exception drops them all.

    Values are checked when they are handed in, existence when they are written.

    Attributes:
        actor: who does this, e.g. `user:ana`.
        events: the appended events, filled when the block has ended.
    """

    actor: str
    _writer: Writer
    events: list[Event] = field(default_factory=list)
    savepoint: Literal[True] = True
    _steps: list[Step] = field(default_factory=list)

    def insert_run(self, record: RunRecord) -> None:
        """Adds a run. Raises BadInput now, RunExists at the end of the block."""
        self._steps.append(_InsertRun(record.run_id, to_columns({name: getattr(record, name) for name in COLUMNS})))

    def update_run(self, run_id: str, **changes: Any) -> None:
        """Changes fields of a run. Raises BadInput now (no such field or value), UnknownRun at the end."""
        if not changes:
            raise BadInput("name the fields to change")
        self._steps.append(_UpdateRun(run_id, to_columns(changes)))

    def expect_run(self, run_id: str, **values: Any) -> None:
        """The block counts only if the run still has these values when it is written.

        With it, of two processes that both read a run as `interrupted` only one takes it over.

        Raises:
            BadInput: no such field or value; now.
            RunChanged, UnknownRun: at the end of the block, and nothing of it is written.
        """
        self._steps.append(_ExpectRun(run_id, to_columns(values)))

    def append(self, run_id: str, type: str, data: Mapping[str, Any], *, after_seal: bool = False) -> None:
        """Records a ledger event in the same transaction, by this unit's actor. Raises as `Ledger.append`."""
        drafted = checked_draft(run_id, type, data, actor=self.actor, after_seal=after_seal)
        self._steps.append(_AppendEvent(drafted, self.events))

    def change(self, step: Step) -> None:
        """A change to a table that has no method here, by the package it belongs to. Raises what the step raises."""
        self._steps.append(step)

    def audit(self, action: str, target: str, details: Mapping[str, Any] | None = None) -> None:
        """Records who did what to what. `details` is a JSON object. Raises NotCanonical."""
        text = canonical_json(dict(details or {})).decode()
        self._steps.append(_Record(audit, {"actor": self.actor, "action": action, "target": target, "details": text}))

    def emit(self, type: str, aggregate: str, payload: Mapping[str, Any] | None = None) -> None:
        """Leaves a message for whoever reads the outbox. `payload` is a JSON object. Raises NotCanonical."""
        text = canonical_json(dict(payload or {})).decode()
        self._steps.append(_Record(outbox, {"type": type, "aggregate": aggregate, "payload": text}))

    def __call__(self, batch: Batch) -> None:
        """Writes the changes; the writer calls it. A repeated attempt starts again with no events."""
        self.events.clear()
        for step in self._steps:
            step(batch)

    def __enter__(self) -> UnitOfWork:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._steps:
            self._writer.submit(self).result()


def _unknown(run_id: str) -> UnknownRun:
    return UnknownRun(f"there is no run {run_id}", remedy="`learngraph list` shows the runs")
