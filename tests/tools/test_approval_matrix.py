"""Nothing happens without a person's word for exactly it: every way to misuse an approval × every kind of effect.

Each test counts what has really happened, in a file, a folder or at a server outside of the desk.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable

import pytest

from learngraph_kernel.tools.errors import (
    EditedApproval,
    ExpiredApproval,
    ForeignApproval,
    ReplayedApproval,
    StaleApproval,
    ToolTicketRefused,
    UnknownApproval,
)
from learngraph_kernel.tools.values import Allowed, Effect, NeedsApproval, Refused, ToolTicket
from tests.tools.world import ANA, BOB, KINDS, Kind, World, altered, context, kind, runs

UNKNOWN = "a_" + "0" * 32


@pytest.fixture(params=KINDS)
def effect(request: pytest.FixtureRequest, world: World) -> Kind:
    return kind(request.param, world)


@runs
async def test_an_unknown_approval_or_ticket_opens_nothing(world: World, effect: Kind) -> None:
    await world.ask(effect)
    with pytest.raises(UnknownApproval):
        await world.desk.approvals.decide(ANA, UNKNOWN, "approve", "0" * 64)
    with pytest.raises(UnknownApproval):
        await world.desk.decided(world.scope(), UNKNOWN)
    made_up = ToolTicket(
        "t_" + "0" * 32, "c_1", effect.spec.name, "1", "0" * 64, frozenset({Effect.READ}), None, 4_000_000_000.0
    )
    with pytest.raises(ToolTicketRefused):
        await world.desk.execute(context(world.scope(), made_up), {"what": effect.what})
    assert effect.happened() == []


@runs
async def test_an_approval_is_stale_when_the_tool_has_changed_since(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    await world.approve(approval)
    world.registry.remove(effect.spec.name)
    world.registry.add(effect.tool(description="Does something else."))
    with pytest.raises(StaleApproval):
        await world.desk.decided(world.scope(), approval.id)
    refused = await world.refused(effect.spec.name, {"what": effect.what})
    assert (refused.status, refused.data["code"]) == ("refused", "approval_stale")
    assert effect.happened() == []


@runs
async def test_a_replayed_approval_opens_nothing_again(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    await world.approve(approval)
    allowed = await world.allowed(approval)
    first = await world.execute(allowed)
    assert first.status == "ok"
    with pytest.raises(ReplayedApproval):
        await world.approve(approval)
    with pytest.raises(ReplayedApproval):
        await world.desk.decided(world.scope(), approval.id)
    again = await world.execute(allowed)
    assert (again.data, again.meta["replayed"]) == (first.data, True)
    for changes in ({"call_id": "c_2"}, {"id": "t_" + "1" * 32}, {"arguments_hash": "1" * 64}):
        with pytest.raises(ToolTicketRefused):
            await world.desk.execute(context(world.scope(), altered(allowed.ticket, **changes)), allowed.arguments)
    assert effect.happened() == [effect.what]


@runs
async def test_an_expired_approval_cannot_be_decided_or_used(world: World, effect: Kind) -> None:
    undecided, decided = await world.ask(effect), await world.ask(effect, "c_2", effect.other)
    await world.approve(decided)
    world.clock.turn(hours=1.1)
    with pytest.raises(ExpiredApproval):
        await world.desk.decided(world.scope(), decided.id)
    world.clock.turn(hours=24)
    with pytest.raises(ExpiredApproval):
        await world.approve(undecided)
    with pytest.raises(ExpiredApproval):
        await world.desk.decided(world.scope(), undecided.id)
    verdict = await world.desk.consider(world.scope(), "c_1", effect.spec.name, {"what": effect.what})
    assert isinstance(verdict, Refused)
    assert (verdict.result.status, verdict.result.data["code"]) == ("refused", "approval_expired")
    assert set(await world.desk.approvals.expire()) == {undecided.id, decided.id}
    assert effect.happened() == []


@runs
async def test_edited_arguments_are_asked_anew(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    with pytest.raises(EditedApproval):
        await world.desk.approvals.decide(ANA, approval.id, "approve", "0" * 64)
    decide = world.desk.approvals.decide
    new = await decide(ANA, approval.id, "edit", approval.exact.hash, arguments={"what": effect.other})
    with pytest.raises(ReplayedApproval):
        await world.approve(approval)
    with pytest.raises(EditedApproval):
        await decide(ANA, new.id, "approve", approval.exact.hash)
    assert await world.desk.decided(world.scope(), approval.id) == NeedsApproval(new.id)
    assert await world.desk.decided(world.scope(), new.id) == NeedsApproval(new.id)
    assert effect.happened() == []

    await world.approve(new)
    allowed = await world.allowed(new)
    with pytest.raises(ToolTicketRefused):
        await world.desk.execute(context(world.scope(), allowed.ticket), {"what": effect.what})
    assert effect.happened() == []
    await world.execute(allowed)
    assert effect.happened() == [effect.other]


@runs
async def test_another_user_decides_and_uses_nothing(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    for choice in ("approve", "reject"):
        with pytest.raises(ForeignApproval):
            await world.desk.approvals.decide(BOB, approval.id, choice, approval.exact.hash)
    assert await world.desk.approvals.listed(BOB) == []
    await world.approve(approval)
    for scope in (world.scope(BOB), world.scope(turn="n_2"), world.scope(agent="helper")):
        with pytest.raises(ForeignApproval):
            await world.desk.decided(scope, approval.id)
    allowed = await world.allowed(approval)
    for scope in (world.scope(BOB), world.scope(turn="n_2"), world.scope(agent="helper")):
        with pytest.raises(ToolTicketRefused):
            await world.execute(allowed, scope)
    assert effect.happened() == []


@runs
async def test_after_a_restart_exactly_what_was_approved_happens_once(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    world.restart()
    await world.approve(approval)
    world.restart()
    await world.allowed(approval)
    world.restart()  # between the consumption of the approval and the call
    allowed = await world.allowed(approval)
    assert allowed.arguments == {"what": effect.what}
    first = await world.execute(allowed)
    assert (first.status, effect.happened()) == ("ok", [effect.what])
    world.restart()
    with pytest.raises(ReplayedApproval):
        await world.approve(approval)
    again = await world.execute(await world.allowed(approval))
    assert (again.data, again.meta["replayed"]) == (first.data, True)
    verdict = await world.desk.consider(world.scope(), "c_1", effect.spec.name, {"what": effect.what})
    assert isinstance(verdict, Allowed)
    assert (await world.execute(verdict)).meta["replayed"] is True
    assert effect.happened() == [effect.what]


@runs
async def test_a_double_click_counts_once(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)

    async def outcomes(*coroutines: Awaitable[object]) -> list[object]:
        return await asyncio.gather(*coroutines, return_exceptions=True)

    clicks = await outcomes(*(world.approve(approval) for _ in range(4)))
    assert sorted(type(click).__name__ for click in clicks) == ["Approval", *["ReplayedApproval"] * 3]
    uses = await outcomes(*(world.desk.decided(world.scope(), approval.id) for _ in range(4)))
    assert sorted(type(use).__name__ for use in uses) == ["Allowed", *["ReplayedApproval"] * 3]
    allowed = next(use for use in uses if isinstance(use, Allowed))
    results = await outcomes(*(world.execute(allowed) for _ in range(4)))
    assert {getattr(result, "status", result) for result in results} == {"ok"}
    assert effect.happened() == [effect.what]


@runs
async def test_of_an_approval_and_a_rejection_at_once_one_counts(world: World, effect: Kind) -> None:
    approval = await world.ask(effect)
    reject = world.desk.approvals.decide(ANA, approval.id, "reject", approval.exact.hash)
    said = await asyncio.gather(reject, world.approve(approval), return_exceptions=True)
    assert sum(isinstance(answer, ReplayedApproval) for answer in said) == 1
    now = await world.desk.approvals.find(approval.id)
    verdict = await world.desk.decided(world.scope(), approval.id)
    assert isinstance(verdict, Allowed if now.state == "approved" else Refused)
    assert effect.happened() == []


@runs
async def test_of_two_pending_only_the_one_that_was_decided_happens(world: World, effect: Kind) -> None:
    first, second = await world.ask(effect), await world.ask(effect, "c_2", effect.other)
    with pytest.raises(EditedApproval):
        await world.desk.approvals.decide(ANA, second.id, "approve", first.exact.hash)
    await world.approve(second)
    assert await world.desk.decided(world.scope(), first.id) == NeedsApproval(first.id)
    allowed = await world.allowed(second)
    crossed = dataclasses.replace(allowed.ticket, call_id="c_1", arguments_hash=first.exact.hash)
    with pytest.raises(ToolTicketRefused):
        await world.desk.execute(context(world.scope(), crossed), first.exact.value)
    await world.execute(allowed)
    assert effect.happened() == [effect.other]
    assert [approval.id for approval in await world.desk.approvals.listed(ANA)] == [first.id]


@runs
async def test_a_new_message_while_pending_withdraws_what_was_asked_and_allowed(world: World, effect: Kind) -> None:
    pending, approved = await world.ask(effect), await world.ask(effect, "c_2", effect.other)
    used = await world.ask(effect, "c_3", effect.what)
    for approval in (approved, used):
        await world.approve(approval)
    ticketed = await world.allowed(used)
    ended = await world.desk.withdraw("s_1", "n_1", by=ANA)
    assert set(ended) == {pending.id, approved.id, used.id}
    with pytest.raises(StaleApproval):
        await world.approve(pending)
    for approval in (pending, approved, used):
        with pytest.raises(StaleApproval):
            await world.desk.decided(world.scope(), approval.id)
    with pytest.raises(ToolTicketRefused, match="its turn was stopped"):
        await world.execute(ticketed)
    assert effect.happened() == []
