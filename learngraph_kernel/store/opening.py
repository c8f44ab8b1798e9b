"""Opening a database file: make it, take it as it is, migrate it, or say why not."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine

from learngraph_kernel.store.schema import HEAD, metadata
from learngraph_kernel.store.sqlite import corrupt, for_writing, make_engine, translated


def open_engine(path: Path) -> Engine:
    """An engine for the database at `path`, whose tables are those of `schema`.

    Raises:
        StoreCorrupt, StoreTooNew, StoreUnavailable, StoreBusy, StorageFull.
    """
    engine = make_engine(path)
    try:
        with translated(path):
            with engine.connect() as connection:
                revision = _revision(connection)
            if revision != HEAD:
                with for_writing(engine).begin() as connection:
                    _bring_up_to_date(connection, path)
    except BaseException:
        engine.dispose()
        raise
    _make_private(path)
    return engine


def _make_private(path: Path) -> None:
    """Others of this machine must not read it; SQLite makes its companion files with the same mode."""
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _bring_up_to_date(connection: Connection, path: Path) -> None:
    """Under the write lock, so that of several processes one does it."""
    revision = _revision(connection)
    if revision == HEAD:
        return
    if revision is None and not _tables(connection):
        metadata.create_all(connection)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))
        return
    if revision is None and "alembic_version" not in _tables(connection):
        raise corrupt(path, "it holds other tables")
    from learngraph_kernel.store.migrations import upgrade

    upgrade(connection, revision, path)


def _revision(connection: Connection) -> str | None:
    if "alembic_version" not in _tables(connection):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").one_or_none()
    return None if row is None else str(row[0])


def _tables(connection: Connection) -> set[str]:
    names = connection.exec_driver_sql(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    return {str(name) for (name,) in names}
