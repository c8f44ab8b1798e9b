"""DuckDB, locked down: the second barrier, which holds even for a statement the guard never saw.

No files, no network, no extensions, no Python variables, no settings, no writes to an attached file. The engine's own
parser must agree that there is one reading statement before anything runs. Results stream as Arrow; without ORDER BY,
table scans keep insertion order, but groups and joins come in whatever order the threads finish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from learngraph_kernel.data.arrow_form import BATCH_ROWS
from learngraph_kernel.data.guard import GuardedStatement
from learngraph_kernel.data.limits import Deadline, Limits
from learngraph_kernel.data.source import QueryFailed, SourceConfig, SourceUnusable, TableInfo
from learngraph_kernel.errors import BadInput
from learngraph_kernel.evidence.values import Column

# What may be set while connecting; `lock` adds the rest, once a source has loaded what it needs.
CLOSED_CONFIG: dict[str, Any] = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
    "memory_limit": "4GiB",  # beyond it DuckDB spills to disk
    "max_temp_directory_size": "32GiB",
}
READING = frozenset({"SELECT", "EXPLAIN", "MULTI", "MULTI_STATEMENT"})  # DuckDB calls a PIVOT `MULTI`
_TAKEN_CATALOGS = frozenset({"memory", "system", "temp", "main"})
# Types that Arrow, or Python behind it, would hand on changed.
_UNSAFE_TYPES = frozenset(
    {"uhugeint", "bit", "bignum", "varint", "union", "variant", "geometry", "time with time zone"}
)


class UnsupportedType(BadInput):
    """A column's type cannot be stored without changing values."""

    code = "unsupported_type"


def connect(home: Path) -> duckdb.DuckDBPyConnection:
    """An engine in memory, not locked yet; it spills to a folder under `home`."""
    spill = home / "spill"
    spill.mkdir(parents=True, exist_ok=True)
    return duckdb.connect(":memory:", config={**CLOSED_CONFIG, "temp_directory": str(spill)})


def open_database(path: Path, config: SourceConfig, home: Path) -> DuckDBSource:
    """A locked source over a DuckDB file, attached read-only.

    Attached, not opened: DuckDB keeps one instance a file and process, so opening it directly would share settings (and
    their lock) with a second workspace, or collide with the user's own connection. Raises SourceUnusable.
    """
    connection = connect(home)
    catalog = path.stem if path.stem not in _TAKEN_CATALOGS else f"{path.stem}_file"
    literal = "'" + str(path).replace("'", "''") + "'"
    try:
        connection.execute(f"ATTACH {literal} AS {quoted(catalog)} (READ_ONLY, TYPE duckdb)")
    except duckdb.Error as error:
        connection.close()
        remedy = "check that the file is a DuckDB database of a version this DuckDB reads"
        if "lock" in str(error).lower() or "conflict" in str(error).lower():
            remedy = "it is open for writing elsewhere: close it there, or use a copy"
        what = f"source {config.name!r}: DuckDB cannot open {path}: {first_line(error)}"
        raise SourceUnusable(what, where=config.where, remedy=remedy) from error
    lock(connection)
    return DuckDBSource(config.name, config.kind, config.limits, connection, catalog, (path,))


def quoted(name: str) -> str:
    """A name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Close every door and lock the settings; nothing on this connection can open them again."""
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def first_line(error: BaseException) -> str:
    """An engine's message without its picture of the statement."""
    return str(error).split("\n\n")[0].replace("\n", " ").strip()


@dataclass
class DuckDBExecution:
    """One running statement on its own cursor; see `source.Execution`."""

    cursor: duckdb.DuckDBPyConnection
    clock: Deadline
    source: str
    reader: pa.RecordBatchReader

    @property
    def schema(self) -> pa.Schema:
        return self.reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = self.reader.read_next_batch()
            except StopIteration:
                return
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                raise failure(error, self.clock, self.source) from error
            if self.clock.passed:
                raise self.clock.error(self.source)
            yield batch

    def __enter__(self) -> DuckDBExecution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clock.stop()
        self.cursor.interrupt()  # a truncated query is still computing what nobody will read
        self.reader.close()
        self.cursor.close()


def failure(error: BaseException, clock: Deadline, source: str) -> Exception:
    """What an engine's error means: time is up, or the statement failed."""
    if clock.passed:
        return clock.error(source)
    return QueryFailed(first_line(error), where=source, remedy="correct the statement")


@dataclass
class DuckDBSource:
    """An open, locked DuckDB; the files beneath are remembered so that a change is noticed."""

    name: str
    kind: str
    limits: Limits
    connection: duckdb.DuckDBPyConnection
    catalog: str = "memory"
    files: tuple[Path, ...] = ()
    dialect: str = "duckdb"
    _stamp: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._stamp = stamp(self.files)

    def execute(self, statement: GuardedStatement, limits: Limits) -> DuckDBExecution:
        return self.run(statement.sql, limits)

    def run(self, sql: str, limits: Limits) -> DuckDBExecution:
        """Execute SQL behind this barrier alone. Raises QueryFailed, QueryTimeout, UnsupportedType."""
        cursor = self.connection.cursor()
        clock = Deadline(limits.seconds, cursor.interrupt)
        clock.start()
        try:
            cursor.execute(f"USE {quoted(self.catalog)}")
            cursor.execute("BEGIN TRANSACTION READ ONLY")  # a folder's tables lie in memory, which is writable
            self._require_reading(cursor, sql)
            relation = cursor.sql(sql)
            _require_safe_types(relation)
            return DuckDBExecution(cursor, clock, self.name, relation.to_arrow_reader(BATCH_ROWS))
        except BaseException as error:
            clock.stop()
            cursor.close()
            if isinstance(error, duckdb.Error | pa.ArrowException):
                raise failure(error, clock, self.name) from error
            raise

    def _require_reading(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
        kinds = [statement.type.name for statement in cursor.extract_statements(sql)]
        if len(kinds) != 1 or kinds[0] not in READING:
            found = ", ".join(kinds) or "nothing"
            raise QueryFailed(f"DuckDB reads this as {found}, not as one query", where=self.name)

    def tables(self) -> list[TableInfo]:
        cursor = self.connection.cursor()
        try:
            columns = cursor.execute(
                "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
                "WHERE NOT internal AND database_name = ? ORDER BY schema_name, table_name, column_index",
                [self.catalog],
            ).fetchall()
            counts = cursor.execute(
                "SELECT schema_name, table_name, estimated_size FROM duckdb_tables() "
                "WHERE NOT internal AND database_name = ?",
                [self.catalog],
            ).fetchall()
        finally:
            cursor.close()
        rows = {(schema, table): size for schema, table, size in counts}
        found: dict[tuple[str, str], list[Column]] = {}
        for schema, table, column, kind in columns:
            found.setdefault((schema, table), []).append(Column(column, kind))
        return [
            TableInfo(table if schema == "main" else f"{schema}.{table}", tuple(items), rows.get((schema, table)))
            for (schema, table), items in found.items()
        ]

    def test(self) -> None:
        try:
            self.tables()
        except duckdb.Error as error:
            raise SourceUnusable(f"source {self.name!r} does not answer: {first_line(error)}") from error

    def stale(self) -> bool:
        return stamp(self.files) != self._stamp

    def close(self) -> None:
        self.connection.close()


def stamp(files: tuple[Path, ...]) -> tuple[Any, ...]:
    """Identity, size and change time of files (and what a folder holds), to notice a change."""
    marks: list[Any] = []
    for path in files:
        try:
            status = path.stat()
        except FileNotFoundError:
            marks.append((str(path), None))
            continue
        marks.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(marks)


def _require_safe_types(relation: duckdb.DuckDBPyRelation) -> None:
    for name, kind in zip(relation.columns, relation.types, strict=True):
        unsafe = _unsafe(kind)
        if unsafe:
            raise UnsupportedType(
                f"column {name!r} has the type {unsafe}, which a snapshot cannot hold exactly",
                where=name,
                remedy=f'cast it in the query, e.g. "{name}"::VARCHAR',
            )


def _unsafe(kind: Any) -> str | None:
    text = str(kind).lower()
    if kind.id in _UNSAFE_TYPES or text in _UNSAFE_TYPES:
        return str(kind)
    if kind.id in ("list", "array", "struct", "map"):
        for _, child in kind.children:
            if not isinstance(child, int):  # an array's second child is its length
                unsafe = _unsafe(child)
                if unsafe:
                    return unsafe
    return None
