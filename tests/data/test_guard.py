"""The guard refuses every hostile statement, lets every legitimate one through, and says where it stumbled."""

from __future__ import annotations

import pytest

from learngraph_kernel.data.duckdb_engine import DuckDBSource
from learngraph_kernel.data.guard import SqlRefused, guard
from learngraph_kernel.data.limits import Limits
from learngraph_kernel.data.sqlite_source import SQLiteSource
from tests.data.conftest import corpus_statements
from tests.data.corpus import hostile_duckdb, hostile_sqlite

LEGITIMATE_DUCKDB = corpus_statements("legitimate_duckdb.sql")
LEGITIMATE_SQLITE = corpus_statements("legitimate_sqlite.sql")


def test_the_corpora_are_as_large_as_promised() -> None:
    sizes = [len(set(items)) for items in (hostile_duckdb.HOSTILE, hostile_sqlite.HOSTILE, LEGITIMATE_DUCKDB)]
    assert sizes[0] >= 220
    assert sizes[1] >= 80
    assert sizes[2] >= 200


@pytest.mark.parametrize("sql", hostile_duckdb.HOSTILE)
def test_a_hostile_duckdb_statement_is_refused(sql: str) -> None:
    with pytest.raises(SqlRefused) as refusal:
        guard(sql, "duckdb")
    assert refusal.value.where is not None


@pytest.mark.parametrize("sql", hostile_sqlite.HOSTILE)
def test_a_hostile_sqlite_statement_is_refused(sql: str) -> None:
    with pytest.raises(SqlRefused) as refusal:
        guard(sql, "sqlite")
    assert refusal.value.where is not None


@pytest.mark.parametrize("sql", LEGITIMATE_DUCKDB)
def test_a_legitimate_duckdb_statement_passes_and_runs(sql: str, shop: DuckDBSource) -> None:
    with shop.execute(guard(sql, "duckdb"), Limits()) as execution:
        list(execution.batches())
        assert execution.schema.names


@pytest.mark.parametrize("sql", LEGITIMATE_SQLITE)
def test_a_legitimate_sqlite_statement_passes_and_runs(sql: str, lite: SQLiteSource) -> None:
    assert lite.execute(guard(sql, "sqlite"), Limits()).schema.names


@pytest.mark.parametrize(
    ("sql", "place", "reason"),
    [
        ("select 1;\nselect 2", "1:9", "one statement only"),
        ("select a,\n  getenv('X')\nfrom t", "2:3", "the function 'getenv' is not allowed"),
        ("select *\nfrom 'data.csv'", "2:6", "a file cannot be read; FROM takes a table's name"),
        (
            "select 1\nunion all\nselect * from duckdb_settings()",
            "3:15",
            "the function 'duckdb_settings' is not allowed",
        ),
        ("select * from orders\nwhere id = ?", "2:12", "parameters are not bound here"),
        ("drop table orders", "1:1", "only reading statements are allowed, not 'drop'"),
        ("explain\n  analyze select 1", "2:3", "EXPLAIN runs nothing here; its options are not allowed"),
        ("-- é\nselect “x”", "2:8", "look-alike quotation mark or semicolon in the name '“x”'"),
    ],
)
def test_a_refusal_names_the_reason_and_the_place(sql: str, place: str, reason: str) -> None:
    with pytest.raises(SqlRefused) as refusal:
        guard(sql, "duckdb")
    assert (refusal.value.where, refusal.value.what) == (place, reason)


def test_what_sqlglot_cannot_parse_is_refused_with_its_place() -> None:
    with pytest.raises(SqlRefused, match="cannot be read as duckdb SQL") as refusal:
        guard("select a\nfrom orders\nwhere (a = 1", "duckdb")
    assert refusal.value.details["line"] == 3


@pytest.mark.parametrize(
    ("sql", "reason", "remedy"),
    [
        ("select 1 as a from orders where month = :month", ":month has no value", "write it into the statement"),
        ("select * from 'data.csv'", "a file cannot be read", "learngraph source add NAME --kind folder"),
        ("selct region from orders", "at 'from'", ""),
    ],
)
def test_a_typical_mistake_is_told_what_to_do(sql: str, reason: str, remedy: str) -> None:
    with pytest.raises(SqlRefused) as refusal:
        guard(sql, "duckdb")
    assert reason in refusal.value.what
    assert remedy in (refusal.value.remedy or "")


def test_a_near_miss_of_a_function_is_suggested() -> None:
    with pytest.raises(SqlRefused) as refusal:
        guard("select rond(amount) from orders", "duckdb")
    assert refusal.value.remedy == "did you mean 'round'?"


@pytest.mark.parametrize(
    ("sql", "kind", "tables"),
    [
        ("select * from orders o join mart.daily d on true", "select", ("orders", "mart.daily")),
        ("with o as (select * from orders) select * from o", "select", ("orders",)),
        ('select * from "Weekly Sales"; ', "select", ("Weekly Sales",)),
        ("describe orders", "describe", ("orders",)),
        ("summarize select id from orders", "summarize", ("orders",)),
        ("pivot orders on status using count(*)", "pivot", ("orders",)),
        ("explain select * from orders", "explain", ("orders",)),
        ("select * from range(3)", "select", ()),
    ],
)
def test_kind_and_tables_are_reported(sql: str, kind: str, tables: tuple[str, ...]) -> None:
    statement = guard(sql, "duckdb")
    assert (statement.kind, statement.tables) == (kind, tables)


@pytest.mark.parametrize("sql", ["  select  1 -- one\n ;", "select  1;", "select  1 ;; -- done", "select  1 /* x */"])
def test_the_statement_is_handed_on_as_written_without_what_follows_it(sql: str) -> None:
    assert guard(sql, "duckdb").sql == "select  1"


def test_the_hash_depends_on_text_and_dialect() -> None:
    hashes = {guard(sql, dialect).hash for sql in ("select 1", "select 2") for dialect in ("duckdb", "sqlite")}
    assert len(hashes) == 4


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(SqlRefused, match="no guard for the SQL dialect 'duckbd'"):
        guard("select 1", "duckbd")


def test_a_function_named_like_a_declared_alias_is_still_refused() -> None:
    with pytest.raises(SqlRefused, match="read_csv"):
        guard("with read_csv(a) as (select 1) select a from read_csv('x')", "duckdb")
