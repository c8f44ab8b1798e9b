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
from sqlalchemy.pool import QueuePool

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
_CANNOT_WRITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


class _Connection(sqlite3.Connection):
    """A connection that knows why it cannot write, if it cannot."""

    obstacle: sqlite3.Error | None = None


def make_engine(path: Path) -> Engine:
    """An engine for a database file; nothing is opened yet."""
    engine = create_engine("sqlite+pysqlite://", creator=lambda: _connect(path), poolclass=QueuePool)
    event.listen(engine, "connect", _remember_obstacle)
    event.listen(engine, "checkin", _use_once)
    event.listen(engine, "begin", _begin)
    return engine


def for_writing(engine: Engine) -> Engine:
    """The same engine, whose transactions take the write lock at once."""
    return engine.execution_options(learngraph_begin="BEGIN IMMEDIATE")


def _connect(path: Path) -> _Connection:
    """A connection to read and write; to read only where nothing can be written (a full disk, a read-only copy)."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, factory=_Connection)
    try:
        connection.isolation_level = None  # we begin transactions ourselves, see `_begin`
        connection.execute("PRAGMA foreign_keys=ON")
        if _journal(connection) != "wal":
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # needs room for the files of the WAL
    except sqlite3.Error as error:
        connection.close()
        if _cannot_write(error) and _is_closed(path):
            return _connect_immutable(path, error)
        raise
    return connection


def _journal(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def _is_closed(path: Path) -> bool:
    """Whether the file holds everything: it has content, and nothing of it waits in a write-ahead log."""
    log = path.with_name(path.name + "-wal")
    return path.is_file() and path.stat().st_size > 0 and not (log.exists() and log.stat().st_size > 0)


def _connect_immutable(path: Path, obstacle: sqlite3.Error) -> _Connection:
    """Without locks and without the files of the WAL, which could not be made."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, factory=_Connection)
    connection.isolation_level = None
    connection.obstacle = obstacle
    return connection


def _remember_obstacle(connection: _Connection, record: Any) -> None:
    record.info["obstacle"] = connection.obstacle


def _use_once(_connection: Any, record: Any) -> None:
    """An immutable connection would not see what is written once there is room again."""
    if record.info.get("obstacle") is not None:
        record.invalidate()


def _begin(connection: Connection) -> None:
    statement = connection.get_execution_options().get("learngraph_begin", "BEGIN")
    obstacle = connection.info.get("obstacle")
    if obstacle is not None and statement != "BEGIN":
        raise obstacle
    connection.exec_driver_sql(statement)


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


def _cannot_write(error: sqlite3.Error) -> bool:
    extended = getattr(error, "sqlite_errorcode", 0)
    return extended in _SHORT_OF_SPACE or extended & _PRIMARY in _CANNOT_WRITE


def meaning_of(error: BaseException | None, path: Path) -> LearnGraphError | None:
    """What a driver error means to a person; None when it is a mistake in our own code."""
    extended = getattr(error, "sqlite_errorcode", None)
    if extended is None:
        # The driver's own operational error, without a code from SQLite: a text in the file is not UTF-8.
        return corrupt(path, str(error)[:200]) if isinstance(error, sqlite3.OperationalError) else None
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
