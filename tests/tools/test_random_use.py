"""Any order of asking, deciding, using, stopping, restarting and waiting: an effect needs a word of its own, once."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from learngraph_kernel.tools.approval_record import Approval
from learngraph_kernel.tools.errors import ApprovalError, ToolTicketRefused
from learngraph_kernel.tools.values import Allowed, CallContext, Effect, Tool, ToolResult
from tests.tools.world import ANA, BOB, World, context, runs, spec

WORDS = ("tea", "milk")
STEPS = 300


class Walk:
    """Does one thing after the other at random, and keeps beside the desk what was approved and what was withdrawn."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world, self.chance = world, chance
        self.happened: list[tuple[str, str]] = []
        self.approved: set[tuple[str, str]] = set()
        self.withdrawn: set[str] = set()
        self.allowed: list[Allowed] = []
        self.calls = 1
        world.registry.add(Tool(spec("send", {Effect.OUTSIDE_WRITE}, mode="ask"), self.handler))

    async def handler(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        self.happened.append((context.ticket.call_id, arguments["what"]))
        return ToolResult("ok", arguments["what"])

    async def go(self) -> None:
        """One step, and what must hold after it."""
        steps = (
            *[self.consider] * 3,
            self.decide,
            self.decide,
            self.use,
            self.use,
            self.execute,
            self.execute,
            self.other,
        )
        # A refusal is one of the things that may happen; what must not is looked for below.
        with contextlib.suppress(ApprovalError, ToolTicketRefused):
            await self.chance.choice(steps)()
        assert set(self.happened) <= self.approved
        assert max(Counter(call_id for call_id, _ in self.happened).values(), default=1) == 1
        assert not self.withdrawn & {call_id for call_id, _ in self.happened}

    async def consider(self) -> None:
        self.calls += self.chance.random() < 0.5
        call_id = f"c_{self.chance.randint(max(1, self.calls - 1), self.calls)}"
        verdict = await self.world.desk.consider(
            self.world.scope(), call_id, "send", {"what": self.chance.choice(WORDS)}
        )
        if isinstance(verdict, Allowed):
            self.allowed.append(verdict)

    async def decide(self) -> None:
        approval = await self.some("pending")
        if approval is None:
            return
        owner = BOB if self.chance.random() < 0.1 else ANA
        seen = "0" * 64 if self.chance.random() < 0.1 else approval.exact.hash
        choice: Any = self.chance.choice(["approve"] * 5 + ["reject", "edit", "respond"])
        more = {"edit": {"arguments": {"what": self.chance.choice(WORDS)}}, "respond": {"text": "no"}}.get(choice, {})
        await self.world.desk.approvals.decide(owner, approval.id, choice, seen, **more)  # type: ignore[arg-type]
        assert (owner, seen) == (ANA, approval.exact.hash)
        if choice == "approve":
            self.approved.add((approval.call_id, approval.exact.value["what"]))

    async def use(self) -> None:
        approval = await self.some("approved")
        if approval is None:
            return
        owner = BOB if self.chance.random() < 0.1 else ANA
        verdict = await self.world.desk.decided(self.world.scope(owner), approval.id)
        if isinstance(verdict, Allowed):
            assert owner == ANA
            self.allowed.append(verdict)

    async def execute(self) -> None:
        if not self.allowed:
            return
        allowed = self.chance.choice(self.allowed[-3:])
        arguments = {"what": self.chance.choice(WORDS)} if self.chance.random() < 0.2 else allowed.arguments
        scope = self.world.scope(BOB if self.chance.random() < 0.1 else ANA)
        await self.world.desk.execute(context(scope, allowed.ticket), arguments)

    async def other(self) -> None:
        what = self.chance.random()
        if what < 0.4:
            self.world.restart()
        elif what < 0.7:
            self.world.clock.turn(hours=self.chance.choice([*[0.01] * 6, 2, 30]))
        elif what < 0.85:
            made = {call_id for call_id, _ in self.happened}
            open_ones = {a.call_id for a in await self.all() if a.state in {"pending", "approved", "consumed"}}
            self.withdrawn |= open_ones - made
            await self.world.desk.withdraw("s_1")

    async def all(self) -> list[Approval]:
        return await self.world.desk.approvals.listed(ANA, None)

    async def some(self, likely: str) -> Approval | None:
        """Any record, but more often one in a state in which something can happen to it."""
        found = await self.all()
        apt = [approval for approval in found if approval.state == likely]
        chosen = apt if apt and self.chance.random() < 0.8 else found
        return self.chance.choice(chosen) if chosen else None


@pytest.mark.parametrize("seed", range(4))
@runs
async def test_in_any_order_an_effect_needs_a_word_of_its_own_and_happens_once(world: World, seed: int) -> None:
    walk = Walk(world, random.Random(seed))
    for _ in range(STEPS):
        await walk.go()
    assert len(walk.happened) >= 5  # else the walk has shown nothing
    assert walk.withdrawn
