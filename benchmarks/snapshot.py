"""The snapshot bars: a 1,000,000-row × 8-column query to a stored, hashed snapshot, and mapping it in a kernel.

    python benchmarks/snapshot.py [--rows 1000000] [--rounds 5] [--directory DIR]

The snapshot ≤ 1.5 × DuckDB's own `COPY … TO parquet`, in turns in one process. The artifact store flushes its file to
the disk, so the COPY's file is flushed as well; the ratio without that is printed beside it. Mapping is what
`Snapshot.arrow()` does in a notebook, in a process of its own with pyarrow imported, ≤ 50 ms.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
from pathlib import Path

import duckdb
from _pairs import PYTHON, Bar, Cost, alternately, conclude, environment, ratio, scratch, seconds, table

from learngraph_kernel.data.duckdb_source import DuckDBKind
from learngraph_kernel.data.snapshots import take_snapshot
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
MAP = """
import sys, time
import pyarrow.ipc  # imported once a kernel, whatever it maps
from learngraph_kernel.notebook.handles import Snapshot
info = {"ref": "Q1", "columns": [], "row_count": int(sys.argv[2]), "truncated": None}
snapshot = Snapshot({"bundle": {}, "snapshot": info, "path": sys.argv[1]})
started = time.perf_counter()
table = snapshot.arrow()
value = table.column("at")[table.num_rows - 1].as_py()
print(time.perf_counter() - started)
"""


def measure(rows: int, rounds: int, folder: Path) -> list[Bar]:
    """The bars, from `rounds` rounds."""
    with duckdb.connect(str(folder / "facts.duckdb")) as connection:
        connection.execute(TABLE, [rows])
    copied = folder / "copied.duckdb"
    copied.write_bytes((folder / "facts.duckdb").read_bytes())
    source = DuckDBKind().open(SourceConfig("facts", "duckdb", {"path": "facts.duckdb"}), folder, folder)
    target, turns, taken = folder / "out.parquet", itertools.count(), list[Path]()
    flushes: list[float] = []

    def copy() -> float:
        copying = seconds(lambda: connection.execute(f"COPY ({QUERY}) TO '{target}' (FORMAT parquet)"))
        with target.open("rb") as file:
            flushes.append(seconds(lambda: os.fsync(file.fileno())))
        return copying + flushes[-1]

    def snapshot() -> float:
        store = ArtifactStore(folder / f"artifacts-{next(turns)}")  # a fresh store: nothing is there already
        answers = list[Path]()
        took = seconds(
            lambda: answers.append(
                store.path(take_snapshot(source, QUERY, artifacts=store, ref="Q1").info.artifact),
            )
        )
        for path in taken:
            path.unlink()
        taken[:] = answers
        return took

    with duckdb.connect(str(copied), read_only=True) as connection:
        costs = alternately(rounds, snapshot, copy)
    source.close()
    table(["stored, hashed snapshot", "DuckDB COPY and flush"], costs)
    bare = [Cost(both[1].wall - flush, 0) for both, flush in zip(costs, flushes[1:], strict=True)]
    unflushed = ratio([(both[0], alone) for both, alone in zip(costs, bare, strict=True)])
    print(f"  against a COPY that is not flushed: {unflushed:.2f} ×")
    mapped = min(_mapping_seconds(taken[0], rows, folder) for _ in range(rounds))
    return [
        Bar("snapshot / COPY TO parquet", ratio(costs), "×", at_most=1.5),
        Bar("mapping the snapshot in the kernel, best", 1000 * mapped, "ms", at_most=50),
    ]


def _mapping_seconds(path: Path, rows: int, folder: Path) -> float:
    words = [PYTHON, "-c", MAP, str(path), str(rows)]
    done = subprocess.run(words, env=environment(folder / "home"), capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with scratch(options.directory) as folder:
        return conclude(measure(options.rows, options.rounds, Path(folder)))


if __name__ == "__main__":
    raise SystemExit(main())
