"""`kill -9` between the use of a ticket and its result: what may have happened is never done again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.errors import ReplayedApproval
from learngraph_kernel.tools.values import Allowed, ToolResult
from tests.tools.killed_child import desk, scope_in
from tests.tools.world import context, runs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def start(home: Path, workspace: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.tools.killed_child", str(home), str(workspace), how]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def killed_while_waiting(home: Path, workspace: Path, how: str) -> None:
    child = start(home, workspace, how)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    child.kill()
    child.wait(timeout=10)
    child.stdout.close()


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def again(made: Desk, workspace: Path, call_id: str) -> ToolResult:
    """What a new process makes of a call: considers it, and executes what it is given."""
    scope = scope_in(workspace)
    verdict = await made.consider(scope, call_id, "act", {"what": call_id})
    assert isinstance(verdict, Allowed), verdict
    return await made.execute(context(scope, verdict.ticket), verdict.arguments)


@pytest.mark.parametrize(("how", "happened"), [("before", []), ("after", ["c_0"])])
@runs
async def test_a_killed_call_has_an_unknown_outcome_and_is_never_made_again(
    home: Path, workspace: Path, how: str, happened: list[str]
) -> None:
    killed_while_waiting(home, workspace, how)
    store, made = desk(home, workspace, how, waits=False)
    with store:
        (approval,) = await made.approvals.listed("user:ana", state="consumed")
        allowed = await made.decided(scope_in(workspace), approval.id)
        assert isinstance(allowed, Allowed)
        first = await made.execute(context(scope_in(workspace), allowed.ticket), allowed.arguments)
        assert (first.status, first.data["code"]) == ("error", "outcome_unknown")
        with pytest.raises(ReplayedApproval):
            await made.approvals.decide("user:ana", approval.id, "approve", approval.exact.hash)
        second = await again(made, workspace, "c_0")
        assert (second.data, second.meta["replayed"]) == (first.data, True)
    assert lines(workspace / "done") == happened


@runs
async def test_a_killed_call_that_only_reads_runs_again(home: Path, workspace: Path) -> None:
    killed_while_waiting(home, workspace, "read")
    store, made = desk(home, workspace, "read", waits=False)
    with store:
        assert (await again(made, workspace, "c_0")).status == "ok"
        assert (await again(made, workspace, "c_0")).meta["replayed"] is True
    assert lines(workspace / "done") == ["c_0", "c_0"]


@runs
async def test_while_the_process_that_began_it_lives_nobody_else_makes_the_call(home: Path, workspace: Path) -> None:
    child = start(home, workspace, "before")
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    store, made = desk(home, workspace, "before", waits=False)
    with store:
        result = await again(made, workspace, "c_0")
        assert (result.status, result.data["code"]) == ("error", "call_running")
    child.kill()
    child.wait(timeout=10)
    child.stdout.close()
    assert lines(workspace / "done") == []


def killed_at_a_moment(home: Path, workspace: Path, chance: random.Random) -> None:
    told = workspace / "told"
    child = start(home, workspace, "many")
    deadline = time.monotonic() + 60
    while len(lines(told)) < 4:
        assert time.monotonic() < deadline, "the child makes no calls"
        time.sleep(0.002)
    time.sleep(chance.random() * 0.02)
    child.kill()
    child.wait(timeout=10)
    assert child.stdout is not None
    child.stdout.close()


@pytest.mark.parametrize("round", range(4))
@runs
async def test_after_a_kill_at_any_moment_no_effect_is_missing_or_twice(
    home: Path, workspace: Path, round: int
) -> None:
    killed_at_a_moment(home, workspace, random.Random(round))
    told = lines(workspace / "told")
    before = Counter(lines(workspace / "done"))
    store, made = desk(home, workspace, "many", waits=False)
    with store:
        known = sorted({*told, *before, *(f"c_{number}" for number in range(len(told) + 4))})
        for call_id in known:
            result = await again(made, workspace, call_id)
            count = Counter(lines(workspace / "done"))[call_id]
            if result.status == "ok":
                assert count == 1
            else:
                assert result.data["code"] == "outcome_unknown"
                assert count == before[call_id] <= 1
                assert call_id not in told
