"""Everything that is particular to SQLite: how a connection is set up, and what its errors mean.

WAL with `synchronous=FULL`: a commit returns when it is on the disk, readers never wait for the writer. Errors are told
apart by SQLite's result codes, never by their text.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store.errors import StorageFull, StoreBusy, StoreCorrupt, StoreUnavailable

BUSY_SECONDS = 30.0
WAL_PAGES = 4000  # 16 MB between checkpoints: a checkpoint costs two more flushes

_PRIMARY = 0xFF  # the low byte of an extended result code
_SHORT_OF_SPACE = frozenset({
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_FSYNC,
})  # fmt: skip


def make_engine(path: Path) -> Engine:
    """An engine for a database file; nothing is opened yet."""
    engine = create_engine(f"sqlite+pysqlite:///{path}", connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def for_writing(engine: Engine) -> Engine:
    """The same engine, whose transactions take the write lock at once."""
    return engine.execution_options(learngraph_begin="BEGIN IMMEDIATE")


def _set_up(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # we begin transactions ourselves, see `_begin`
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("learngraph_begin", "BEGIN"))


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into ours, which say what to do about them."""
    try:
        yield
    except DBAPIError as error:
        meaning = meaning_of(error.orig, path)
        if meaning is None:
            raise
        raise meaning from error
    except sqlite3.Error as error:
        meaning = meaning_of(error, path)
        if meaning is None:
            raise
        raise meaning from error


def meaning_of(error: BaseException | None, path: Path) -> LearnGraphError | None:
    """What a driver error means to a person; None when it is a mistake in our own code."""
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        return None
    code = extended & _PRIMARY
    if code == sqlite3.SQLITE_FULL or extended in _SHORT_OF_SPACE:
        return StorageFull(
            f"no room to write to the database ({error})",
            where=str(path),
            remedy="free disk space or raise the quota; what was acknowledged earlier is safe and can be read",
        )
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return corrupt(path, str(error))
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusy(
            "another process holds the database",
            where=str(path),
            remedy="wait for it or stop it (`fuser` on the file names it), then try again",
        )
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}:
        return StoreUnavailable(
            f"the database cannot be used ({error})",
            where=str(path),
            remedy="check that the file and its folder may be read and written, and that the disk is healthy",
        )
    return None


def corrupt(path: Path, detail: str) -> StoreCorrupt:
    """The error for a damaged or foreign file."""
    return StoreCorrupt(
        f"the database is damaged or is no LearnGraph database ({detail})",
        where=str(path),
        remedy="move the file away and restore it from a backup; sealed runs can still be read and verified "
        "from their exported folders, and artifacts are untouched",
    )
