"""The narrow places of crash and resume: between the end and the seal, two at once, a kernel without its runtime."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.broker.recording import Recording
from learngraph_kernel.runs.keys import PRIVATE_NAME
from learngraph_kernel.runs.lifecycle import NotResumable, take_over
from learngraph_kernel.store.database import RunRecord, Store, new_run_id, utcnow
from learngraph_kernel.store.errors import RunChanged
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.process import ProcessIdentity

Command = Callable[..., Any]
ACTOR = "user:ana"
DEAD = ProcessIdentity(1, 1, "another boot")
IDENTITY = {"method": "query", "arguments_hash": "ab" * 32}


@pytest.fixture
def store(home: Path) -> Any:
    with Store.open(Home(home)) as opened:
        yield opened


def add_run(store: Store, *events: tuple[str, dict[str, Any]]) -> str:
    """A run whose process has died, with these events."""
    run = new_run_id()
    with store.unit_of_work(ACTOR) as work:
        work.insert_run(RunRecord(run, ACTOR, utcnow(), process=DEAD))
        for kind, data in events:
            work.append(run, kind, data)
    return run


def test_a_run_that_ended_without_its_seal_is_sealed_by_resume(
    learngraph: Command, write_notebook: Command, home: Path
) -> None:
    path = write_notebook("import learngraph_kernel as lg\nlg.output(n=lg.report('None at all.').violations)")
    Home(home).ensure()
    key = home / "keys" / PRIVATE_NAME
    key.write_text("no key")
    assert learngraph("run", path, "--json").code == 1
    (ended,) = learngraph("list", "--json").json
    run = ended["run_id"]
    assert (ended["status"], ended["seal"]) == ("completed", None)
    key.unlink()
    said = learngraph("resume", run, "--json")
    assert said.code == 0, said.out + said.err
    assert (said.json["status"], said.json["result"]) == ("completed", {"n": []})
    assert Path(said.json["report"]).read_text().lower().startswith("<!doctype html>")
    Path(said.json["notebook"]).unlink()
    again = learngraph("resume", run, "--json")
    assert again.json == said.json
    assert Path(again.json["notebook"]).exists()
    assert learngraph("resume", run, "--json").json["error"]["code"] == "not_resumable"
    assert learngraph("verify", run).code == 0
    with Store.open(Home(home)) as store:
        assert len(list(store.ledger.events(run, types=["run.sealed"]))) == 1


def test_a_run_that_another_process_has_taken_over_is_left_alone(store: Store) -> None:
    run = add_run(store, ("run.started", {}))
    take_over(store, run, ACTOR)
    with pytest.raises(NotResumable, match="still running"):
        take_over(store, run, ACTOR)


def test_of_two_that_take_a_run_over_at_the_same_moment_one_wins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = add_run(store, ("run.started", {}))
    as_both_read_it = store.run(run)
    take_over(store, run, ACTOR)
    monkeypatch.setattr(store, "run", lambda _: as_both_read_it)
    with pytest.raises(RunChanged):
        take_over(store, run, ACTOR)
    assert len(list(store.ledger.events(run, types=["run.resumed"]))) == 1


FAILED = {**IDENTITY, "cell": "c1", "position": 0, "error": {"code": "query_failed", "reason": "no"}}
LATER = {**IDENTITY, "cell": "c1", "position": 1, "result": 1}
RAISED = {"cell": "c1", "error": {"code": "cell_failed"}}
DIED = {"cell": "c1", "error": {"code": "kernel_died"}}
FAILURES = [
    ("the notebook caught it and made another call", [("call.failed", FAILED), ("call.completed", LATER)], 2),
    ("the run was killed right behind it", [("call.failed", FAILED)], 1),
    ("it was what the cell raised", [("call.failed", FAILED), ("cell.failed", RAISED)], 0),
    ("the kernel died later", [("call.failed", FAILED), ("cell.failed", DIED)], 1),
    ("another cell raised", [("call.failed", FAILED), ("cell.failed", {**RAISED, "cell": "c2"})], 1),
    ("it was tried again", [("call.failed", FAILED), ("cell.failed", RAISED), ("call.failed", FAILED)], 1),
    (
        "it was mended",
        [("call.failed", FAILED), ("cell.failed", RAISED), ("call.completed", {**LATER, "position": 0})],
        1,
    ),
]


@pytest.mark.parametrize(("events", "kept"), [case[1:] for case in FAILURES], ids=[case[0] for case in FAILURES])
def test_a_failure_is_an_answer_unless_it_is_what_stopped_the_cell(
    store: Store, events: list[tuple[str, dict[str, Any]]], kept: int
) -> None:
    run = add_run(store, *events)
    assert len(Recording.from_events(store.ledger.events(run), store.artifacts).calls) == kept


def test_a_caught_failure_is_not_asked_again_by_a_rerun(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(
        "import learngraph_kernel as lg",
        'try:\n    lg.query("shop", "select nothing from orders")\nexcept Exception as error:\n    print(error.code)',
    )
    run = learngraph("run", path, "--json").json["run_id"]
    again = learngraph("rerun", run, "--json")
    assert again.code == 0, again.out


def started(home: Path, kind: str, count: int) -> str:
    """Waits for the count-th event of a kind in the only run."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (home / "learngraph.db").exists():
            with Store.open(Home(home)) as store:
                for record in store.runs():
                    if len(list(store.ledger.events(record.run_id, types=[kind]))) >= count:
                        return record.run_id
        time.sleep(0.05)
    raise AssertionError(f"no {kind}")


def test_a_kernel_ends_with_its_killed_runtime_and_a_killed_resume_resumes(
    learngraph: Command, start: Command, write_notebook: Command, workspace: Path, home: Path
) -> None:
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)"
    path = write_notebook(
        "import os, learngraph_kernel as lg\nwith open('kernels', 'a') as file: print(os.getpid(), file=file)",
        'q = lg.query("shop", "select * from orders order by id")',
        f"{wait}\nlg.report('Revenue was ' + '[[v:Q1.r0.amount]].')",
    )
    first = start("run", path, "--formal")
    run = started(home, "cell.started", 3)
    first.kill()
    first.wait()
    second = start("resume", run)
    started(home, "cell.started", 6)
    second.kill()
    second.wait()
    kernels = [int(line) for line in (workspace / "kernels").read_text().split()]
    deadline = time.monotonic() + 15
    while any(Path(f"/proc/{pid}").exists() for pid in kernels):
        assert time.monotonic() < deadline, "a kernel outlives its killed runtime"
        time.sleep(0.05)
    (workspace / "go").touch()
    resumed = learngraph("resume", run, "--json")
    assert resumed.code == 0, resumed.out
    assert resumed.json["tier"] == "formal"
    with Store.open(Home(home)) as store:
        queries = [e for e in store.ledger.events(run, types=["call.started"]) if e.data["method"] == "query"]
    assert len(queries) == 1
    assert len(kernels) == 2
    assert learngraph("verify", run).code == 0


@pytest.fixture
def start(home: Path) -> Any:
    """Starts the command in a process group of its own, which is killed at the end."""
    import subprocess

    from tests.conftest import COMMAND

    processes = []

    def run(*words: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
