"""What is killed in test_crash.py: for each line it reads it forks a child that takes a run of 30 calls to its end.

The parent has everything imported, so that an attempt costs what a run costs and not what Python costs. A child writes
into a journal that outlives it: `did CALL` when a call really happens, `got CALL ANSWER` when it was acknowledged.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import nbformat

from learngraph_kernel.broker.methods import METHODS, method_named
from learngraph_kernel.broker.recording import Recording
from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.canonical import digest
from learngraph_kernel.data.workspace import find_workspace
from learngraph_kernel.runs.again import finish_closed
from learngraph_kernel.runs.closing import Closing, close_run
from learngraph_kernel.runs.declaration import Declaration
from learngraph_kernel.runs.lifecycle import begin_run, new_state, new_ticket, take_over
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.runs.recorder import CellRecorder
from learngraph_kernel.store.database import Home, Store

ACTOR = "user:ana"
LONG = "background " * 2000  # arguments that travel as an artifact


def query(sql: str) -> tuple[str, dict[str, Any]]:
    return "query", {"source": "shop", "sql": sql, "parameters": {}}


def ask(question: str) -> tuple[str, dict[str, Any]]:
    return "ask", {"question": question, "context": [{"ref": "Q1"}], "schema": None}


CELLS: list[list[tuple[str, dict[str, Any]]]] = [
    [query("select * from orders order by id"), query("select region from orders order by id")]
    + [("log", {"message": f"step {n}", "fields": {}}) for n in range(3)],
    [("metrics", {"set": "shop", "bindings": {"orders": "Q1"}}), ask("why?"), ("cell", {"ref": "Q1.r0.amount"})]
    + [("cell", {"ref": f"Q1.r{n}.region"}) for n in range(2)],
    [ask(LONG), query("select count(*) as n from orders"), ("cell", {"ref": "Q3.r0.n"})]
    + [("validate", {"value": n, "schema": {"type": "integer"}}) for n in range(2)],
    [query(f"select sum(amount) + {n} as s from orders") for n in range(3)] + [ask("and then?"), ask("and now?")],
    [("card", {"component": "kpi", "data": {"n": n}}) for n in range(2)]
    + [("log", {"message": LONG, "fields": {"n": n}}) for n in range(3)],
    [
        ask("write"),
        query("select max(id) as m from orders"),
        ("log", {"message": "end", "fields": {}}),
        ("report", {"text": "Revenue was [[m:revenue]].", "answer": None}),
        ("output", {"fields": {"revenue": {"ref": "m:revenue"}}}),
    ],
]


class Silent:
    """No progress display."""

    def cell_started(self, cell: Any, index: int, total: int) -> None: ...

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None: ...

    def cell_failed(self, cell: Any, index: int, error: Exception) -> None: ...


def journal_of(path: Path) -> Any:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return lambda line: os.write(descriptor, f"{line}\n".encode())


def name_of(method: str, arguments: dict[str, Any]) -> str:
    return digest({"method": method, "arguments": arguments})


def count_what_happens(write: Any) -> None:
    """Every method says when it really does something; a replayed answer never comes here."""
    for method in map(method_named, METHODS):

        def counted(
            state: Any, ticket: Any, arguments: Any, *, method: Any = method, perform: Any = method.perform
        ) -> Any:
            write(f"did {name_of(method.name, arguments)}")
            return perform(state, ticket, arguments)

        method.perform = counted  # type: ignore[method-assign]


def is_sealed(home: Home, run: str) -> bool:
    with Store.open(home) as store:
        return store.run(run).seal is not None


def attempt(home: Home, workspace: Path, run: str, write: Any) -> None:
    """A new run, or what is left of an earlier one."""
    if run != "-" and (finish_closed(run, actor=ACTOR) is not None or is_sealed(home, run)):
        return
    nb = nbformat.v4.new_notebook()
    nb.cells = [nbformat.v4.new_code_cell(f"# {len(calls)} calls", id=f"c{n}") for n, calls in enumerate(CELLS)]
    found = find_workspace(workspace)
    plan = RunPlan(nb, "crash.ipynb", workspace, found, "python3", Declaration(), {}, formal=True)
    recording: Recording | None = None
    with Store.open(home) as store:
        if run == "-":
            run = begin_run(store, plan, ACTOR)
        else:
            recording = take_over(store, run, ACTOR)
        state = new_state(store, home, plan, run)
        session = RunSession(state, store.ledger, new_ticket("secret", run), actor=ACTOR, recording=recording)
        recorder = CellRecorder(store, session, Silent(), actor=ACTOR)
        for index, (cell, calls) in enumerate(zip(nb.cells, CELLS, strict=True)):
            recorder.cell_started(cell, index, len(nb.cells))
            for method, arguments in calls:
                answer = session.call(method, arguments)
                write(f"got {name_of(method, arguments)} {digest(answer)}")
            recorder.cell_completed(cell, index, 0.0)
        recorder.flush()
        found.close()
        outcome = close_run(Closing(store, home, plan, nb, state, ACTOR), None)
        assert outcome.tier == "formal", outcome


def main() -> None:
    """Lines: workspace, run id or `-`, journal. Answers with the child's process id, then with its status."""
    home = Home.default()
    for line in sys.stdin:
        workspace, run, journal = line.strip().split("\t")
        gc.freeze()  # the children share what is imported instead of copying it when they collect garbage
        child = os.fork()
        if child == 0:
            write = journal_of(Path(journal))
            count_what_happens(write)
            attempt(home, Path(workspace), run, write)
            Path(f"{journal}.modules").write_text("\n".join(sorted(sys.modules)))
            os._exit(0)
        print(child, flush=True)
        sys.stdin.readline()  # until then the child's id stays its own, even if it has ended
        print(os.waitpid(child, 0)[1], flush=True)
        import_what(Path(f"{journal}.modules"))


def import_what(names: Path) -> None:
    """What an attempt imported late, so that the next child finds it there. Nothing is called: no thread is started."""
    for name in names.read_text().splitlines() if names.exists() else []:
        if name not in sys.modules and not name.startswith("__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


main()
