"""sandboxd's database: what was promised, so that a crash at any moment can be put right from it.

Synchronous; one transaction at a time, whichever thread asks (`Workers.record` keeps it off the event loop). A row that
says `starting` is committed before the engine is asked, and the answer to an idempotency key is stored with the row it
created, in the same transaction.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import StaticPool

from learngraph_kernel.sandboxd import schema

ACTIVE = ("starting", "running", "warm_idle")
"""States of a sandbox that count as capacity."""

KERNEL_ACTIVE = ("warming", "warm", "starting", "running")
"""States of a kernel that count as capacity."""

Row = dict[str, Any]


def new_id(prefix: str) -> str:
    """A fresh, unguessable name: `sb_…`, `x_…`, `k_…`, `t_…`, `j_…`."""
    return f"{prefix}_{secrets.token_hex(12)}"


class Records:
    """One database file. Every method is one transaction, or runs in the caller's (`transaction`)."""

    def __init__(self, path: Path) -> None:
        self.engine: Engine = sa.create_engine(
            f"sqlite:///{path}", poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
        event.listen(self.engine, "connect", pragmas)
        event.listen(self.engine, "begin", begin)
        schema.metadata.create_all(self.engine)
        self._lock = threading.RLock()
        self._open: Connection | None = None
        self._level = "FULL"

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def transaction(self, *, flushed: bool = True) -> Iterator[Connection]:
        """All or nothing; calls inside join it.

        Args:
            flushed: on disk when it returns. Without it a transaction survives a crash of this process, and one of the
                machine only once a later one was flushed: enough for what a crash of the machine makes void anyway.
        """
        with self._lock:
            if self._open is not None:
                yield self._open
                return
            self._synchronous("FULL" if flushed else "NORMAL")
            with self.engine.begin() as connection:
                self._open = connection
                try:
                    yield connection
                finally:
                    self._open = None

    def _synchronous(self, level: str) -> None:
        if level != self._level:
            raw = self.engine.raw_connection()
            raw.cursor().execute(f"PRAGMA synchronous={level}")
            raw.close()
            self._level = level

    def rows(self, statement: sa.Select[Any]) -> list[Row]:
        with self.transaction() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def row(self, statement: sa.Select[Any]) -> Row | None:
        found = self.rows(statement.limit(1))
        return found[0] if found else None

    def get(self, table: sa.Table, identity: str) -> Row | None:
        return self.row(sa.select(table).where(table.c.id == identity))

    def insert(self, table: sa.Table, values: Mapping[str, Any]) -> Row:
        with self.transaction() as connection:
            connection.execute(sa.insert(table).values(**values))
        return dict(values)

    def update(
        self,
        table: sa.Table,
        identity: str,
        values: Mapping[str, Any],
        *,
        when: Sequence[str] | None = None,
        container: str | None = None,
    ) -> bool:
        """Changes one row if it is in one of the states `when` and has this container. Returns whether it did."""
        statement = sa.update(table).where(table.c.id == identity).values(**values)
        if when is not None:
            statement = statement.where(table.c.state.in_(when))
        if container is not None:
            statement = statement.where(table.c.container == container)
        with self.transaction() as connection:
            return connection.execute(statement).rowcount == 1

    def delete(self, table: sa.Table, identity: str) -> None:
        with self.transaction() as connection:
            connection.execute(sa.delete(table).where(table.c.id == identity))

    def count(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        with self.transaction() as connection:
            return int(
                connection.execute(sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar_one()
            )

    def fact(self, name: str, make: str) -> str:
        """A value that is fixed the first time it is asked for (the instance's id, its secret)."""
        with self.transaction() as connection:
            facts = schema.facts
            found = connection.execute(sa.select(facts.c.value).where(facts.c.name == name)).scalar_one_or_none()
            if found is None:
                connection.execute(sa.insert(facts).values(name=name, value=make))
                return make
            return str(found)

    def remembered(self, owner: str, key: str) -> Row | None:
        table = schema.idempotency
        return self.row(sa.select(table).where(table.c.owner == owner, table.c.key == key))

    def remember(self, owner: str, key: str, request: str, resource: str, answer: Any, now: float) -> None:
        """Notes what a key stands for, in the transaction that makes the resource."""
        text = None if answer is None else json.dumps(answer, sort_keys=True)
        self.insert(
            schema.idempotency,
            {"owner": owner, "key": key, "request": request, "resource": resource, "answer": text, "created": now},
        )

    def used_image(self, image: str) -> Row | None:
        """When an image was first used here; None when it never was."""
        return self.row(sa.select(schema.used_images).where(schema.used_images.c.id == image))

    def note_image(self, image: str, now: float) -> None:
        """Remembers that containers were started from an image."""
        with self.transaction():
            if self.used_image(image) is None:
                self.insert(schema.used_images, {"id": image, "first_used": now})

    def progress(self, job: str, step: str, share: float, line: str, longest: int) -> None:
        """Notes where a job is; its progress never falls, and its log keeps its end."""
        table = schema.image_jobs
        with self.transaction():
            row = self.get(table, job)
            if row is None:
                return
            log = f"{row['log']}{line}\n"[-longest:] if line else row["log"]
            self.update(table, job, {"step": step, "progress": max(row["progress"], min(share, 1.0)), "log": log})

    def forget_key(self, owner: str, key: str) -> None:
        """Frees a key whose resource was rolled back."""
        table = schema.idempotency
        with self.transaction() as connection:
            connection.execute(sa.delete(table).where(table.c.owner == owner, table.c.key == key))

    def forget(self, *, before: float) -> None:
        """Drops keys and tickets that are too old to matter."""
        with self.transaction() as connection:
            connection.execute(sa.delete(schema.idempotency).where(schema.idempotency.c.created < before))
            connection.execute(sa.delete(schema.tickets).where(schema.tickets.c.expires < before))


def begin(connection: sa.Connection) -> None:
    """A writer takes the lock at once, instead of failing half-way; a reader (WAL) waits for nobody."""
    reads_only = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def pragmas(connection: Any, _record: Any) -> None:
    """Durable and enforced: for every connection to this database."""
    connection.isolation_level = None  # SQLAlchemy's begin event issues BEGIN itself
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
