"""The ledger: append-only, hash-chained events per run. What `append` has returned survives `kill -9`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Engine, Row, Select, select

from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.chain import (
    FIRST_PREVIOUS,
    ChainBroken,
    Draft,
    Event,
    Head,
    NotAnEvent,
    chain,
    check_chain,
    draft,
)
from learngraph_kernel.store.errors import StoreCorrupt
from learngraph_kernel.store.schema import event_artifacts, events
from learngraph_kernel.store.sqlite import corrupt, translated
from learngraph_kernel.store.writer import Batch, Writer, read_head

__all__ = [
    "FIRST_PREVIOUS",
    "ChainBroken",
    "Draft",
    "Event",
    "Head",
    "Ledger",
    "NotAnEvent",
    "chain",
    "check_chain",
    "draft",
]

MAX_DATA_BYTES = 1 << 20
PAGE = 500


@dataclass(frozen=True, slots=True)
class _Append:
    """The writer's job for events that belong together."""

    drafts: tuple[Draft, ...]
    savepoint: Literal[False] = False

    def __call__(self, batch: Batch) -> list[Event]:
        return [batch.append(item) for item in self.drafts]


@dataclass(frozen=True, slots=True)
class _AppendOne:
    draft: Draft
    savepoint: Literal[False] = False

    def __call__(self, batch: Batch) -> Event:
        return batch.append(self.draft)


def checked_draft(run_id: str, type: str, data: Mapping[str, Any], *, actor: str, after_seal: bool = False) -> Draft:
    """Like `draft`, and refuses data that belongs into an artifact. Raises NotCanonical, BadInput."""
    made = draft(run_id, type, data, actor=actor, after_seal=after_seal)
    if len(made.canonical_data) > MAX_DATA_BYTES:
        raise BadInput(
            f"the data of a {type} event is {len(made.canonical_data)} bytes long, more than {MAX_DATA_BYTES}",
            where=f"run {run_id}",
            remedy="put large values into an artifact and name it",
        )
    return made


class Ledger:
    """Events of all runs of one store. Safe to use from several threads and processes at once."""

    def __init__(self, engine: Engine, writer: Writer, path: Path) -> None:
        self._engine = engine
        self._writer = writer
        self._path = path

    def append(self, run_id: str, type: str, data: Mapping[str, Any], *, actor: str, after_seal: bool = False) -> Event:
        """Records an event; returns when it is on the disk.

        Args:
            run_id: a run that is in the store.
            type: e.g. `call.completed`.
            data: a JSON object (see `canonical.encode_value`), at most 1 MiB; from 16 KiB use an artifact.
            actor: who.
            after_seal: outside the sealed part.

        Raises:
            UnknownRun, NotCanonical, BadInput: it was not recorded.
            StorageFull, StoreBusy, StoreUnavailable, StoreCorrupt: it was not recorded.
        """
        return self.submit(run_id, type, data, actor=actor, after_seal=after_seal).result()

    def submit(
        self, run_id: str, type: str, data: Mapping[str, Any], *, actor: str, after_seal: bool = False
    ) -> Future[Event]:
        """Queues an event; the future is done when it is on the disk. Raises NotCanonical, BadInput, StoreClosed."""
        return self._writer.submit(_AppendOne(checked_draft(run_id, type, data, actor=actor, after_seal=after_seal)))

    def append_many(self, drafts: Sequence[Draft]) -> list[Event]:
        """Records events, all or none, in order, with nothing between those of one run. Raises as `append`."""
        return self._writer.submit(_Append(tuple(drafts))).result()

    def events(self, run_id: str, *, after: int = 0, types: Collection[str] | None = None) -> Iterator[Event]:
        """A run's events in order, read in pages.

        Args:
            run_id: the run; an unknown one has no events.
            after: only events behind this position.
            types: only events of these types.

        Raises:
            StoreCorrupt: the database is damaged; the events before the damage have been given out.
            ChainBroken: the data of an event is no longer JSON.
        """
        query = select(events).where(events.c.run_id == run_id).order_by(events.c.seq)
        if types is not None:
            query = query.where(events.c.type.in_(list(types)))
        size = PAGE
        while True:
            try:
                page = self._page(query.where(events.c.seq > after).limit(size))
            except StoreCorrupt as error:
                if size == 1:
                    raise corrupt(self._path, f"run {run_id}, behind event {after}: {error.what}") from error
                size = 1  # what stands before the damage can still be read
                continue
            yield from map(_event, page)
            if len(page) < size:
                return
            after = page[-1].seq

    def _page(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with translated(self._path), self._engine.connect() as connection:
            return connection.execute(query).all()

    def head(self, run_id: str) -> Head | None:
        """The last event of a run, None when it has none; takes the same time however long the ledger is."""
        with translated(self._path), self._engine.connect() as connection:
            return read_head(connection, run_id)

    def count(self, run_id: str) -> int:
        """The number of events of a run: positions are consecutive, so it is the last one."""
        head = self.head(run_id)
        return 0 if head is None else head.seq

    def artifacts(self, run_id: str) -> list[str]:
        """Artifacts that the run's events name, each once, sorted."""
        query = (
            select(event_artifacts.c.sha256)
            .where(event_artifacts.c.run_id == run_id, event_artifacts.c.present)
            .distinct()
            .order_by(event_artifacts.c.sha256)
        )
        with translated(self._path), self._engine.connect() as connection:
            return list(connection.scalars(query))


def _event(row: Row[Any]) -> Event:
    try:
        data = json.loads(row.data)
    except ValueError as error:
        raise ChainBroken(row.run_id, row.seq, "altered", f"its data is not JSON ({error})") from error
    return Event(
        run=row.run_id,
        seq=row.seq,
        type=row.type,
        at=row.at,
        actor=row.actor,
        after_seal=row.after_seal,
        data=data,
        prev=row.prev,
        hash=row.hash,
    )
