"""The engine's own barrier, with the guard left out; limits; what a source tells about itself."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from learngraph_kernel.data.duckdb_engine import DuckDBSource, UnsupportedType
from learngraph_kernel.data.duckdb_source import DuckDBKind
from learngraph_kernel.data.limits import Limits, QueryTimeout
from learngraph_kernel.data.source import QueryFailed, SourceConfig, SourceMissing, SourceUnusable

SLOW = "select count(*) from range(1000000) a(i), range(1000000) b(j) where (a.i * b.j) % 7 = 3"


def run(source: DuckDBSource, sql: str) -> pa.Table:
    with source.run(sql, Limits()) as execution:
        return pa.Table.from_batches(execution.batches(), execution.schema)


def open_file(path: Path, home: Path) -> DuckDBSource:
    return DuckDBKind().open(SourceConfig("s", "duckdb", {"path": str(path)}), path.parent, home)


BYPASSING = [
    "insert into orders values (1)",
    "delete from orders",
    "update orders set amount = 0",
    "drop table orders",
    "create table x as select 1",
    "create temp table x as select 1",
    "create view v as select 1",
    "copy orders to 'out.csv'",
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from glob('/etc/*')",
    "from '/etc/passwd'",
    "from 'data.csv'",
    "set threads = 1",
    "set enable_external_access = true",
    "set global lock_configuration = false",
    "reset timezone",
    "pragma enable_profiling",
    "attach ':memory:' as m",
    "attach 'other.duckdb' as m",
    "detach shop",
    "use shop",
    "install httpfs",
    "load httpfs",
    "export database 'dump'",
    "checkpoint",
    "vacuum",
    "prepare p as select 1",
    "call pragma_version()",
    "commit; create temp table x as select 1",
    "select 1; select 2",
    "from local_table",
    "select getenv('HOME')",
]


@pytest.mark.parametrize("sql", BYPASSING)
def test_the_engine_alone_refuses(
    sql: str, shop: DuckDBSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a\n1\n")
    local_table = pa.table({"a": [1]})
    before = run(shop, "select count(*), sum(amount) from orders").to_pylist()
    with pytest.raises(QueryFailed):
        run(shop, sql)
    assert run(shop, "select count(*), sum(amount) from orders").to_pylist() == before
    assert local_table.num_rows == 1


@pytest.mark.parametrize(
    "sql",
    [
        "insert into orders values (1)",
        "create table x as select 1",
        "set threads = 1",
        "copy (select 1) to 'x.csv'",
        "select * from read_csv('/etc/passwd')",
        "load httpfs",
    ],
)
def test_even_duckdb_by_itself_refuses_on_such_a_connection(sql: str, shop: DuckDBSource) -> None:
    cursor = shop.connection.cursor()
    cursor.execute("begin transaction read only")
    with pytest.raises(duckdb.Error):
        cursor.execute(sql)


def test_a_query_that_takes_too_long_is_stopped(shop: DuckDBSource) -> None:
    started = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"stopped after 0\.3 s"), shop.run(SLOW, Limits(seconds=0.3)) as execution:
        list(execution.batches())
    assert time.monotonic() - started < 3
    assert not [thread for thread in threading.enumerate() if thread.name == "learngraph-query-deadline"]


def test_a_source_answers_after_a_timeout(shop: DuckDBSource) -> None:
    with pytest.raises(QueryTimeout), shop.run(SLOW, Limits(seconds=0.2)) as execution:
        list(execution.batches())
    assert run(shop, "select 41 + 1 as n").to_pylist() == [{"n": 42}]


def test_a_slow_pivot_is_stopped_as_well(shop: DuckDBSource) -> None:
    with pytest.raises(QueryTimeout):
        shop.run(f"pivot ({SLOW.replace('count(*)', '(a.i * b.j) % 3 as k')}) on k using count(*)", Limits(seconds=0.3))


def test_leaving_a_query_halfway_stops_it(shop: DuckDBSource) -> None:
    with shop.run("select a.i, b.i from range(100000) a(i), range(100000) b(i)", Limits()) as execution:
        assert next(execution.batches()).num_rows
    assert run(shop, "select 1 as n").num_rows == 1


def test_time_zones_are_utc_wherever_the_machine_stands(shop: DuckDBSource) -> None:
    assert run(shop, "select timestamptz '2024-07-01 12:00:00+02' as t").schema.field("t").type == pa.timestamp(
        "us", "UTC"
    )


@pytest.mark.parametrize(
    "expression",
    ["1::uhugeint", "'101'::bit", "union_value(a := 1)", "1::bignum", "[union_value(a := 1)]", "{'x': 1::uhugeint}"],
)
def test_a_type_that_would_lose_its_value_is_named(expression: str, shop: DuckDBSource) -> None:
    with pytest.raises(UnsupportedType, match="column 'c'"):
        run(shop, f"select {expression} as c")


def test_an_engine_error_is_one_line_without_its_picture(shop: DuckDBSource) -> None:
    with pytest.raises(QueryFailed) as failure:
        run(shop, "select nope from orders")
    assert "nope" in failure.value.what
    assert "\n" not in failure.value.what


def test_tables_are_listed_with_columns_types_and_rows(shop: DuckDBSource) -> None:
    tables = {table.name: table for table in shop.tables()}
    assert {"orders", "paid", "mart.daily", "订单", "Weekly Sales"} <= tables.keys()
    assert tables["orders"].rows == 60
    assert [(column.name, column.type) for column in tables["customers"].columns][:2] == [
        ("id", "INTEGER"),
        ("name", "VARCHAR"),
    ]


def test_a_missing_file_is_named(tmp_path: Path, home: Path) -> None:
    with pytest.raises(SourceMissing, match=r"there is no .*gone\.duckdb"):
        open_file(tmp_path / "gone.duckdb", home)


def test_a_file_that_is_no_database_is_named(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "x.duckdb"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(SourceUnusable, match=r"cannot open .*x\.duckdb"):
        open_file(path, home)


def test_opening_leaves_the_file_untouched(shop_file: Path, home: Path) -> None:
    before = (shop_file.read_bytes(), sorted(shop_file.parent.iterdir()))
    source = open_file(shop_file, home)
    run(source, "select * from orders order by amount")
    source.close()
    assert (shop_file.read_bytes(), sorted(shop_file.parent.iterdir())) == before


def test_a_file_can_be_open_twice_in_one_process_and_beside_the_users_own_connection(
    shop_file: Path, shop: DuckDBSource, tmp_path: Path
) -> None:
    second = open_file(shop_file, tmp_path)
    with duckdb.connect(str(shop_file), read_only=True) as own:
        for source in (shop, second):
            assert run(source, "select count(*) as n from orders").to_pylist() == [{"n": 60}]
        assert own.execute("select count(*) from orders").fetchall() == [(60,)]
    second.close()


@pytest.mark.parametrize("stem", ["memory", "temp", 'it\'s "odd"', "select"])
def test_any_file_name_will_do(stem: str, tmp_path: Path, home: Path) -> None:
    path = tmp_path / f"{stem}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table t as select 7 as a")
    source = open_file(path, home)
    assert run(source, "select a from main.t").to_pylist() == [{"a": 7}]
    assert [table.name for table in source.tables()] == ["t"]
    source.close()


def test_a_file_another_process_is_writing_is_named_with_a_remedy(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "busy.duckdb"
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(SourceUnusable) as error:
            open_file(path, home)
        writer.communicate("")
    assert error.value.remedy == "it is open for writing elsewhere: close it there, or use a copy"


def test_a_replaced_file_makes_the_source_stale(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "a.duckdb"
    duckdb.connect(str(path)).close()
    source = open_file(path, home)
    assert not source.stale()
    path.unlink()
    path.write_bytes(b"")
    assert source.stale()
    source.close()


def test_two_threads_query_one_source(shop: DuckDBSource) -> None:
    answers: list[int] = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(run(shop, "select count(*) as n from orders").to_pylist()[0]["n"])
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [60] * 4
