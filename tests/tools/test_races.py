"""What is checked before a transaction is checked in it again: the world may change in between."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from learngraph_kernel.store.schema import tool_approvals, tool_tickets
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools import approval_rows, tickets
from learngraph_kernel.tools.approval_record import Approval
from learngraph_kernel.tools.approvals import TO_USE
from learngraph_kernel.tools.errors import (
    ApprovalError,
    EditedApproval,
    ExpiredApproval,
    ForeignApproval,
    ReplayedApproval,
    StaleApproval,
    ToolTicketRefused,
)
from learngraph_kernel.tools.transactions import transact
from learngraph_kernel.tools.values import Allowed
from tests.tools.world import ANA, BOB, World, kind, runs


def decide(world: World, seen: Approval, owner: str = ANA, hash: str | None = None) -> None:
    """The transaction of a decision alone, over a record as it was read some time ago."""

    def work(batch: Batch) -> None:
        approval_rows.decide(
            batch, seen, owner, "approve", hash or seen.exact.hash, grant="allow_once", text="", usable=TO_USE
        )

    transact(world.store, owner, work)


def consume(world: World, seen: Approval) -> None:
    transact(world.store, ANA, lambda batch: approval_rows.consume(batch, seen))


@runs
async def test_a_decision_holds_only_over_what_the_record_still_is(world: World) -> None:
    seen = await world.ask(kind("outside_write", world))
    with pytest.raises(EditedApproval):
        decide(world, seen, hash="0" * 64)
    with pytest.raises(ForeignApproval):
        decide(world, seen, BOB)
    world.clock.turn(hours=25)
    with pytest.raises(ExpiredApproval):
        decide(world, seen)
    world.clock.turn(hours=-25)
    await world.desk.withdraw("s_1")
    with pytest.raises(StaleApproval):
        decide(world, seen)
    (state,) = world.store.scalars(select(tool_approvals.c.state))
    assert state == "withdrawn"


@runs
async def test_an_approval_is_used_only_while_it_still_is_one(world: World) -> None:
    effect = kind("outside_write", world)
    pending = await world.ask(effect)
    with pytest.raises(StaleApproval):
        consume(world, pending)
    approved = await world.approve(pending)
    world.clock.turn(hours=2)
    with pytest.raises(ExpiredApproval):
        consume(world, approved)
    world.clock.turn(hours=-2)
    consume(world, approved)
    with pytest.raises(ReplayedApproval):
        consume(world, approved)


@runs
async def test_a_consumed_approval_whose_call_never_began_runs_out_as_well(world: World) -> None:
    effect = kind("outside_write", world)
    approval = await world.ask(effect)
    await world.approve(approval)
    await world.allowed(approval)
    world.restart()
    world.clock.turn(hours=2)
    with pytest.raises(ExpiredApproval):
        await world.desk.decided(world.scope(), approval.id)
    assert effect.happened() == []


@runs
async def test_a_ticket_is_used_once_whoever_reads_its_row_first(world: World) -> None:
    effect = kind("outside_write", world)
    approval = await world.ask(effect)
    await world.approve(approval)
    allowed = await world.allowed(approval)
    (row,) = world.store.rows(select(tool_tickets))

    def use(batch: Batch) -> None:
        tickets.use(batch, row, allowed.ticket, row["authorisation_hash"])

    transact(world.store, ANA, use)
    with pytest.raises(ToolTicketRefused):
        transact(world.store, ANA, use)
    with pytest.raises(ToolTicketRefused, match="used before"):
        await world.execute(allowed)
    assert effect.happened() == []


@runs
async def test_nobody_is_asked_where_nobody_may_decide(world: World) -> None:
    kind("outside_write", world)
    world.desk._approvers = lambda scope: ()
    assert (await world.refused("send", {"what": "x"})).data["code"] == "unattended"


PROCESS = """
import asyncio, sys
from pathlib import Path
from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.tools.approvals import Approvals
from learngraph_kernel.tools.errors import ApprovalError
from learngraph_kernel.tools.redaction import Redactor
from learngraph_kernel.tools.registry import Registry
home, approval, hash, choice = sys.argv[1:]
with Store.open(Home(Path(home))) as store:
    approvals = Approvals(store, Registry(), Redactor())
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(asyncio.run(approvals.decide("user:ana", approval, choice, hash)).state)
    except ApprovalError as error:
        print(error.code)
"""


def test_of_several_processes_one_decides(world: World) -> None:
    approval = asyncio.run(world.ask(kind("outside_write", world)))
    command = [sys.executable, "-c", PROCESS, str(world.home.root), approval.id, approval.exact.hash]
    children = [
        subprocess.Popen(
            [*command, choice],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for choice in ("approve", "reject", "approve")
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    said = sorted(child.communicate(timeout=30)[0].strip() for child in children)
    assert said.count("approval_replayed") == 2
    assert asyncio.run(world.desk.approvals.find(approval.id)).state in said


@runs
async def test_a_withdrawal_and_a_use_at_once_leave_no_effect_that_was_withdrawn(world: World) -> None:
    effect = kind("outside_write", world)
    for number in range(5):
        approval = await world.ask(effect, f"c_{number}")
        await world.approve(approval)
        use, ended = await asyncio.gather(
            world.desk.decided(world.scope(), approval.id), world.desk.withdraw("s_1"), return_exceptions=True
        )
        assert isinstance(ended, list)
        if isinstance(use, Allowed):
            with pytest.raises((ToolTicketRefused, ApprovalError)):
                await world.execute(use)
        else:
            assert isinstance(use, StaleApproval)
    assert effect.happened() == []
