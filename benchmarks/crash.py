"""The crash bar: random `kill -9` of a 30-call run with a real kernel, as many resumes, nothing lost, nothing repeated.

    python benchmarks/crash.py [--kills 200] [--seed 1]

A run is killed at a random moment of its life and resumed until it is done; then the next run begins. One time in five
the moment lies anywhere, otherwise behind the first event of the attempt, since much of an attempt is starting Python.
Every other time the kernel is killed with it; otherwise it is left to itself and must notice. The notebook writes every
answer it gets to a side file, flushed to the disk, so that what was acknowledged is known without asking the ledger.
Prints one JSON object; exit code 1 when the bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import duckdb
import nbformat

from learngraph_kernel.runs.targets import verify_run
from learngraph_kernel.store.database import Home, RunRecord, Store
from learngraph_kernel.store.ledger import check_chain

CALLS = 30
ORPHAN_SECONDS = 10.0
COMMAND = [sys.executable, "-m", "learngraph_kernel.cli"]
FIRST = """
import json, os
import learngraph_kernel as lg

def got(name, answer):
    with open("answers.jsonl", "a") as file:
        file.write(json.dumps([name, answer]) + "\\n")
        file.flush()
        os.fsync(file.fileno())
"""
STEP = """
q = lg.query("shop", "select region, sum(amount) as s from orders where id > :n group by region order by region", n={n})
got("q{n}", [q.ref, q.arrow().to_pylist()[0]["s"].__str__()])
got("c{n}", str(lg.cell(f"{{q.ref}}.r0.s")))
answer = lg.ask("what of {n}?", context=[q])
got("a{n}", [answer.ref, answer.text])
lg.log("step {n}", n={n}); got("l{n}", None)
got("v{n}", lg.validate({n}, {{"type": "integer"}}).valid)
"""
LAST = """
m = lg.metrics("shop", {"orders": q}); got("m", str(m["revenue"].value))
lg.log("one"); got("l-one", None)
lg.log("two"); got("l-two", None)
report = lg.report("Revenue was [[m:revenue]]."); got("report", report.violations)
lg.output(revenue=m["revenue"]); got("output", None)
report
"""
CARD = """
set: shop
metrics:
  - {name: revenue, version: 1.0.0, title: {en: Revenue}, unit: CNY, precision: 2, additivity: sum,
     inputs: {amount: "sum(orders.s)"}, expression: amount, required: true, exact: true}
"""


@dataclass
class Figures:
    """What is printed."""

    kills: int = 0
    resumes: int = 0
    runs: int = 0
    killed_before_the_run_began: int = 0
    acknowledged_answers: int = 0
    lost: int = 0
    answered_calls_that_happened_again: int = 0
    unanswered_calls_that_happened_again: int = 0
    chains_broken: int = 0
    not_verified: int = 0
    other_content: int = 0
    longest_orphan_seconds: float = 0.0
    undisturbed_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        wrong = self.lost, self.answered_calls_that_happened_again, self.chains_broken, self.not_verified
        return any(wrong) or bool(self.other_content) or bool(self.problems)


def make_workspace(root: Path) -> Path:
    """A workspace with a source, a card, a scripted model and the notebook; returns the notebook."""
    (root / "metrics").mkdir(parents=True)
    with duckdb.connect(str(root / "shop.duckdb")) as connection:
        connection.execute("create table orders as select i as id, 'r' || i % 3 as region, (i * 1.25)::decimal(18, 2) "
                           "as amount from range(1000) t(i)")  # fmt: skip
    models = '[models.default]\nadapter = "scripted"\nscript = "model.yaml"\n'
    (root / "learngraph.toml").write_text(f'[sources.shop]\nkind = "duckdb"\npath = "shop.duckdb"\n{models}')
    (root / "model.yaml").write_text("model: scripted\nrules:\n  - name: any\n    steps:\n      - text: as you say\n")
    (root / "metrics" / "shop.yaml").write_text(CARD)
    steps = [STEP.format(n=n) for n in range(1, 6)]
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    nb.cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate([FIRST, *steps, LAST])]
    path = root / "crash.ipynb"
    path.write_text(nbformat.writes(nb))
    return path


def children(pid: int) -> list[int]:
    """Process ids whose parent is `pid` (proc(5))."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                if int(text[text.rindex(")") + 2 :].split()[1]) == pid:
                    found.append(int(entry.name))
    return found


def gone_after(pids: list[int]) -> float:
    """Seconds until none of the processes is left, at most `ORPHAN_SECONDS`."""
    begin = time.monotonic()
    while time.monotonic() - begin < ORPHAN_SECONDS:
        if not any(alive(pid) for pid in pids):
            break
        time.sleep(0.02)
    return time.monotonic() - begin


def alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text[text.rindex(")") + 2] not in "ZX"


@dataclass
class Bench:
    """One workspace, its runs and the figures so far; `window` is how long the last undisturbed attempt went on."""

    path: Path
    chance: random.Random
    window: float = 3.0
    figures: Figures = field(default_factory=Figures)

    def attempt(self, words: list[str], seconds: float | None, begun: Callable[[], bool]) -> int | None:
        """Runs a command, killed `seconds` after it has begun unless it is quicker; its exit code, None when killed."""
        said = (
            self.path.parent / "said"
        )  # a file: the kernel inherits it, and a pipe would stay open as long as that lives
        with said.open("wb") as file:
            process = subprocess.Popen(
                [*COMMAND, *words, "--json"],
                cwd=self.path.parent,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while process.poll() is None and seconds is not None and not begun():
            time.sleep(0.02)
        begin = time.monotonic()
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill(process)
            return None
        if begun():
            self.window = time.monotonic() - begin
        if process.returncode != 0:
            self.figures.problems.append(f"{words[0]} gave {process.returncode}: {said.read_text()[-2000:]}")
        return process.returncode

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        kernels = children(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        if self.figures.kills % 2 == 0:
            for kernel in kernels:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(kernel, signal.SIGKILL)
        process.wait()
        self.figures.kills += 1
        lived = gone_after(kernels)
        self.figures.longest_orphan_seconds = max(self.figures.longest_orphan_seconds, round(lived, 2))
        if lived >= ORPHAN_SECONDS:
            self.figures.problems.append("a kernel outlived its killed run")

    def one_run(self, store: Store, kills: int, content: str) -> None:
        """One run, killed and resumed until it is done, and checked."""
        answers = self.path.parent / "answers.jsonl"
        answers.unlink(missing_ok=True)
        before = {record.run_id for record in store.runs()}
        run, code = None, None
        while code is None:
            words = ["run", str(self.path), "--formal"] if run is None else ["resume", run]
            seconds = self.chance.random() * self.window if self.figures.kills < kills else None
            at_once, known = self.chance.random() < 0.2, store.ledger.count(run) if run else 0
            code = self.attempt(words, seconds, lambda: at_once or self.has_begun(store, before, known))  # noqa: B023
            new = [record.run_id for record in store.runs() if record.run_id not in before]
            if run is None and not new:
                self.figures.killed_before_the_run_began += 1
            run = run or (new[0] if new else None)
            if run is not None and (record := store.run(run)).status == "completed" and record.seal is not None:
                code = 0  # killed between its seal and its exit
        assert run is not None
        self.check(store, store.run(run), answers, content)

    def has_begun(self, store: Store, before: set[str], known: int) -> bool:
        """Whether the newest run is none of those before and has more events than it had."""
        newest = store.runs(limit=1)
        return bool(newest) and newest[0].run_id not in before and newest[0].events > known

    def check(self, store: Store, record: RunRecord, answers: Path, content: str) -> None:
        figures = self.figures
        figures.runs += 1
        events = list(store.ledger.events(record.run_id))
        figures.resumes += sum(event.type == "run.resumed" for event in events)
        figures.chains_broken += check_chain(events) != store.ledger.head(record.run_id)
        figures.not_verified += not verify_run(store, record.run_id).ok
        figures.other_content += record.content_hash != content
        completed: Counter[tuple[str, int]] = Counter()
        started: Counter[tuple[str, int]] = Counter()
        for event in events:
            call = (event.data.get("cell"), event.data.get("position"))
            if event.type == "call.started":
                figures.answered_calls_that_happened_again += completed[call] > 0
                figures.unanswered_calls_that_happened_again += started[call] > 0
                started[call] += 1
            elif event.type == "call.completed":
                completed[call] += 1
        if len(completed) != CALLS or set(completed.values()) != {1}:
            figures.problems.append(f"{record.run_id} has {len(completed)} calls, some {max(completed.values())} times")
        first: dict[str, object] = {}
        for line in answers.read_text().splitlines():
            name, answer = json.loads(line)
            figures.lost += first.setdefault(name, answer) != answer
        figures.lost += len(first) > len(completed)
        figures.acknowledged_answers += len(first)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lg-crash-") as folder:
        os.environ["LEARNGRAPH_HOME"] = str(Path(folder) / "home")
        bench = Bench(make_workspace(Path(folder) / "workspace"), random.Random(options.seed))
        begin = time.monotonic()
        if bench.attempt(["run", str(bench.path), "--formal"], None, lambda: False) != 0:
            print(json.dumps(asdict(bench.figures), indent=2))
            return 1
        bench.figures.undisturbed_seconds = round(time.monotonic() - begin, 2)
        with Store.open(Home.default()) as store:
            (undisturbed,) = store.runs()
            assert undisturbed.content_hash is not None
            while bench.figures.kills < options.kills and not bench.figures.problems:
                bench.one_run(store, options.kills, undisturbed.content_hash)
    print(json.dumps(asdict(bench.figures), indent=2))
    return int(bench.figures.bad)


if __name__ == "__main__":
    sys.exit(main())
