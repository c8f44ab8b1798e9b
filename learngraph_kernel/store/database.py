"""The store: the one door to runs, ledger and artifacts of a home.

Opening a current database is plain SQL: Alembic (half a second of imports) is only imported when the file's revision
is not the one the code expects.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import Engine, Select, func, select

from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.checking import Finding, check_artifacts, check_database
from learngraph_kernel.store.clock import Clock, utcnow
from learngraph_kernel.store.errors import UnknownRun
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.ledger import Ledger
from learngraph_kernel.store.opening import open_engine
from learngraph_kernel.store.process import ProcessIdentity
from learngraph_kernel.store.run_record import COLUMNS, RunRecord, Status, from_columns, new_run_id
from learngraph_kernel.store.schema import events, runs
from learngraph_kernel.store.sqlite import translated
from learngraph_kernel.store.unit_of_work import UnitOfWork
from learngraph_kernel.store.writer import Writer

__all__ = ["Finding", "Home", "ProcessIdentity", "RunRecord", "Store", "UnitOfWork", "new_run_id", "utcnow"]


T = TypeVar("T")


class Store:
    """Runs, ledger and artifacts of one home. Use it as a context manager, or `close` it.

    Attributes:
        home: where it lies.
        artifacts: bytes by their hash.
        ledger: the runs' events.
    """

    def __init__(self, home: Home, engine: Engine, clock: Clock) -> None:
        self.home = home
        self.clock = clock
        self.artifacts = ArtifactStore(home.artifacts)
        self._engine = engine
        self._writer = Writer(engine, home.database, clock=clock, is_artifact=self.artifacts.__contains__)
        self.ledger = Ledger(engine, self._writer, home.database)

    @classmethod
    def open(cls, home: Home, *, clock: Clock = utcnow) -> Store:
        """Opens the store of a home; makes or migrates the database where needed.

        Raises:
            StoreCorrupt: the file is damaged or is no LearnGraph database.
            StoreTooNew: a newer LearnGraph wrote it.
            StoreUnavailable, StoreBusy, StorageFull: it cannot be opened here and now.
        """
        home.ensure()
        return cls(home, open_engine(home.database), clock)

    @property
    def path(self) -> Path:
        """The database file."""
        return self.home.database

    def unit_of_work(self, actor: str) -> UnitOfWork:
        """Changes that are written together at the end of a `with` block; see `UnitOfWork`."""
        return UnitOfWork(actor, self._writer)

    def run(self, run_id: str) -> RunRecord:
        """One run. Raises UnknownRun."""
        found = self._records(_run_query().where(runs.c.run_id == run_id))
        if not found:
            raise UnknownRun(f"there is no run {run_id}", remedy="`learngraph list` shows the runs")
        return found[0]

    def runs(self, status: Status | None = None, limit: int | None = None) -> list[RunRecord]:
        """Runs, newest first.

        Args:
            status: only runs of that observed status (`interrupted` includes runs whose process has died).
            limit: at most so many.
        """
        query = _run_query().order_by(runs.c.run_id.desc())
        if status is None:
            return self._records(query if limit is None else query.limit(limit))
        recorded = ("running", "interrupted") if status in {"running", "interrupted"} else (status,)
        found = self._records(query.where(runs.c.status.in_(recorded)))
        return [record for record in found if record.observed_status() == status][:limit]

    def check(self, *, rehash: bool = True) -> list[Finding]:
        """Everything that is wrong with the database and the artifacts that runs rest on; empty when all is well.

        Args:
            rehash: read and hash every artifact; otherwise only look whether it is there.
        """
        damage = check_database(self._engine, self.path)
        return damage + list(check_artifacts(self._engine, self.path, self.artifacts, rehash=rehash))

    def scalars(self, query: Select[tuple[T]]) -> list[T]:
        """The first column of a query, for the store's own parts. Raises StoreCorrupt, StoreUnavailable."""
        with translated(self.path), self._engine.connect() as connection:
            return list(connection.scalars(query))

    def rows(self, query: Select[Any]) -> list[dict[str, Any]]:
        """The rows of a query by column name, for packages with tables of their own.

        Raises:
            StoreCorrupt, StoreUnavailable.
        """
        with translated(self.path), self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def close(self) -> None:
        """Writes what is queued and closes the database."""
        self._writer.close()
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _records(self, query: Select[tuple[object, ...]]) -> list[RunRecord]:
        with translated(self.path), self._engine.connect() as connection:
            return [from_columns(dict(row)) for row in connection.execute(query).mappings()]


def _run_query() -> Select[tuple[object, ...]]:
    """Runs with the head of their ledger: one look-up in the clustered index for each."""
    last = select(func.max(events.c.seq)).where(events.c.run_id == runs.c.run_id).correlate(runs).scalar_subquery()
    count = last.label("events")
    head = (
        select(events.c.hash)
        .where(events.c.run_id == runs.c.run_id, events.c.seq == last)
        .correlate(runs)
        .scalar_subquery()
        .label("head")
    )
    return select(*(runs.c[name] for name in COLUMNS), count, head)
