from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from learngraph_kernel.cli.list_command import command
from learngraph_kernel.store.database import Home, ProcessIdentity, RunRecord, Store

START = dt.datetime(2026, 12, 1, 3, 0, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("LEARNGRAPH_HOME", str(tmp_path / "home"))
    return Home.default()


@pytest.fixture
def three_runs(home: Home) -> None:
    with Store.open(home) as store, store.unit_of_work("u") as work:
        work.insert_run(RunRecord("r_1", "user:ana", START, status="completed", tier="formal", title="航班周报"))
        work.insert_run(RunRecord("r_2", "user:ana", START, status="failed", notebook="weekly.ipynb"))
        work.insert_run(RunRecord("r_3", "user:ana", START, process=ProcessIdentity(1, 1, "another boot")))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ([], ["r_3", "r_2", "r_1"]),
        (["--limit", "2"], ["r_3", "r_2"]),
        (["--status", "completed"], ["r_1"]),
        (["--status", "interrupted"], ["r_3"]),
        (["--status", "running"], []),
    ],
)
def test_json_is_an_array_of_summaries_newest_first(arguments: list[str], ids: list[str]) -> None:
    assert [item["run_id"] for item in json.loads(run("--json", *arguments))] == ids


@pytest.mark.usefixtures("three_runs")
def test_a_person_sees_one_line_a_run() -> None:
    lines = run().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["r_3", "interrupted", "-"],
        ["r_2", "failed", "-"],
        ["r_1", "completed", "formal"],
    ]
    assert lines[2].endswith("航班周报")
    assert lines[1].endswith("weekly.ipynb")


def test_no_runs_is_said_and_is_an_empty_array() -> None:
    assert run() == "No runs.\n"
    assert run("--status", "failed") == "No runs are failed.\n"
    assert json.loads(run("--json")) == []


@pytest.mark.parametrize("arguments", [["--status", "done"], ["--limit", "0"]])
def test_a_wrong_option_is_a_usage_error(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2
