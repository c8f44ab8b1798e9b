from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.database import Home, ProcessIdentity, RunRecord, Store, new_run_id
from learngraph_kernel.store.errors import RunChanged, RunExists, UnknownRun
from learngraph_kernel.store.schema import audit, outbox, runs

NewRun = Callable[..., str]
START = dt.datetime(2026, 12, 1, 3, 0, tzinfo=dt.UTC)


def rows(store: Store, table: object) -> list[str]:
    from sqlalchemy import Table, select

    assert isinstance(table, Table)
    column = table.c.action if table is audit else table.c.type if table is outbox else table.c.run_id
    return store.scalars(select(column))


def full_record() -> RunRecord:
    return RunRecord(
        run_id="r_full", actor="user:ana", started_at=START, status="completed", formal=True, tier="degraded",
        title="航班周报", notebook="notebooks/weekly.ipynb", workspace="/data", parameters={"week": "2013-W07", "n": 2},
        origin="rerun", parent="r_other", isolation="host", finished_at=START + dt.timedelta(seconds=3),
        content_hash="ab" * 32, seal="cd" * 32, process=ProcessIdentity(1, 2, "boot"),
    )  # fmt: skip


def test_a_run_comes_back_as_it_was_inserted(store: Store) -> None:
    with store.unit_of_work("user:ana") as work:
        work.insert_run(full_record())
    assert store.run("r_full") == full_record()


def test_a_record_knows_its_ledger(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    assert (store.run(run).events, store.run(run).head, store.run(run).ledger_head()) == (0, None, None)
    store.ledger.append(run, "a", {}, actor="u")
    last = store.ledger.append(run, "b", {}, actor="u")
    assert (store.run(run).events, store.run(run).head) == (2, last.hash)
    assert store.run(run).ledger_head() == store.ledger.head(run)


def test_its_json_is_json(store: Store) -> None:
    body = json.loads(json.dumps(full_record().as_json()))
    assert body["run_id"] == "r_full"
    assert body["started_at"] == "2026-12-01T03:00:00.000000Z"
    assert body["parameters"] == {"week": "2013-W07", "n": 2}
    assert set(body) >= {"status", "tier", "content_hash", "seal", "notebook", "isolation", "events", "head", "process"}


def test_runs_are_listed_newest_first_and_limited(store: Store) -> None:
    ids = [new_run_id(lambda n=n: START + dt.timedelta(seconds=n)) for n in range(4)]
    for run in (ids[2], ids[0], ids[3], ids[1]):
        with store.unit_of_work("u") as work:
            work.insert_run(RunRecord(run, "u", START, status="completed" if run == ids[1] else "failed"))
    assert [run.run_id for run in store.runs()] == ids[::-1]
    assert [run.run_id for run in store.runs(limit=2)] == [ids[3], ids[2]]
    assert [run.run_id for run in store.runs(status="completed")] == [ids[1]]
    assert [run.run_id for run in store.runs(status="failed", limit=2)] == [ids[3], ids[2]]


def test_a_run_whose_process_has_died_is_interrupted(store: Store, new_run: NewRun) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(child.pid)
    mine, theirs = new_run(store, process=ProcessIdentity.current()), new_run(store, process=identity)
    assert store.run(theirs).alive()
    assert store.runs(status="interrupted") == []
    child.kill()
    child.wait()
    assert not store.run(theirs).alive()
    assert store.run(theirs).as_json()["status"] == "interrupted"
    assert [run.run_id for run in store.runs(status="interrupted")] == [theirs]
    assert [run.run_id for run in store.runs(status="running")] == [mine]


def test_a_run_of_an_unknown_process_keeps_its_recorded_status(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    assert not store.run(run).alive()
    assert store.run(run).observed_status() == "running"


def test_a_reused_pid_and_another_boot_are_not_the_same_process() -> None:
    current = ProcessIdentity.current()
    assert current.alive()
    assert current.started is not None
    assert not ProcessIdentity(current.pid, current.started + 1, current.boot).alive()
    assert not ProcessIdentity(current.pid, current.started, "another boot").alive()


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = ProcessIdentity.of(child.pid)
    child.kill()
    stat = Path(f"/proc/{child.pid}/stat")
    while ") Z" not in stat.read_text():
        pass
    assert not identity.alive()
    child.wait()


def test_run_ids_sort_by_time_and_have_the_form_of_a_ulid() -> None:
    early = new_run_id(lambda: START, lambda bits: (1 << bits) - 1)
    late = new_run_id(lambda: START + dt.timedelta(milliseconds=1), lambda bits: 0)
    assert early < late
    assert len(early) == 28
    assert early.endswith("Z" * 16)
    assert len({new_run_id() for _ in range(1000)}) == 1000


def test_a_unit_of_work_writes_everything_together(store: Store) -> None:
    with store.unit_of_work("user:ana") as work:
        work.insert_run(RunRecord("r_1", "user:ana", START))
        work.append("r_1", "run.started", {"formal": True})
        work.update_run("r_1", status="completed", tier="formal")
        work.audit("run.start", "r_1", {"n": 1})
        work.emit("run.started", "r_1", {"n": 1})
        assert rows(store, runs) == []
    assert (store.run("r_1").status, store.run("r_1").tier) == ("completed", "formal")
    assert list(store.ledger.events("r_1")) == work.events
    assert (rows(store, audit), rows(store, outbox)) == (["run.start"], ["run.started"])


def test_a_unit_that_fails_at_its_end_leaves_nothing(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    store.ledger.append(run, "a", {}, actor="u")

    def fail() -> None:
        with store.unit_of_work("user:ana") as work:
            work.audit("x", run)
            work.emit("x", run)
            work.append(run, "b", {})
            work.update_run("r_none", status="failed")

    with pytest.raises(UnknownRun, match="r_none"):
        fail()
    assert (rows(store, audit), rows(store, outbox)) == ([], [])
    assert store.ledger.append(run, "c", {}, actor="u").seq == 2


def test_of_two_that_take_over_a_run_only_one_succeeds(store: Store, new_run: NewRun) -> None:
    dead = ProcessIdentity(1, 1, "another boot")
    run = new_run(store, process=dead)
    winners = []
    for pid in (2, 3):

        def take_over(pid: int = pid) -> None:
            with store.unit_of_work("u") as work:
                work.expect_run(run, status="running", process=dead)
                work.update_run(run, process=ProcessIdentity(pid, 1, "boot"))
                work.append(run, "run.resumed", {"from_seq": 0})

        try:
            take_over()
            winners.append(pid)
        except RunChanged as error:
            assert error.details == {"changed": ["process"]}  # noqa: PT017  which one raises is the point
    assert winners == [2]
    assert (store.run(run).process, store.run(run).events) == (ProcessIdentity(2, 1, "boot"), 1)


def test_an_exception_inside_the_block_drops_everything(store: Store) -> None:
    def fail() -> None:
        with store.unit_of_work("user:ana") as work:
            work.insert_run(RunRecord("r_1", "u", START))
            raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError):
        fail()
    assert store.runs() == []


def test_a_run_is_inserted_once(store: Store, new_run: NewRun) -> None:
    run = new_run(store)
    with pytest.raises(RunExists, match=run):  # noqa: SIM117  raised at the end of the inner block
        with store.unit_of_work("u") as work:
            work.insert_run(RunRecord(run, "u", START))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"colour": "red"}, "colour"),
        ({"status": "done"}, "done"),
        ({"tier": "gold"}, "gold"),
        ({"events": 3}, "events"),
        ({}, "fields"),
    ],
)
def test_a_wrong_change_is_refused_at_once(store: Store, changes: dict[str, object], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        store.unit_of_work("u").update_run("r_1", **changes)


def test_an_unknown_run_is_named(store: Store) -> None:
    with pytest.raises(UnknownRun, match="r_nope"):
        store.run("r_nope")


def test_check_finds_nothing_wrong_and_then_what_is_wrong(store: Store, new_run: NewRun) -> None:
    kept, lost, seal = (store.artifacts.put(data) for data in (b"kept", b"lost", b"seal"))
    run = new_run(store, seal=seal)
    store.ledger.append(run, "a", {"artifacts": [kept, lost], "arguments_hash": "ab" * 32}, actor="u")
    assert store.check() == []
    store.artifacts.path(lost).unlink()
    store.artifacts.path(seal).unlink()
    path = store.artifacts.path(kept)
    path.chmod(0o644)
    path.write_bytes(b"KEPT")
    assert {finding.code for finding in store.check(rehash=False)} == {"artifact_missing"}
    findings = store.check()
    assert sorted(finding.code for finding in findings) == ["artifact_corrupt", "artifact_missing", "artifact_missing"]
    assert {finding.where for finding in findings} == {f"run {run}", str(path)}
    assert all(finding.remedy for finding in findings)


def test_a_page_of_runs_is_quick_beside_a_long_ledger(home: Home, new_run: NewRun) -> None:
    """The head of a ledger is looked up, never counted: the plan of the query reads no range of events."""
    from learngraph_kernel.store.database import _run_query

    with Store.open(home) as store, store._engine.connect() as connection:
        sql = str(_run_query().compile(store._engine, compile_kwargs={"literal_binds": True}))
        plan = [str(row[3]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    assert not [step for step in plan if "SCAN events" in step], plan
