from __future__ import annotations

from typing import Any

import pytest

from learngraph_kernel.tools.errors import BadDecision, UnknownGrant
from learngraph_kernel.tools.values import Allowed, Effect, NeedsApproval
from tests.tools.world import ANA, BOB, Kind, World, kind, runs


async def always(world: World, effect: Kind) -> None:
    """A person allows a call of this tool, and later ones."""
    await world.approve(await world.ask(effect), grant="always")


async def verdict_of(world: World, effect: Kind, call_id: str = "c_2", **scope: Any) -> type:
    verdict = await world.desk.consider(world.scope(**scope), call_id, effect.spec.name, {"what": effect.other})
    return type(verdict)


@runs
async def test_always_lets_later_calls_through_also_with_other_arguments_and_after_a_restart(world: World) -> None:
    effect = kind("mcp", world)
    await always(world, effect)
    world.restart()
    verdict = await world.desk.consider(world.scope(), "c_2", effect.spec.name, {"what": effect.other})
    assert isinstance(verdict, Allowed)
    assert (await world.execute(verdict)).status == "ok"
    assert effect.happened() == [effect.other]


@runs
async def test_allow_once_lets_nothing_later_through(world: World) -> None:
    effect = kind("mcp", world)
    await world.approve(await world.ask(effect))
    assert await verdict_of(world, effect) is NeedsApproval


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2"},
        {"description": "Now also deletes."},
        {"effects": frozenset({Effect.NETWORK})},
        {"authorisation": {"endpoint": "https://evil.example/mcp", "manifest": "0" * 64}},
        {"authorisation": {"endpoint": "https://shop.example/mcp", "manifest": "1" * 64}},
    ],
    ids=str,
)
@runs
async def test_always_lapses_for_good_with_any_change_of_the_tool(world: World, changes: dict[str, Any]) -> None:
    effect = kind("mcp", world)
    await always(world, effect)
    world.registry.remove(effect.spec.name)
    world.registry.add(effect.tool(**changes))
    assert await verdict_of(world, effect) is NeedsApproval
    world.registry.remove(effect.spec.name)
    world.registry.add(effect.tool())
    assert await verdict_of(world, effect, "c_3") is NeedsApproval
    (grant,) = await world.desk.grants.listed(ANA)
    assert grant.ended_because == "lapsed"


@runs
async def test_always_is_one_person_s_in_one_workspace(world: World) -> None:
    effect = kind("mcp", world)
    await always(world, effect)
    assert await verdict_of(world, effect, owner=BOB, turn="n_2") is NeedsApproval
    elsewhere = world.workspace.parent / "elsewhere"
    elsewhere.mkdir()
    other = await world.desk.consider(
        type(world.scope())(ANA, "s_2", "n_3", "m_3", elsewhere), "c_2", effect.spec.name, {"what": "x"}
    )
    assert isinstance(other, NeedsApproval)
    assert await verdict_of(world, effect) is Allowed


@runs
async def test_a_grant_is_taken_back_by_its_owner_alone(world: World) -> None:
    effect = kind("mcp", world)
    await always(world, effect)
    (grant,) = await world.desk.grants.listed(ANA, world.workspace)
    assert (grant.as_json()["state"], grant.tool) == ("active", effect.spec.name)
    for owner, grant_id in ((BOB, grant.id), (ANA, "g_none")):
        with pytest.raises(UnknownGrant):
            await world.desk.grants.revoke(owner, grant_id)
    assert await verdict_of(world, effect) is Allowed
    await world.desk.grants.revoke(ANA, grant.id)
    await world.desk.grants.revoke(ANA, grant.id)
    assert await verdict_of(world, effect, "c_3") is NeedsApproval
    (ended,) = await world.desk.grants.listed(ANA)
    assert ended.ended_because == "revoked"
    assert await world.desk.grants.listed(BOB) == []


@runs
async def test_where_each_call_is_asked_always_is_not_on_offer(world: World) -> None:
    effect = kind("tool", world)
    approval = await world.ask(effect)
    assert approval.as_json()["grants"] == ["allow_once"]
    with pytest.raises(BadDecision):
        await world.approve(approval, grant="always")
    assert await world.desk.grants.listed(ANA) == []


@runs
async def test_a_grant_counts_also_where_nobody_can_be_asked(world: World) -> None:
    effect = kind("mcp", world)
    await always(world, effect)
    assert await verdict_of(world, effect, unattended=True) is Allowed


@runs
async def test_a_grant_of_one_tool_says_nothing_of_another_with_the_same_effects(world: World) -> None:
    effect, other = kind("mcp", world), kind("acquisition", world)
    await always(world, effect)
    assert await verdict_of(world, other, "c_9") is NeedsApproval
