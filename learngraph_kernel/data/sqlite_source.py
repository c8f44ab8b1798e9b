"""Sources of kind `sqlite`: a SQLite file, opened read-only, with its own second barrier.

`mode=ro`, `query_only`, an authoriser that knows only SELECT, READ, FUNCTION and RECURSIVE, and a progress handler that
ends a query whose time is up. SQLite types values, not columns; the Arrow type of a column is therefore decided from
all its values: integers widen to floats only where every one stays exact, and a column that mixes numbers with text
becomes text that spells each value. A column mixing blobs with anything else is an error, as no text spells it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import sqlglot
from sqlglot import TokenType

from learngraph_kernel.data.arrow_form import unique_names
from learngraph_kernel.data.duckdb_engine import UnsupportedType, stamp
from learngraph_kernel.data.guard import GuardedStatement
from learngraph_kernel.data.guard_functions import FUNCTIONS, TABLE_FUNCTIONS
from learngraph_kernel.data.limits import Limits, QueryTimeout
from learngraph_kernel.data.source import QueryFailed, SourceConfig, SourceUnusable, TableInfo, resolve_path
from learngraph_kernel.evidence.values import Column

_FETCH = 8_192
_EXACT_FLOAT = 2**53  # IEEE 754 double
_SIZE_SLACK = 1 << 20  # chunks repeat an offset here and there; the writer of the snapshot cuts exactly
_LENGTH_LIMIT = 256 << 20  # longest text or blob a statement may build
_ALLOWED_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# What LIKE, GLOB and the aggregates report themselves as, beyond the guard's own list.
_ENGINE_FUNCTIONS = FUNCTIONS["sqlite"] | TABLE_FUNCTIONS["sqlite"] | {"->", "->>"}


class SQLiteKind:
    """`kind = "sqlite"  path = "data/shop.sqlite"`."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> SQLiteSource:
        path = resolve_path(config, root)
        source = SQLiteSource(config.name, config.limits, path)
        source.test()
        return source


def connect(path: Path) -> sqlite3.Connection:
    """A locked connection to a SQLite file, usable from any one thread at a time."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, check_same_thread=False)
    connection.text_factory = _text
    connection.execute("PRAGMA query_only = 1")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LENGTH_LIMIT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for function in sorted(TABLE_FUNCTIONS["sqlite"] - {"generate_series"}):  # that one is an extension's
        connection.execute(f"SELECT 1 FROM {function}('[]')")  # declared on first use, which the authoriser forbids
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action in _ALLOWED_ACTIONS:
        return sqlite3.SQLITE_OK
    # sqlite3_set_authorizer: SQLITE_FUNCTION names the function in its second argument
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _ENGINE_FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise sqlite3.OperationalError(f"a text value is not UTF-8: {error}") from error


def strict_names(sql: str) -> str:
    """The same statement with "name" written as `name`.

    SQLite takes a double-quoted name that no column has for a text, so that a misspelt column silently becomes a
    constant; between back-ticks it is an error.
    """
    pieces, end = [], 0
    for token in sqlglot.tokenize(sql, read="sqlite"):
        if token.token_type is TokenType.IDENTIFIER and sql[token.start] == '"':
            pieces += [sql[end : token.start], "`" + token.text.replace("`", "``") + "`"]
            end = token.end + 1
    return "".join([*pieces, sql[end:]])


@dataclass
class SQLiteExecution:
    """One statement; its rows are held until every column's type is known."""

    schema: pa.Schema
    parts: Sequence[pa.RecordBatch]

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.parts

    def __enter__(self) -> SQLiteExecution:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


@dataclass
class SQLiteSource:
    """An open SQLite file. Each execution has its own connection, so threads don't share one."""

    name: str
    limits: Limits
    path: Path
    kind: str = "sqlite"
    dialect: str = "sqlite"
    _stamp: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._stamp = stamp(self._files())

    def _files(self) -> tuple[Path, ...]:
        return (self.path, self.path.with_name(self.path.name + "-wal"))

    def execute(self, statement: GuardedStatement, limits: Limits) -> SQLiteExecution:
        return self.run(strict_names(statement.sql), limits)

    def run(self, sql: str, limits: Limits) -> SQLiteExecution:
        """Execute SQL behind this barrier alone. Raises QueryFailed, QueryTimeout, UnsupportedType."""
        ends = time.monotonic() + limits.seconds
        connection = self._connect()
        try:
            connection.set_progress_handler(lambda: int(time.monotonic() > ends), 10_000)
            return self._collect(connection.execute(sql), limits, ends)
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
            if time.monotonic() > ends:
                raise self._timeout(limits) from error
            raise QueryFailed(str(error), where=self.name, remedy="correct the statement") from error
        finally:
            connection.close()

    def _timeout(self, limits: Limits) -> QueryTimeout:
        return QueryTimeout(
            f"the query was stopped after {limits.seconds:g} s",
            where=self.name,
            remedy="ask for less, aggregate in SQL, or raise limits.seconds of this source in learngraph.toml",
        )

    def _collect(self, cursor: sqlite3.Cursor, limits: Limits, ends: float) -> SQLiteExecution:
        """All rows a snapshot may hold, and one more, so that whoever stores them sees that there were more."""
        names = unique_names([column[0] for column in cursor.description or ()])
        if not names:
            raise QueryFailed("the statement gives no rows", where=self.name)
        chunks: list[list[_Chunk]] = [[] for _ in names]
        rows = size = 0
        while rows <= limits.rows and size <= limits.bytes + _SIZE_SLACK:
            fetched = cursor.fetchmany(min(_FETCH, limits.rows + 1 - rows))
            if not fetched:
                break
            if time.monotonic() > ends:
                raise self._timeout(limits)
            for chunk, values in zip(chunks, zip(*fetched, strict=True), strict=True):
                chunk.append(_chunk(values))
                size += chunk[-1].size
            rows += len(fetched)
        columns = [_unified(chunk, name) for chunk, name in zip(chunks, names, strict=True)]
        table = pa.table(dict(zip(names, columns, strict=True)))
        return SQLiteExecution(table.schema, table.to_batches())

    def _connect(self) -> sqlite3.Connection:
        try:
            return connect(self.path)
        except sqlite3.Error as error:
            raise SourceUnusable(
                f"source {self.name!r}: SQLite cannot open {self.path}: {error}",
                remedy="check that the file is a SQLite database you may read",
            ) from error

    def tables(self) -> list[TableInfo]:
        connection = self._connect()
        try:
            connection.set_authorizer(None)  # our own statements, and PRAGMA is the one way to ask for columns
            names = [row[0] for row in connection.execute(_TABLES)]
            return [
                TableInfo(name, tuple(Column(row[0], row[1] or "ANY") for row in connection.execute(_COLUMNS, [name])))
                for name in names
            ]
        except sqlite3.Error as error:
            raise SourceUnusable(
                f"source {self.name!r}: {self.path} cannot be read: {error}",
                remedy="check that the file is a SQLite database",
            ) from error
        finally:
            connection.close()

    def test(self) -> None:
        self.tables()

    def stale(self) -> bool:
        return stamp(self._files()) != self._stamp

    def close(self) -> None:
        """Nothing stays open between executions."""


_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
    "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1"
)
_COLUMNS = "SELECT name, type FROM pragma_table_info(?) ORDER BY cid"


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some values of one column: as Arrow when they are of one kind, else as they came.

    Attributes:
        kinds: the Python types present, None aside.
    """

    kinds: frozenset[type]
    values: Any

    @property
    def size(self) -> int:
        """Bytes, never more than the values will take in the snapshot."""
        return self.values.nbytes if isinstance(self.values, pa.Array) else 8 * len(self.values)


_ARROW: Mapping[type, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}


def _chunk(values: Sequence[Any]) -> _Chunk:
    kinds = frozenset(type(value) for value in values if value is not None)
    if len(kinds) > 1:
        return _Chunk(kinds, values)
    return _Chunk(kinds, pa.array(values, _ARROW[next(iter(kinds))]) if kinds else pa.nulls(len(values)))


def _unified(chunks: Sequence[_Chunk], name: str) -> pa.ChunkedArray:
    """The chunks of one column under the narrowest type that keeps every value."""
    kinds: set[type] = set().union(*(chunk.kinds for chunk in chunks))
    if not kinds:
        return pa.chunked_array([chunk.values for chunk in chunks], pa.null())
    if len(kinds) == 1:
        kind = _ARROW[kinds.pop()]
        return pa.chunked_array([chunk.values.cast(kind) for chunk in chunks], kind)
    if bytes in kinds:
        raise UnsupportedType(
            f"column {name!r} mixes blobs with other values", where=name, remedy=f'select hex("{name}") or cast it'
        )
    plain = [chunk.values.to_pylist() if isinstance(chunk.values, pa.Array) else chunk.values for chunk in chunks]
    if str not in kinds and all(_exact_as_float(value) for values in plain for value in values):
        floats = [[value if value is None else float(value) for value in values] for values in plain]
        return pa.chunked_array([pa.array(values, pa.float64()) for values in floats], pa.float64())
    return pa.chunked_array([pa.array(map(_spelled, values), pa.string()) for values in plain], pa.string())


def _exact_as_float(value: Any) -> bool:
    return not isinstance(value, int) or abs(value) <= _EXACT_FLOAT


def _spelled(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else repr(value)
