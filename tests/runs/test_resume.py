"""Crash and resume: what was acknowledged is kept, what was answered does not happen again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.conftest import COMMAND

Command = Callable[..., Any]
IMPORT = "import learngraph_kernel as lg"
WAIT_FOR_FLAG = "import os, time, pathlib\nflag = pathlib.Path('go')\nwhile not flag.exists(): time.sleep(0.02)"


def start(path: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, "run", str(path), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_event(home: Path, kind: str, count: int = 1, seconds: float = 60) -> str:
    """The id of the run whose ledger has `count` events of a kind; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (home / "learngraph.db").exists():
            with Store.open(Home(home)) as store:
                for record in store.runs():
                    if len(list(store.ledger.events(record.run_id, types=[kind]))) >= count:
                        return record.run_id
        time.sleep(0.05)
    raise AssertionError(f"no {kind} within {seconds} s")


def events(home: Path, run: str) -> list[Any]:
    with Store.open(Home(home)) as store:
        return list(store.ledger.events(run))


def test_a_killed_run_is_interrupted_and_resumes_without_asking_the_source_again(
    learngraph: Command, write_notebook: Command, workspace: Path, home: Path
) -> None:
    path = write_notebook(
        IMPORT,
        'orders = lg.query("shop", "select region, amount from orders order by id")',
        WAIT_FOR_FLAG,
        'm = lg.metrics("shop", {"orders": orders}); lg.report("Revenue was [[m:revenue]].")',
    )
    process = start(path, "--formal")
    run = wait_for_event(home, "call.completed")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert learngraph("list", "--json").json[0]["status"] == "interrupted"
    (workspace / "shop.duckdb").rename(workspace / "gone.duckdb")
    (workspace / "go").touch()
    resumed = learngraph("resume", run, "--json")
    assert resumed.code == 0, resumed.out
    assert resumed.json["run_id"] == run and resumed.json["tier"] == "formal"
    queries = [event for event in events(home, run) if event.type == "call.started" and event.data["method"] == "query"]
    assert len(queries) == 1
    assert learngraph("verify", run).code == 0


def test_a_replay_that_asks_something_else_stops_and_names_the_cell(
    learngraph: Command, write_notebook: Command, home: Path
) -> None:
    path = write_notebook(IMPORT, "import os; lg.log(f'process {os.getpid()}')", WAIT_FOR_FLAG)
    process = start(path)
    run = wait_for_event(home, "call.completed")
    process.kill()
    process.wait()
    resumed = learngraph("resume", run, "--json")
    assert resumed.code == 1
    assert resumed.json["error"]["code"] == "replay_diverged"
    assert "cell c1" in resumed.json["error"]["reason"]


def test_a_replay_that_makes_fewer_calls_has_diverged_too(
    learngraph: Command, write_notebook: Command, workspace: Path, home: Path
) -> None:
    path = write_notebook(IMPORT, "import os\nlg.log('a')\nif not os.path.exists('skip'): lg.log('b')", WAIT_FOR_FLAG)
    process = start(path)
    run = wait_for_event(home, "call.completed", count=2)
    process.kill()
    process.wait()
    (workspace / "skip").touch()
    resumed = learngraph("resume", run, "--json")
    assert resumed.code == 1
    assert "holds 2 calls, the replay made 1" in resumed.json["error"]["reason"]


def test_a_failed_run_resumes_once_the_cause_is_mended(
    learngraph: Command, write_notebook: Command, workspace: Path, home: Path
) -> None:
    path = write_notebook(IMPORT, "lg.log('before')", 'lg.query("shop", "select * from orders")')
    (workspace / "shop.duckdb").rename(workspace / "gone.duckdb")
    failed = learngraph("run", path, "--json")
    assert failed.code == 1
    (workspace / "gone.duckdb").rename(workspace / "shop.duckdb")
    resumed = learngraph("resume", failed.json["run_id"], "--json")
    assert resumed.code == 0, resumed.out
    logs = [e for e in events(home, failed.json["run_id"]) if e.type == "call.started" and e.data["method"] == "log"]
    assert len(logs) == 1


def test_a_completed_run_does_not_resume(learngraph: Command, write_notebook: Command) -> None:
    run = learngraph("run", write_notebook("1"), "--json").json["run_id"]
    said = learngraph("resume", run, "--json")
    assert said.code == 2
    assert said.json["error"]["code"] == "not_resumable"


def test_an_unknown_run_is_said_to_be_unknown(learngraph: Command) -> None:
    for command in ("resume", "rerun", "show", "verify"):
        said = learngraph(command, "r_01ARZ3NDEKTSV4RRFFQ69G5FAV", "--json")
        assert said.code == 2, command
        assert said.json["error"]["remedy"], command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_kernel_and_records_the_run_as_cancelled(
    learngraph: Command, write_notebook: Command, workspace: Path, home: Path, number: int
) -> None:
    path = write_notebook("import os, pathlib; pathlib.Path('pid').write_text(str(os.getpid()))", WAIT_FOR_FLAG)
    process = start(path)
    run = wait_for_event(home, "cell.started", count=2)
    process.send_signal(number)
    process.wait(timeout=20)
    assert process.returncode == 1
    with Store.open(Home(home)) as store:
        assert store.run(run).status == "cancelled"
    kernel = int((workspace / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)


def test_a_run_that_timed_out_goes_on_with_a_longer_limit(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook('import learngraph_kernel as lg\nlg.log("here")', "import time\ntime.sleep(6)")
    run = learngraph("run", path, "--execution-timeout", 3, "--json")
    assert (run.code, run.json["error"]["code"]) == (1, "cell_timeout")
    resumed = learngraph("resume", run.json["run_id"], "--execution-timeout", 60, "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "completed")
    shown = learngraph("show", run.json["run_id"], "--no-events", "--json").json
    assert [(call["method"], call["state"]) for call in shown["calls"]] == [("log", "completed")]
    assert shown["events"] == resumed_events(learngraph, run.json["run_id"])


def resumed_events(learngraph: Command, run_id: str) -> int:
    """How many events a run has, counted."""
    return len(learngraph("show", run_id, "--json").json["events"])
