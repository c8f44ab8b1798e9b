"""A folder of files as tables, locked like any other source."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from learngraph_kernel.data.duckdb_engine import DuckDBSource
from learngraph_kernel.data.folder_source import FolderKind
from learngraph_kernel.data.limits import Limits
from learngraph_kernel.data.source import QueryFailed, SourceConfig, SourceMissing, SourceUnusable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    (path / "sales.csv").write_text("day,amount\n2024-01-01,1.5\n2024-01-02,2.25\n")
    (path / "events.jsonl").write_text('{"id": 1, "kind": "a"}\n{"id": 2, "kind": "b"}\n')
    duckdb.sql("select i, i * 2 as twice from range(10) r(i)").write_parquet(str(path / "it's [odd].parquet"))
    (path / "notes.md").write_text("not a table")
    return path


def open_folder(path: Path, home: Path) -> DuckDBSource:
    return FolderKind().open(SourceConfig("files", "folder", {"path": str(path)}), path.parent, home)


def run(source: DuckDBSource, sql: str) -> list[dict[str, object]]:
    with source.run(sql, Limits()) as execution:
        rows: list[dict[str, object]] = pa.Table.from_batches(execution.batches(), execution.schema).to_pylist()
    return rows


def test_files_become_tables_named_after_them(folder: Path, home: Path) -> None:
    source = open_folder(folder, home)
    assert [table.name for table in source.tables()] == ["events", "it's [odd]", "sales"]
    assert run(source, "select sum(amount) as a from sales") == [{"a": 3.75}]
    assert run(source, "select count(*) as n from events where id > 1") == [{"n": 1}]
    assert run(source, """select sum(twice)::int as n from "it's [odd]" """) == [{"n": 90}]


@pytest.mark.parametrize(
    "sql",
    [
        "create table x as select 1",
        "drop table sales",
        "insert into sales values ('2024-01-01', 1)",
        "select * from read_csv('{folder}/sales.csv')",
        "select * from read_text('/etc/passwd')",
        "from '{folder}/notes.md'",
        "set allowed_paths = ['/etc/passwd']",
        "copy sales to '{folder}/out.csv'",
    ],
)
def test_the_engine_alone_refuses(sql: str, folder: Path, home: Path) -> None:
    source = open_folder(folder, home)
    with pytest.raises(QueryFailed):
        run(source, sql.format(folder=folder))
    assert not (folder / "out.csv").exists()


def test_an_added_or_changed_file_makes_the_source_stale(folder: Path, home: Path) -> None:
    source = open_folder(folder, home)
    assert not source.stale()
    (folder / "new.csv").write_text("a\n1\n")
    assert source.stale()


def test_two_files_for_one_table_are_an_error(folder: Path, home: Path) -> None:
    (folder / "sales.tsv").write_text("a\tb\n")
    with pytest.raises(SourceMissing, match=r"sales\.csv and sales\.tsv would both be the table 'sales'"):
        open_folder(folder, home)


def test_an_empty_folder_is_an_error(tmp_path: Path, home: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceMissing, match="no table files"):
        open_folder(tmp_path / "none", home)


def test_a_file_instead_of_a_folder_is_an_error(folder: Path, home: Path) -> None:
    with pytest.raises(SourceMissing, match="is not a folder"):
        open_folder(folder / "sales.csv", home)


def test_a_broken_file_is_named(folder: Path, home: Path) -> None:
    (folder / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(SourceUnusable, match=r"bad\.parquet cannot be read as a table"):
        open_folder(folder, home)
