"""`learngraph query` and `learngraph source`, as a person and a script use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from learngraph_kernel.cli import main


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "space"
    folder.mkdir()
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute(
            "create table orders as select i as id, (i * 1.25)::decimal(10, 2) as amount, "
            "date '2024-01-01' + i::int as day, "
            "case when i > 0 then 'x' || i end as note from range(3) r(i)"
        )
    (folder / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\npath = "shop.duckdb"\n')
    monkeypatch.setenv("LEARNGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def call_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code, out, _ = call(capsys, *arguments, "--json")
    return code, json.loads(out)


def test_a_query_for_a_script(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body = call_json(capsys, "query", "shop", "select * from orders order by id")
    assert code == 0
    assert list(body) == ["columns", "rows", "row_count", "truncated", "snapshot"]
    assert body["columns"] == ["id", "amount", "day", "note"]
    assert body["rows"] == [[0, 0.0, "2024-01-01", None], [1, 1.25, "2024-01-02", "x1"], [2, 2.5, "2024-01-03", "x2"]]
    assert (body["row_count"], body["truncated"]) == (3, None)
    stored = Path(os.environ["LEARNGRAPH_HOME"], "artifacts", "sha256", body["snapshot"][:2], body["snapshot"])
    assert stored.is_file()


def test_a_query_for_a_person(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "query", "shop", "select id, note from orders order by id")
    assert code == 0
    assert out.splitlines()[:3] == ["id  note", "──  ────", " 0"]
    assert "3 rows · snapshot " in out


def test_a_query_with_a_limit_says_it_is_cut(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, body = call_json(capsys, "query", "shop", "select id from orders order by id", "--limit", "2")
    assert (body["rows"], body["truncated"]) == ([[0], [1]], "rows")


def test_a_refusal_is_exit_2_with_code_reason_and_place(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body = call_json(capsys, "query", "shop", "select *\nfrom read_csv('/etc/passwd')")
    assert code == 2
    assert body["error"]["code"] == "sql_refused"
    assert body["error"]["reason"] == "the function 'read_csv' is not allowed"
    assert body["error"]["place"] == "2:6"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("query", "shp", "select 1"), 2, "did you mean 'shop'?"),
        (("query", "shop", "select nope from orders"), 2, "nope"),
        (("query", "shop", "select 1", "--workspace", "nowhere"), 2, "there is no such folder"),
        (("source", "add", "shop", "--kind", "duckdb", "--path", "shop.duckdb"), 2, "declared already"),
        (("source", "add", "x", "--kind", "duckdb", "--path", "gone.duckdb"), 2, "gone.duckdb"),
        (("source", "add", "x", "--kind", "duckdb"), 2, "needs --path"),
        (("source", "add", "x", "--kind", "duckdb", "--dataset", "d"), 2, "takes no --dataset"),
        (("source", "add", "x", "--kind", "sqlit", "--path", "p"), 2, "did you mean 'sqlite'?"),
        (("source", "rm", "shopp"), 2, "did you mean 'shop'?"),
        (("source", "test", "shopp"), 2, "did you mean 'shop'?"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: tuple[str, ...], code: int, said: str, space: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    got, out, err = call(capsys, *arguments)
    assert (got, out) == (code, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def test_a_wrong_key_in_the_workspace_is_named(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (space / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\nfile = "shop.duckdb"\n')
    code, body = call_json(capsys, "query", "shop", "select 1")
    assert (code, body["error"]["code"]) == (2, "bad_workspace")
    assert body["error"]["place"].endswith("learngraph.toml:3")


def test_sources_are_added_listed_tested_and_removed(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (space / "files").mkdir()
    (space / "files" / "t.csv").write_text("a\n1\n2\n")
    code, body = call_json(capsys, "source", "add", "files", "--kind", "folder", "--path", "files")
    assert (code, body["name"], body["path"]) == (0, "files", "files")
    _, listed = call_json(capsys, "source", "ls")
    assert [item["name"] for item in listed] == ["shop", "files"]
    assert listed[0]["limits"] == {"rows": 5_000_000, "bytes": 1 << 30, "seconds": 60.0}
    code, tested = call_json(capsys, "source", "test", "files")
    assert (code, tested["ok"]) == (0, True)
    assert tested["tables"] == [{"name": "t", "columns": [{"name": "a", "type": "BIGINT"}], "rows": 2}]
    _, body = call_json(capsys, "query", "files", "select sum(a) as s from t")
    assert body["rows"] == [[3]]
    assert call_json(capsys, "source", "rm", "files")[0] == 0
    assert [item["name"] for item in call_json(capsys, "source", "ls")[1]] == ["shop"]
    assert (space / "files" / "t.csv").exists()


def test_a_source_that_cannot_be_opened_fails_its_test(space: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (space / "shop.duckdb").unlink()
    code, body = call_json(capsys, "source", "test", "shop")
    assert (code, body["ok"], body["error"]["code"]) == (2, False, "source_missing")


def test_the_installed_command_reads_a_statement_from_standard_input(space: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from learngraph_kernel.cli import main; main()", "query", "shop", "-", "--json"],
        input="select count(*) as n from orders",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["rows"] == [[3]]
