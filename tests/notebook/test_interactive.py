"""`lg` by hand: in a script, in IPython, in a Jupyter kernel that nobody started through LearnGraph."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.runs.targets import verify_run
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.notebook.conftest import ByHand, sealed_run

Command = Callable[..., Any]
QUERY = 'import learngraph_kernel as lg\nq = lg.query("shop", "select * from orders order by id")\n'


def script(workspace: Path, code: str, *, program: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    path = workspace / "analysis.py"
    path.write_text(code)
    command = [*(program or [sys.executable]), str(path)]
    return subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=120, check=False)


def calls(home: Path, run: str) -> list[tuple[str, int, str]]:
    with Store.open(Home(home)) as store:
        return [
            (event.data["cell"], event.data["position"], event.data["method"])
            for event in store.ledger.events(run, types=["call.completed"])
        ]


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("raise SystemExit(4)", 4), ("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL)],
    ids=["normal", "exit", "exception", "kill"],
)
def test_a_script_records_an_exploratory_run_that_is_sealed_however_it_ends(
    workspace: Path, home: Path, ending: str, code: int
) -> None:
    done = script(workspace, f"{QUERY}print(q.ref, q.row_count)\nlg.log('done')\n{ending}\n")
    assert (done.returncode, done.stdout) == (code, "Q1 4\n"), done.stderr
    record = sealed_run(home)
    assert record.status == "completed"
    assert not record.formal
    assert calls(home, record.run_id) == [("analysis-py", 0, "query"), ("analysis-py", 1, "log")]
    with Store.open(Home(home)) as store:
        assert verify_run(store, record.run_id).ok


def test_a_run_by_hand_is_listed_and_says_why_it_cannot_be_resumed(
    workspace: Path, home: Path, learngraph: Command
) -> None:
    script(workspace, QUERY)
    run = sealed_run(home).run_id
    (listed,) = learngraph("list", "--json").json
    assert (listed["run_id"], listed["status"], listed["formal"]) == (run, "completed", False)
    assert learngraph("resume", run, "--json").json["error"]["code"] in ("not_resumable", "not_rerunnable")


def test_threads_and_forked_processes_of_a_script_share_its_run(workspace: Path, home: Path) -> None:
    code = """
import multiprocessing, threading
import learngraph_kernel as lg
lg.log("parent")
stop = threading.Event()
def busy():
    while not stop.is_set():
        lg.log("busy")
def child(n):
    lg.log(f"child {n}")
if __name__ == "__main__":
    threads = [threading.Thread(target=busy) for _ in range(2)]
    [thread.start() for thread in threads]
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=child, args=(n,)) for n in range(3)]
    [process.start() for process in children]
    [process.join(60) for process in children]
    stop.set()
    [thread.join() for thread in threads]
    print([process.exitcode for process in children])
"""
    done = script(workspace, code)
    assert done.stdout == "[0, 0, 0]\n", done.stderr
    record = sealed_run(home)
    with Store.open(Home(home)) as store:
        events = list(store.ledger.events(record.run_id, types=["call.completed"]))
        assert verify_run(store, record.run_id).ok
    said = {event.data["arguments"]["message"] for event in events}
    assert said == {"parent", "busy", "child 0", "child 1", "child 2"}
    places = [(event.data["cell"], event.data["position"]) for event in events]
    assert len(places) == len(set(places))


def test_ipython_runs_record_each_input(workspace: Path, home: Path) -> None:
    done = script(
        workspace,
        "import learngraph_kernel as lg\n\nlg.log('a')\n",
        program=[sys.executable, "-m", "IPython", "--no-banner", "--quick", "--HistoryManager.hist_file=:memory:"],
    )
    assert done.returncode == 0, done.stderr
    assert [method for _, _, method in calls(home, sealed_run(home).run_id)] == ["log"]


def test_a_kernel_by_hand_records_cells_by_their_ids_and_survives_an_interrupt(
    by_hand: ByHand, workspace: Path, home: Path
) -> None:
    assert by_hand.run(f"{QUERY}q.ref", "load") == "'Q1'"
    assert "Q1" in by_hand.run("q", "show")
    assert by_hand.run('lg.cell("Q1.r0.amount")', "look") == "Decimal('100.25')"
    assert "CallRefused" in by_hand.run('lg.query("nowhere", "select 1")', "wrong")
    interrupted = by_hand.run(
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))\n"
        'lg.query("shop", "select count(*) from range(100000) a, range(100000) b")',
        "slow",
    )
    assert interrupted.startswith("KeyboardInterrupt")
    threads = """
import threading
threads = [threading.Thread(target=lg.log, args=(f"thread {n}",)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    assert by_hand.run(f"{threads}", "threads") == ""
    assert by_hand.run('lg.log("again")', "load") == ""
    by_hand.end()
    record = sealed_run(home)
    assert [call for call in calls(home, record.run_id) if call[0] != "slow"] == [
        ("load", 0, "query"),
        ("look", 0, "cell"),
        *[("threads", n, "log") for n in range(4)],
        ("load-8", 0, "log"),
    ]
    with Store.open(Home(home)) as store:
        assert verify_run(store, record.run_id).ok


def test_a_runtime_that_cannot_start_says_why(workspace: Path, home: Path) -> None:
    (workspace / "learngraph.toml").write_text("[wrong\n")
    done = script(workspace, QUERY)
    assert done.returncode == 1
    assert "learngraph.toml" in done.stderr.splitlines()[-1]


def test_importing_needs_only_the_standard_library() -> None:
    code = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top != "learngraph_kernel":
            raise ImportError(f"{name} is not of the standard library")
sys.meta_path.insert(0, Only())
before = set(sys.modules)
import learngraph_kernel as lg
assert callable(lg.query) and callable(lg.report)
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(sorted(foreign))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "['learngraph_kernel']\n", done.stderr
