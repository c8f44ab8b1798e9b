"""The one thread of a process that writes to the database, and group commit.

Callers hand in *jobs* and get futures. The thread takes what is there, does it in one transaction, and answers when the
commit is on the disk: many waiting callers share one flush. A job that fails undoes only itself. Other processes may
write as well: the transaction takes the write lock first and reads every chain's head inside it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, select

from learngraph_kernel.store.chain import Draft, Event, Head, place_in_chain, possible_names
from learngraph_kernel.store.clock import Clock, to_text
from learngraph_kernel.store.errors import StoreBusy, StoreClosed, UnknownRun
from learngraph_kernel.store.schema import events, runs
from learngraph_kernel.store.sqlite import for_writing, translated

MAX_BATCH = 1024
# Callers that have just been answered tend to come back at once. Waiting a moment for them, and for those who queued
# meanwhile, spares a flush; never longer than half of what the last one took, nor than this (seconds).
MAX_GATHER = 0.002
ATTEMPTS = 3
MAX_HEADS = 4096
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Job(Protocol[T_co]):
    """Something to do inside the writer's transaction. Raising undoes this job and no other."""

    @property
    def savepoint(self) -> bool:
        """Whether it writes by itself (and so needs a savepoint), besides appending events."""

    def __call__(self, batch: Batch) -> T_co:
        """Does it."""


# Written out because the compiler's share of `insert(...)` is most of what a small batch costs.
_INSERT_EVENT = (
    "INSERT INTO events (run_id, seq, type, at, actor, after_seal, data, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_NAME = "INSERT INTO event_artifacts (run_id, seq, sha256, present) VALUES (?, ?, ?, ?)"


@dataclass(slots=True)
class Batch:
    """One transaction of the writer. Events are chained in memory and inserted together at its end."""

    connection: Connection
    clock: Clock
    is_artifact: Callable[[str], bool]
    heads: dict[str, Head]
    _events: list[tuple[Any, ...]] = field(default_factory=list)
    _names: list[tuple[Any, ...]] = field(default_factory=list)
    _replaced: list[tuple[str, Head | None]] = field(default_factory=list)

    def append(self, draft: Draft) -> Event:
        """Chains an event to its run. Raises UnknownRun."""
        run, data = draft.run, draft.canonical_data
        previous = self._head(run)
        event = place_in_chain(draft, previous, to_text(self.clock()))
        self._replaced.append((run, previous))
        self.heads[run] = Head(event.seq, event.hash)
        self._events.append(
            (run, event.seq, event.type, event.at, event.actor, event.after_seal, data.decode(), event.prev, event.hash)
        )
        self._names += [(run, event.seq, name, self.is_artifact(name)) for name in possible_names(data)]
        return event

    def run_job(self, job: Job[T]) -> T:
        """Does one job; undoes all of it when it raises."""
        events, names = len(self._events), len(self._names)
        self._replaced.clear()
        savepoint = self.connection.begin_nested() if job.savepoint else None
        try:
            result = job(self)
        except BaseException:
            if savepoint is not None:
                savepoint.rollback()
            del self._events[events:], self._names[names:]
            for run, head in reversed(self._replaced):
                self._restore(run, head)
            raise
        if savepoint is not None:
            savepoint.commit()
        return result

    def flush(self) -> None:
        """Inserts what was appended."""
        if self._events:
            self.connection.exec_driver_sql(_INSERT_EVENT, self._events)
        if self._names:
            self.connection.exec_driver_sql(_INSERT_NAME, self._names)

    def _head(self, run_id: str) -> Head | None:
        head = self.heads.get(run_id) or read_head(self.connection, run_id)
        if head is None and not self.connection.scalar(select(runs.c.run_id).where(runs.c.run_id == run_id)):
            raise UnknownRun(f"there is no run {run_id}", remedy="insert the run before its first event")
        return head

    def _restore(self, run_id: str, head: Head | None) -> None:
        if head is None:
            self.heads.pop(run_id, None)
        else:
            self.heads[run_id] = head


def read_head(connection: Connection, run_id: str) -> Head | None:
    """The last event of a run; one look-up, however long the ledger is."""
    query = select(events.c.seq, events.c.hash).where(events.c.run_id == run_id).order_by(events.c.seq.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else Head(row.seq, row.hash)


class Writer:
    """Owns the writing thread, which starts with the first job and ends with `close`."""

    def __init__(self, engine: Engine, path: Path, *, clock: Clock, is_artifact: Callable[[str], bool]) -> None:
        self._engine = for_writing(engine)
        self._path = path
        self._clock = clock
        self._is_artifact = is_artifact
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Job[Any], Future[Any]]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._connection: Connection | None = None
        self._heads: dict[str, Head] = {}
        self._version: int | None = None

    def submit(self, job: Job[T]) -> Future[T]:
        """Queues a job; the future is done when its effect is on the disk. Raises StoreClosed."""
        return self.submit_all([job])[0]

    def submit_all(self, jobs: Sequence[Job[T]]) -> list[Future[T]]:
        """Queues jobs, in order, with nothing of other callers between them. Raises StoreClosed."""
        futures: list[Future[T]] = [Future() for _ in jobs]
        with self._changed:
            if self._closed:
                raise StoreClosed("the store is closed", where=str(self._path), remedy="open it again")
            if self._thread is None:
                # A daemon: an unclosed store must not keep the process alive, and nothing unacknowledged is promised.
                self._thread = threading.Thread(target=self._work, name="learngraph-writer", daemon=True)
                self._thread.start()
            self._waiting.extend(zip(jobs, futures, strict=True))
            self._changed.notify()
        return futures

    def close(self) -> None:
        """Does what is queued, then ends the thread. Later jobs are refused."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    # The thread

    def _work(self) -> None:
        answered, took = 0, 0.0
        while batch := self._take(answered, min(took / 2, MAX_GATHER)):
            live = [(job, future) for job, future in batch if future.set_running_or_notify_cancel()]
            begin = time.monotonic()
            outcomes = self._outcomes([job for job, _ in live])
            answered, took = len(live), time.monotonic() - begin
            for (_, future), outcome in zip(live, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
        self._disconnect()

    def _take(self, answered: int, patience: float) -> list[tuple[Job[Any], Future[Any]]]:
        """What there is to do; empty when the store is closed and nothing is left.

        Args:
            answered: how many callers were just answered.
            patience: how long to wait for them, in seconds.
        """
        with self._changed:
            deadline = time.monotonic() + patience
            expected = min(answered + len(self._waiting), MAX_BATCH) if answered > 1 or self._waiting else 1
            while len(self._waiting) < expected and not self._closed:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            while not self._waiting and not self._closed:
                self._changed.wait()
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]

    def _outcomes(self, jobs: list[Job[Any]]) -> list[Any]:
        """A result or an exception for each job; when the transaction fails, its exception for all of them."""
        try:
            return self._commit(jobs)
        except BaseException as error:  # noqa: BLE001  every caller is told, the thread goes on
            return [error] * len(jobs)

    def _commit(self, jobs: list[Job[Any]]) -> list[Any]:
        for _ in range(ATTEMPTS - 1):
            try:
                return self._transaction(jobs)
            except StoreBusy:
                continue
        return self._transaction(jobs)

    def _transaction(self, jobs: list[Job[Any]]) -> list[Any]:
        outcomes: list[Any] = []
        try:
            with translated(self._path):
                connection = self._connect()
                with connection.begin():
                    batch = Batch(connection, self._clock, self._is_artifact, self._known_heads(connection))
                    for job in jobs:
                        try:
                            outcomes.append(batch.run_job(job))
                        except Exception as error:  # noqa: BLE001  handed to the caller whose job it was
                            outcomes.append(error)
                    batch.flush()
        except BaseException:
            self._disconnect()
            raise
        return outcomes

    def _known_heads(self, connection: Connection) -> dict[str, Head]:
        """The heads that we wrote ourselves; none when anyone else has written to the database since.

        Asked inside the transaction, so the answer holds until it ends.
        """
        version = int(connection.exec_driver_sql("PRAGMA data_version").scalar_one())
        if version != self._version or len(self._heads) > MAX_HEADS:
            self._heads.clear()
            self._version = version
        return self._heads

    def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _disconnect(self) -> None:
        """After an error nothing that was remembered holds."""
        self._heads.clear()
        self._version = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
