from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from learngraph_kernel.canonical import NotCanonical
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.store.chain import Event, Head
from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.store.errors import StoreClosed, StoreCorrupt, UnknownRun
from learngraph_kernel.store.ledger import MAX_DATA_BYTES, PAGE, ChainBroken, check_chain, draft
from learngraph_kernel.store.writer import Job, Writer

NewRun = Callable[..., str]
BIG = "x" * (16 * 1024)


def test_an_appended_event_is_read_back_as_it_was_acknowledged(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    first = store.ledger.append(run, "run.started", {"notebook": "日报.ipynb", "n": [1, 0.5, None]}, actor="user:ana")
    second = store.ledger.append(run, "comment", {}, actor="user:bo", after_seal=True)
    assert list(store.ledger.events(run)) == [first, second]
    assert (second.seq, second.prev, second.after_seal) == (2, first.hash, True)
    assert store.ledger.head(run) == Head(2, second.hash)
    assert store.ledger.count(run) == 2


def test_it_outlives_the_store(home: Home, new_run: NewRun) -> None:
    with Store.open(home) as store:
        run = new_run(store)
        event = store.ledger.append(run, "a", {}, actor="u")
    with Store.open(home) as store:
        assert store.ledger.append(run, "b", {}, actor="u").prev == event.hash
        assert check_chain(store.ledger.events(run)) == store.ledger.head(run)


def test_an_unknown_run_has_no_events_and_takes_none(store: Store) -> None:
    assert list(store.ledger.events("r_none")) == []
    assert (store.ledger.head("r_none"), store.ledger.count("r_none")) == (None, 0)
    with pytest.raises(UnknownRun, match="r_none"):
        store.ledger.append("r_none", "a", {}, actor="u")


def test_what_cannot_be_canonical_is_refused_at_once(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    with pytest.raises(NotCanonical):
        store.ledger.submit(run, "a", {"x": float("nan")}, actor="u")
    with pytest.raises(BadInput, match="artifact"):
        store.ledger.submit(run, "a", {"x": "y" * MAX_DATA_BYTES}, actor="u")
    assert store.ledger.count(run) == 0


def test_changing_the_data_after_submitting_changes_nothing_recorded(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    data = {"n": 1}
    future = store.ledger.submit(run, "a", data, actor="u")
    data["n"] = 2
    future.result()
    assert [event.data for event in store.ledger.events(run)] == [{"n": 1}]


def test_events_are_read_in_pages_from_anywhere_and_by_type(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    count = 2 * PAGE + 3
    made = store.ledger.append_many(
        [draft(run, "even" if n % 2 == 0 else "odd", {"n": n}, actor="u") for n in range(count)]
    )
    assert list(store.ledger.events(run)) == made
    assert list(store.ledger.events(run, after=count - 2)) == made[-2:]
    assert list(store.ledger.events(run, types={"odd"})) == made[1::2]
    assert list(store.ledger.events(run, types=[])) == []


def test_events_appended_together_are_recorded_all_or_none(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    store.ledger.append(run, "a", {}, actor="u")
    with pytest.raises(UnknownRun):
        store.ledger.append_many([draft(run, "b", {}, actor="u"), draft("r_none", "b", {}, actor="u")])
    store.ledger.append(run, "c", {}, actor="u")
    assert [event.type for event in store.ledger.events(run)] == ["a", "c"]
    assert check_chain(store.ledger.events(run)) == store.ledger.head(run)


def test_eight_writers_on_one_run_make_one_whole_chain(store: Store, new_run: NewRun) -> None:
    run = new_run(store)

    def write(writer: int) -> list[Event]:
        return [
            store.ledger.append(run, "a", {"writer": writer, "n": n, "pad": BIG if n % 20 == 0 else ""}, actor="u")
            for n in range(60)
        ]

    with ThreadPoolExecutor(8) as pool:
        acknowledged = list(pool.map(write, range(8)))
    for events in acknowledged:
        assert [event.seq for event in events] == sorted(event.seq for event in events)
    everything = sorted((event for events in acknowledged for event in events), key=lambda event: event.seq)
    assert list(store.ledger.events(run)) == everything
    assert check_chain(everything, expected=store.ledger.head(run)) == Head(480, everything[-1].hash)


def test_one_failing_caller_does_not_fail_the_others(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    futures = [store.ledger.submit(run if n % 3 else "r_none", "a", {"n": n}, actor="u") for n in range(90)]
    failed = [n for n, future in enumerate(futures) if isinstance(future.exception(), UnknownRun)]
    assert failed == list(range(0, 90, 3))
    assert [event.data["n"] for event in store.ledger.events(run)] == [n for n in range(90) if n % 3]
    assert check_chain(store.ledger.events(run)) == store.ledger.head(run)


def test_a_cancelled_event_is_not_recorded(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    futures = [store.ledger.submit(run, "a", {"n": n}, actor="u") for n in range(2000)]
    cancelled = [n for n, future in enumerate(futures) if n >= 1000 and future.cancel()]
    recorded = {future.result().seq for n, future in enumerate(futures) if n not in set(cancelled)}
    assert store.ledger.count(run) == len(recorded) == 2000 - len(cancelled)


def test_closing_records_what_is_queued_and_refuses_what_comes_later(home: Home, new_run: NewRun) -> None:
    before = set(threading.enumerate())
    store = Store.open(home)
    run = new_run(store)
    futures = [store.ledger.submit(run, "a", {"n": n}, actor="u") for n in range(300)]
    store.close()
    assert [future.result(timeout=0).seq for future in futures] == list(range(1, 301))
    with pytest.raises(StoreClosed):
        store.ledger.append(run, "a", {}, actor="u")
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "learngraph-writer"]


WRITE = """
import sys
from pathlib import Path
from learngraph_kernel.store.database import Home, Store
home, name, *runs = sys.argv[1:]
with Store.open(Home(Path(home))) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(150):
        for run in runs:
            event = store.ledger.append(run, "a", {"n": number}, actor=name)
            print(event.run, event.seq, event.hash)
"""


def test_two_processes_share_a_run_and_own_others(home: Home, new_run: NewRun) -> None:
    with Store.open(home) as store:
        shared, own = new_run(store), [new_run(store), new_run(store)]
        children = [
            subprocess.Popen(
                [sys.executable, "-c", WRITE, str(home.root), f"process:{n}", shared, own[n]],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for n in range(2)
        ]  # fmt: skip
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        acknowledged: set[tuple[str, int, str]] = set()
        for child in children:
            child.stdin.write("go\n")  # type: ignore[union-attr]
            child.stdin.flush()  # type: ignore[union-attr]
        for child in children:
            for line in child.communicate(timeout=60)[0].splitlines():
                run, seq, hash_ = line.split()
                acknowledged.add((run, int(seq), hash_))
            assert child.returncode == 0
        for run, count in ((shared, 300), (own[0], 150), (own[1], 150)):
            assert check_chain(store.ledger.events(run)) == store.ledger.head(run)
            assert store.ledger.count(run) == count
        recorded = {(e.run, e.seq, e.hash) for run in (shared, *own) for e in store.ledger.events(run)}
        assert recorded == acknowledged
        # This process wrote the runs before the others did: what it remembered of them must not count any more.
        assert store.ledger.append(shared, "b", {}, actor="u").seq == 301
        assert check_chain(store.ledger.events(shared)) == store.ledger.head(shared)


def rewrite(home: Home, sql: str) -> None:
    """What someone with the file and SQLite at hand can do."""
    with sqlite3.connect(home.database) as connection:
        connection.execute(sql)
    connection.close()


@pytest.mark.parametrize(
    ("sql", "error", "named"),
    [
        ("UPDATE events SET data = '{\"n\":7}' WHERE seq = 3", ChainBroken, "event 3 is altered"),
        ("UPDATE events SET data = '{\"n\":' WHERE seq = 3", ChainBroken, "event 3 is altered"),
        ("UPDATE events SET at = '2020-01-01T00:00:00.000000Z' WHERE seq = 3", ChainBroken, "event 3 is altered"),
        ("UPDATE events SET after_seal = 1 WHERE seq = 3", ChainBroken, "event 3 is altered"),
        ("UPDATE events SET actor = CAST(X'FF' AS TEXT) WHERE seq = 3", StoreCorrupt, "behind event 2"),
        ("DELETE FROM events WHERE seq = 3", ChainBroken, "event 3 is missing"),
        ("DELETE FROM events WHERE seq = 5", ChainBroken, "event 5 is missing"),
    ],
)
def test_what_is_changed_behind_our_back_is_named(
    home: Home, new_run: NewRun, sql: str, error: type[LearnGraphError], named: str
) -> None:
    with Store.open(home) as store:
        run = new_run(store)
        for n in range(5):
            last = store.ledger.append(run, "a", {"n": n}, actor="u")
        rewrite(home, sql)
        with pytest.raises(error, match=named):
            check_chain(store.ledger.events(run), expected=Head(last.seq, last.hash))


def test_artifacts_that_were_there_when_named_are_listed(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    names = sorted([store.artifacts.put(b"one"), store.artifacts.put(b"two")])
    store.ledger.append(run, "a", {"artifacts": names, "arguments_hash": "ab" * 32}, actor="u")
    store.ledger.append(run, "a", {"result": {"$artifact": names[0]}}, actor="u")
    assert store.ledger.artifacts(run) == names


def test_waiting_writers_share_a_flush(store: Store, new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    transactions: list[int] = []
    commit = Writer._transaction

    def slow_disk(self: Writer, jobs: list[Job[object]]) -> list[object]:
        transactions.append(len(jobs))
        time.sleep(0.005)
        return commit(self, jobs)

    monkeypatch.setattr(Writer, "_transaction", slow_disk)
    run = new_run(store)

    def write(_: int) -> None:
        for n in range(20):
            store.ledger.append(run, "a", {"n": n}, actor="u")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert store.ledger.count(run) == 160
    assert len(transactions) < 80
