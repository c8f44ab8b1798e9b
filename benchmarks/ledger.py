"""The ledger's bars: acknowledged durable events per second with 8 writers, and opening a run of 1,000,000 events.

    python benchmarks/ledger.py [--seconds 3] [--events 1000000] [--directory DIR]

Every event counted has been acknowledged after a flush to the disk. The disk's own flush rate is measured beside it,
because a writer that waits for each of its events cannot be faster than that.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from _pairs import Bar, conclude, scratch

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


def measure(length: int, duration: float, folder: Path) -> list[Bar]:
    """The bars: rates over `duration` seconds each, then a run of `length` events."""
    home = Home(folder)
    with Store.open(home) as store:
        print(f"  the disk flushes {flush_rate(home.root):,} times a second")
        print(f"  1 writer, each event awaited: {rate(store, waiting_writer, duration, writers=1):,} events/s")
        waiting = max(rate(store, waiting_writer, duration) for _ in range(2))
        print(f"  {WRITERS} writers, each event awaited: {waiting:,} events/s")
        flying = max(rate(store, pipelining_writer, duration) for _ in range(2))
        long_run = add_run(store)
        batch = [draft(long_run, "call.started", DATA, actor="user:bench")] * 1000
        begin = time.monotonic()
        for _ in range(length // 1000):
            store.ledger.append_many(batch)
        print(f"  1 writer, 1,000 events at once: {length / (time.monotonic() - begin):,.0f} events/s")
    opened = [open_long_run(home, long_run) for _ in range(3)]
    assert opened[0]["events"] == length // 1000 * 1000
    return [
        Bar(f"{WRITERS} writers, {IN_FLIGHT} events in flight each", flying, "events/s", at_least=5000),
        Bar(f"summary of a run of {length:,} events, best", min(o["summary_ms"] for o in opened), "ms", at_most=200),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with scratch(options.directory) as folder:
        return conclude(measure(options.events, options.seconds, Path(folder)))


if __name__ == "__main__":
    raise SystemExit(main())
