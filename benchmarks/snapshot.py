"""The snapshot bar: a 1,000,000-row × 8-column query to a stored, hashed snapshot against DuckDB's own COPY to Parquet.

    python benchmarks/snapshot.py [--rows 1000000] [--repeat 5] [--directory DIR]

Both are measured side by side in one process, alternating, and compared by their medians. The bars: snapshot ≤ 1.5 ×
COPY, mapping it ≤ 50 ms. Each COPY is followed by an fsync of its file, as the artifact store does; the ratio without
it is printed as well.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from learngraph_kernel.data.duckdb_source import DuckDBKind
from learngraph_kernel.data.snapshots import open_snapshot, take_snapshot
from learngraph_kernel.data.source import SourceConfig
from learngraph_kernel.store.artifacts import ArtifactStore

TABLE = """
    CREATE TABLE facts AS SELECT i AS id, (hash(i) % 997)::INTEGER AS shop, 'name ' || (hash(i * 3) % 5000) AS name,
      DATE '2020-01-01' + (hash(i * 5) % 1500)::INTEGER AS day,
      ((hash(i * 7) % 1000000) / 100)::DECIMAL(18, 2) AS amount,
      (hash(i * 11) % 100000) / 7.0 AS score, hash(i * 13) % 2 = 0 AS paid,
      TIMESTAMP '2020-01-01' + to_seconds((hash(i * 17) % 100000000)::BIGINT) AS at
    FROM range(?) r(i)
"""
QUERY = "SELECT * FROM facts"


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(rows: int, repeat: int, folder: Path) -> dict[str, float]:
    with duckdb.connect(str(folder / "facts.duckdb")) as connection:
        connection.execute(TABLE, [rows])
    copied = folder / "copied.duckdb"
    copied.write_bytes((folder / "facts.duckdb").read_bytes())
    source = DuckDBKind().open(SourceConfig("facts", "duckdb", {"path": "facts.duckdb"}), folder, folder)
    target = folder / "out.parquet"
    times: dict[str, list[float]] = {"copy": [], "fsync": [], "snapshot": [], "map": []}
    with duckdb.connect(str(copied), read_only=True) as connection:
        for turn in range(repeat + 1):
            copy = seconds(lambda: connection.execute(f"COPY ({QUERY}) TO '{target}' (FORMAT parquet)"))
            with target.open("rb") as file:
                flushed = seconds(lambda: os.fsync(file.fileno()))
            store = ArtifactStore(folder / f"artifacts-{turn}")  # a fresh store: nothing is there already
            began = time.perf_counter()
            snapshot = take_snapshot(source, QUERY, artifacts=store, ref="Q1")
            taken = time.perf_counter() - began
            mapped = seconds(lambda: open_snapshot(snapshot.info, store).cell(rows - 1, "at"))  # noqa: B023
            if turn:  # the first turn warms caches and imports for both
                for name, value in (("copy", copy), ("fsync", flushed), ("snapshot", taken), ("map", mapped)):
                    times[name].append(value)
            store.path(snapshot.info.artifact).unlink()
    source.close()
    median = {name: statistics.median(values) for name, values in times.items()}
    return {
        "copy_s": round(median["copy"], 4),
        "snapshot_s": round(median["snapshot"], 4),
        "ratio": round(median["snapshot"] / (median["copy"] + median["fsync"]), 3),
        "ratio_without_fsync": round(median["snapshot"] / median["copy"], 3),
        "map_ms": round(median["map"] * 1000, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        print(json.dumps(measure(options.rows, options.repeat, Path(folder)), indent=2))


if __name__ == "__main__":
    main()
