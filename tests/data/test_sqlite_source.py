"""SQLite: its own barrier, and column types that lose no value."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from learngraph_kernel.data.duckdb_engine import UnsupportedType
from learngraph_kernel.data.limits import Limits, QueryTimeout
from learngraph_kernel.data.snapshots import take_snapshot
from learngraph_kernel.data.source import QueryFailed, SourceConfig, SourceUnusable
from learngraph_kernel.data.sqlite_source import SQLiteKind, SQLiteSource, strict_names
from learngraph_kernel.store.artifacts import ArtifactStore


def table(source: SQLiteSource, sql: str) -> pa.Table:
    with source.run(sql, Limits()) as execution:
        return pa.Table.from_batches(execution.batches(), execution.schema)


def holding(tmp_path: Path, values: Sequence[Any]) -> SQLiteSource:
    path = tmp_path / "v.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (v)")
        connection.executemany("insert into t values (?)", [(value,) for value in values])
    connection.close()
    return SQLiteKind().open(SourceConfig("v", "sqlite", {"path": "v.sqlite"}), tmp_path, tmp_path)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into orders values (9, 1, 1, '', '', '', '')",
        "delete from orders",
        "create table x (a)",
        "create temp table x (a)",
        "drop table orders",
        "attach ':memory:' as m",
        "attach '/tmp/other.db' as m",
        "pragma query_only = 0",
        "pragma table_info('orders')",
        "select * from pragma_table_info('orders')",
        "select load_extension('x')",
        "select randomblob(10)",
        "select sqlite_version()",
        "vacuum",
        "begin",
        "select 1; select 2",
    ],
)
def test_the_engine_alone_refuses(sql: str, lite: SQLiteSource) -> None:
    with pytest.raises(QueryFailed):
        lite.run(sql, Limits())
    assert table(lite, "select count(*) as n from orders").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2, None], pa.int64(), [1, 2, None]),
        ([2**63 - 1, -(2**63)], pa.int64(), [2**63 - 1, -(2**63)]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([2**53 + 1, 0.5], pa.string(), ["9007199254740993", "0.5"]),
        ([1, "n/a", 2.5], pa.string(), ["1", "n/a", "2.5"]),
        (["x", None], pa.string(), ["x", None]),
        ([b"\x00\xff", None], pa.binary(), [b"\x00\xff", None]),
        ([None, None], pa.null(), [None, None]),
        ([], pa.null(), []),
    ],
)
def test_a_column_gets_the_narrowest_type_that_keeps_every_value(
    values: list[Any], kind: pa.DataType, expected: list[Any], tmp_path: Path
) -> None:
    result = table(holding(tmp_path, values), "select v from t")
    assert result.schema.field("v").type == kind
    assert result.column("v").to_pylist() == expected


def test_a_type_that_changes_after_many_rows_is_still_found(tmp_path: Path) -> None:
    values = [*range(20_000), "last"]
    assert table(holding(tmp_path, values), "select v from t").column("v").to_pylist() == [
        str(value) for value in values
    ]


def test_an_integer_stays_spelled_as_an_integer_beside_text_and_reals(tmp_path: Path) -> None:
    values = [*[1, 1.5] * 5_000, "x"]
    assert table(holding(tmp_path, values), "select v from t").column("v").to_pylist()[:2] == ["1", "1.5"]


def test_blobs_mixed_with_text_are_an_error_that_names_the_column(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType, match="column 'v' mixes blobs"):
        table(holding(tmp_path, [b"x", "y"]), "select v from t")


def test_text_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    source = holding(tmp_path, [b"\xff\xfe"])
    with pytest.raises(QueryFailed, match="UTF-8"):
        table(source, "select cast(v as text) from t")


def test_a_query_that_takes_too_long_is_stopped(lite: SQLiteSource) -> None:
    started = time.monotonic()
    with pytest.raises(QueryTimeout):
        lite.run(
            "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n", Limits(seconds=0.3)
        )
    assert time.monotonic() - started < 2


def test_a_result_beyond_the_row_limit_is_cut_and_says_so(lite: SQLiteSource, artifacts: ArtifactStore) -> None:
    snapshot = take_snapshot(lite, "select * from orders", artifacts=artifacts, ref="Q1", limits=Limits(rows=1))
    assert (snapshot.info.row_count, snapshot.info.truncated) == (1, "rows")


def test_a_result_beyond_the_byte_limit_is_cut_and_says_so(tmp_path: Path, artifacts: ArtifactStore) -> None:
    source = holding(tmp_path, ["x" * 1_000] * 20_000)
    snapshot = take_snapshot(source, "select v from t", artifacts=artifacts, ref="Q1", limits=Limits(bytes=100_000))
    assert snapshot.info.truncated == "bytes"
    assert 90 <= snapshot.info.row_count <= 100


def test_a_result_of_exactly_the_row_limit_is_whole(lite: SQLiteSource, artifacts: ArtifactStore) -> None:
    snapshot = take_snapshot(lite, "select * from orders", artifacts=artifacts, ref="Q1", limits=Limits(rows=2))
    assert (snapshot.info.row_count, snapshot.info.truncated) == (2, None)


def test_a_misspelt_quoted_column_is_an_error_not_a_text(lite: SQLiteSource, artifacts: ArtifactStore) -> None:
    with pytest.raises(QueryFailed, match="regoin"):
        take_snapshot(lite, 'select "regoin" from orders', artifacts=artifacts, ref="Q1")


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ('select "a" from t', "select `a` from t"),
        ('select "a""b`c" from t', 'select `a"b``c` from t'),
        ('select \'"x"\' -- "c"\nfrom [t]', 'select \'"x"\' -- "c"\nfrom [t]'),
    ],
)
def test_double_quoted_names_become_strict(written: str, run: str) -> None:
    assert strict_names(written) == run


def test_tables_are_listed(lite: SQLiteSource) -> None:
    tables = {item.name: [column.name for column in item.columns] for item in lite.tables()}
    assert tables["customers"] == ["id", "name"]
    assert "订单" in tables


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(SourceUnusable, match=r"x\.sqlite"):
        SQLiteKind().open(SourceConfig("x", "sqlite", {"path": "x.sqlite"}), tmp_path, tmp_path)


def test_a_path_with_odd_characters_opens(tmp_path: Path) -> None:
    path = tmp_path / "50% off? #1.sqlite"
    sqlite3.connect(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (v)")
    connection.close()
    source = SQLiteKind().open(SourceConfig("x", "sqlite", {"path": path.name}), tmp_path, tmp_path)
    assert [item.name for item in source.tables()] == ["t"]
