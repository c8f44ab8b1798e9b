"""`kill -9` at any moment of a run: no acknowledged answer is lost, no answered call happens again, the seal comes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from learngraph_kernel.runs.targets import verify_run
from learngraph_kernel.store.database import RunRecord, Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.ledger import check_chain

KILLS = 200
CALLS = 30
MODEL = "model: scripted\nrules:\n  - name: any\n    steps:\n      - text: as you say\n"


@dataclass
class Forge:
    """The process that forks attempts, and when it killed them."""

    process: subprocess.Popen[str]
    workspace: Path
    chance: random.Random
    kills: int = 0

    def attempt(self, run: str, journal: Path, *, kill: bool = True) -> bool:
        """One attempt, killed at a random moment unless it is quicker; whether it came to its end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        known = answers_in(journal)
        print(self.workspace, run, journal, sep="\t", file=self.process.stdin, flush=True)
        child = int(self.process.stdout.readline())
        if kill:
            self.wait_for_a_moment(child, journal, known + self.chance.randrange(1, 8))
            os.kill(child, signal.SIGKILL)  # a child that has ended stays a zombie until it is asked about
        print(file=self.process.stdin, flush=True)
        status = int(self.process.stdout.readline())
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            self.kills += 1
            return False
        assert status == 0, "an attempt failed: see standard error"
        return True

    def wait_for_a_moment(self, child: int, journal: Path, answers: int) -> None:
        """Until so many answers are acknowledged or the run is at its end, and then somewhere in what comes next.

        One time in five the moment lies anywhere from the very start on.
        """
        if self.chance.random() < 0.2:
            answers = 0
        while not ended(child) and answers_in(journal) < min(answers, CALLS):
            time.sleep(0.003)
        time.sleep(self.chance.random() * (0.01 if 0 < answers < CALLS else 0.3))


@pytest.fixture
def quick_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory where there is such a place: what a killed *process* leaves behind does not depend on the disk."""
    memory = Path("/dev/shm")
    parent = str(memory) if os.access(memory, os.W_OK) else str(tmp_path)
    with tempfile.TemporaryDirectory(prefix="lg-crash-", dir=parent) as folder:
        monkeypatch.setenv("LEARNGRAPH_HOME", folder)
        yield Path(folder)


@pytest.fixture
def forge(quick_home: Path, workspace: Path) -> Iterator[Forge]:
    with (workspace / "learngraph.toml").open("a") as file:
        file.write('[models.default]\nadapter = "scripted"\nscript = "model.yaml"\n')
    (workspace / "model.yaml").write_text(MODEL)
    child = Path(__file__).with_name("crash_child.py")
    process = subprocess.Popen([sys.executable, str(child)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield Forge(process, workspace, random.Random(20261201))
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=10)


def ended(child: int) -> bool:
    """Whether a process is a zombie (proc(5))."""
    text = Path(f"/proc/{child}/stat").read_text()
    return text[text.rindex(")") + 2] == "Z"


def lines_of(journal: Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


def answers_in(journal: Path) -> int:
    return len({line for line in lines_of(journal) if line.startswith("got")})


def check_journal(store: Store, run: str, journal: Path) -> None:
    """Nothing acknowledged is missing from the ledger or has another answer; nothing happened after it was answered."""
    answers: dict[str, str] = {}
    for kind, call, *answer in map(str.split, lines_of(journal)):
        if kind == "did":
            assert call not in answers, f"call {call} was answered and happened again"
        else:
            assert answers.setdefault(call, answer[0]) == answer[0], f"call {call} got two answers"
    completed = [event.data["arguments_hash"] for event in store.ledger.events(run, types=["call.completed"])]
    assert answers.keys() <= set(completed), "an acknowledged answer is lost"
    assert len(completed) == len(set(completed)), "a call is recorded twice"


def check_end(store: Store, record: RunRecord) -> None:
    """The run is whole, sealed once, and verifies."""
    assert check_chain(store.ledger.events(record.run_id)) == store.ledger.head(record.run_id)
    assert len(list(store.ledger.events(record.run_id, types=["call.completed"]))) == CALLS
    assert len(list(store.ledger.events(record.run_id, types=["run.sealed"]))) == 1
    verification = verify_run(store, record.run_id)
    assert verification.ok, verification


def test_two_hundred_kills_lose_nothing_and_repeat_nothing(forge: Forge, quick_home: Path, tmp_path: Path) -> None:
    for _ in range(2):  # the first one imports
        assert forge.attempt("-", tmp_path / "undisturbed", kill=False)
    with Store.open(Home(quick_home)) as store:
        undisturbed, cold = store.runs()
        check_end(store, undisturbed)
        finished = {undisturbed.run_id, cold.run_id}
        while forge.kills < KILLS:
            journal, run, done = tmp_path / f"journal-{len(finished)}", "-", False
            while not done and forge.kills < KILLS:
                done = forge.attempt(run, journal)
                newest = store.runs(limit=1)[0]
                if newest.run_id not in finished:
                    run = newest.run_id
                    check_journal(store, run, journal)
            if not done:
                forge.attempt(run, journal, kill=False)
                run = store.runs(limit=1)[0].run_id
            record = store.run(run)
            check_end(store, record)
            assert record.content_hash == undisturbed.content_hash
            finished.add(run)
        resumes = sum(len(list(store.ledger.events(run, types=["run.resumed"]))) for run in finished)
    print(f"{forge.kills} kills, {len(finished)} runs, {resumes} resumes")
    assert resumes > KILLS / 2
