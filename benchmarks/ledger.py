"""The ledger's bars: acknowledged durable events per second with 8 writers, and opening a run of 1,000,000 events.

    python benchmarks/ledger.py [--seconds 3] [--events 1000000] [--directory DIR]

Every event counted has been acknowledged after a flush to the disk. The disk's own flush rate is measured beside it,
because a writer that waits for each of its events cannot be faster than that.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from learngraph_kernel.store.chain import Event
from learngraph_kernel.store.database import Home, RunRecord, Store, new_run_id, utcnow
from learngraph_kernel.store.ledger import Ledger, draft

WRITERS = 8
IN_FLIGHT = 16
DATA = {"cell": "a1b2c3d4", "position": 3, "method": "query", "arguments_hash": "5f" * 32, "effect": "read"}


def add_run(store: Store) -> str:
    run_id = new_run_id()
    with store.unit_of_work("user:bench") as work:
        work.insert_run(RunRecord(run_id, "user:bench", utcnow()))
    return run_id


def waiting_writer(ledger: Ledger, run_id: str, until: float) -> int:
    """One event at a time, each awaited."""
    count = 0
    while time.monotonic() < until:
        ledger.append(run_id, "call.started", DATA, actor="user:bench")
        count += 1
    return count


def pipelining_writer(ledger: Ledger, run_id: str, until: float) -> int:
    """Up to `IN_FLIGHT` events not yet acknowledged."""
    count = 0
    flying: deque[Future[Event]] = deque()
    while time.monotonic() < until:
        flying.append(ledger.submit(run_id, "call.started", DATA, actor="user:bench"))
        if len(flying) == IN_FLIGHT:
            flying.popleft().result()
            count += 1
    for future in flying:
        future.result()
    return count + len(flying)


def rate(store: Store, writer: Callable[[Ledger, str, float], int], seconds: float, *, writers: int = WRITERS) -> int:
    """Acknowledged events per second of `writers` threads, each on a run of its own."""
    counts: list[int] = []
    runs = [add_run(store) for _ in range(writers)]
    begin = time.monotonic()
    threads = [
        threading.Thread(target=lambda run=run: counts.append(writer(store.ledger, run, begin + seconds)))  # type: ignore[misc]
        for run in runs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(sum(counts) / (time.monotonic() - begin))


def flush_rate(directory: Path, count: int = 200) -> int:
    """Flushes per second of 4 KiB each, appended to one file."""
    with (directory / "flush").open("wb", buffering=0) as file:
        begin = time.monotonic()
        for _ in range(count):
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
    return round(count / (time.monotonic() - begin))


def open_long_run(home: Home, run_id: str) -> dict[str, float]:
    """Milliseconds until the summary of a run is there, in a store that was not open."""
    begin = time.perf_counter()
    with Store.open(home) as store:
        opened = time.perf_counter()
        events = store.run(run_id).events
        done = time.perf_counter()
    return {"events": events, "open_ms": (opened - begin) * 1000, "summary_ms": (done - begin) * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        home = Home(Path(folder))
        with Store.open(home) as store:
            result: dict[str, object] = {
                "disk_flushes_per_second": flush_rate(home.root),
                "events_per_second_8_writers_waiting": rate(store, waiting_writer, options.seconds),
                "events_per_second_8_writers_16_in_flight": rate(store, pipelining_writer, options.seconds),
                "events_per_second_1_writer_waiting": rate(store, waiting_writer, options.seconds, writers=1),
            }
            if options.events:
                long_run = add_run(store)
                batch = [draft(long_run, "call.started", DATA, actor="user:bench")] * 1000
                begin = time.monotonic()
                for _ in range(options.events // 1000):
                    store.ledger.append_many(batch)
                result["events_per_second_append_many_1000"] = round(options.events / (time.monotonic() - begin))
        if options.events:
            result["long_run"] = open_long_run(home, long_run)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
