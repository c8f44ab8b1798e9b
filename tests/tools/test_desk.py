from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import select

from learngraph_kernel.store.schema import audit, outbox
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.errors import BadArguments, BadDecision, ToolTicketRefused
from learngraph_kernel.tools.redaction import MASK
from learngraph_kernel.tools.settings import DEFAULTS, ToolSettings
from learngraph_kernel.tools.values import Allowed, CallContext, Effect, NeedsApproval, Tool, ToolDesk, ToolResult
from tests.tools.world import ANA, TEXT, World, altered, closed, context, kind, runs, spec

SECRET = {"type": "object", "properties": {"pin": TEXT}, "required": ["pin"], "additionalProperties": False}


class Seen(list[dict[str, Any]]):
    """A handler that keeps what it was given."""

    async def __call__(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        self.append(dict(arguments))
        return ToolResult("ok", {"n": len(self)})


@pytest.fixture
def seen() -> Seen:
    return Seen()


def add(world: World, seen: Seen, name: str = "look", *effects: Effect, **more: Any) -> None:
    parameters = more.pop("parameters", None)
    world.registry.add(Tool(spec(name, set(effects or {Effect.READ}), parameters, **more), seen))


def actions(world: World) -> list[str]:
    return [row["action"] for row in world.store.rows(select(audit).order_by(audit.c.id))]


def messages(world: World) -> list[tuple[str, dict[str, Any]]]:
    rows = world.store.rows(select(outbox).order_by(outbox.c.id))
    return [(row["type"], json.loads(row["payload"])) for row in rows]


@runs
async def test_a_call_that_policy_allows_happens_once_and_is_recorded(world: World, seen: Seen) -> None:
    add(world, seen)
    desk: ToolDesk = world.desk
    assert [offered.name for offered in await desk.offered(world.scope())] == ["look"]
    verdict = await desk.consider(world.scope(), "c_1", "look", {"what": "tea"})
    assert isinstance(verdict, Allowed)
    assert await desk.consider(world.scope(), "c_1", "look", {"what": "tea"}) == verdict
    result = await desk.execute(context(world.scope(), verdict.ticket), verdict.arguments)
    assert (result.status, result.data, result.meta["tool"]) == ("ok", {"n": 1}, "look")
    again = await desk.execute(context(world.scope(), verdict.ticket), verdict.arguments)
    assert (again.data, again.meta["replayed"], len(seen)) == ({"n": 1}, True, 1)
    assert actions(world) == ["tool.begun", "tool.called"]
    ((type, told),) = messages(world)
    assert (type, told["tool"], told["status"], told["effects"]) == ("tool.called", "look", "ok", ["read"])


@runs
async def test_wrong_arguments_come_back_with_path_expectation_and_what_was_got(world: World, seen: Seen) -> None:
    add(world, seen, parameters=closed(what=TEXT, rows={"type": "array", "maxItems": 2, "items": {"type": "integer"}}))
    result = await world.refused("look", {"what": 3, "rows": [1, "x"], "more": 1})
    assert (result.status, result.data["code"]) == ("error", "bad_arguments")
    found = {(problem["path"], problem["expected"]) for problem in result.data["problems"]}
    assert {("$.what", "string"), ("$.rows[1]", "integer")} < found
    assert result.data["remedy"]
    bad: Any
    for bad in ({"what": "\ud800", "rows": []}, {"what": "x", "rows": [2**60]}, ["what"], None, {1: 2}):
        assert (await world.refused("look", bad)).data["code"] == "bad_arguments"
    assert seen == []


@runs
async def test_an_unknown_a_disabled_and_a_foreign_role_s_tool_are_told_alike(world: World, seen: Seen) -> None:
    add(world, seen)
    world.registry.add(Tool(spec("looks", {Effect.READ}), seen), roles=frozenset({"manager"}))
    world.registry.add(Tool(spec("loot", {Effect.READ}), seen), enabled=False)
    for name in ("lok", "looks", "loot"):
        result = await world.refused(name, {"what": "x"})
        assert result.data["code"] == "unknown_tool"
        assert result.data["remedy"] == "did you mean 'look'?"
    assert (await world.refused("look", {"what": "x"}, allowed=frozenset())).data["code"] == "unknown_tool"


@runs
async def test_a_call_s_id_means_one_call_of_its_turn(world: World, seen: Seen) -> None:
    add(world, seen)
    await world.call("look", {"what": "tea"})
    assert (await world.refused("look", {"what": "milk"})).data["code"] == "call_id_reused"
    assert (await world.refused("look", {"what": "x"}, call_id="")).data["code"] == "bad_call"
    elsewhere = await world.desk.consider(world.scope(turn="n_2"), "c_1", "look", {"what": "milk"})
    helper = await world.desk.consider(world.scope(agent="helper"), "c_1", "look", {"what": "milk"})
    assert isinstance(elsewhere, Allowed) and isinstance(helper, Allowed)
    gated = kind("outside_write", world)
    await world.ask(gated, "c_2")
    assert (await world.refused("send", {"what": "other"}, call_id="c_2")).data["code"] == "call_id_reused"


@runs
async def test_the_platform_sets_hidden_arguments_and_a_model_cannot(world: World, seen: Seen) -> None:
    parameters = closed(what=TEXT, chat_session_id=TEXT)
    add(world, seen, parameters=parameters, hidden=frozenset({"chat_session_id"}))
    result = await world.refused("look", {"what": "x", "chat_session_id": "s_other"})
    assert result.data["code"] == "bad_arguments"
    await world.call("look", {"what": "x"})
    assert seen == [{"what": "x", "chat_session_id": "s_1"}]


@runs
async def test_arguments_that_change_after_they_were_allowed_are_refused(world: World, seen: Seen) -> None:
    add(world, seen)
    given = {"what": "tea"}
    verdict = await world.desk.consider(world.scope(), "c_1", "look", given)
    assert isinstance(verdict, Allowed)
    given["what"] = "milk"
    assert verdict.arguments == {"what": "tea"}
    with pytest.raises(ToolTicketRefused):
        await world.desk.execute(context(world.scope(), verdict.ticket), given)
    assert seen == []


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "t_made_up"},
        {"call_id": "c_2"},
        {"tool": "other"},
        {"version": "2"},
        {"arguments_hash": "0" * 64},
        {"effects": frozenset({Effect.READ, Effect.DELETE})},
        {"approval_id": "a_1"},
        {"expires_at": 4e9},
    ],
    ids=lambda changes: next(iter(changes)),
)
@runs
async def test_an_altered_ticket_is_refused(world: World, seen: Seen, changes: dict[str, Any]) -> None:
    add(world, seen)
    verdict = await world.desk.consider(world.scope(), "c_1", "look", {"what": "x"})
    assert isinstance(verdict, Allowed)
    with pytest.raises(ToolTicketRefused) as refused:
        await world.desk.execute(context(world.scope(), altered(verdict.ticket, **changes)), verdict.arguments)
    assert (seen, refused.value.code, actions(world)) == ([], "tool_ticket_refused", ["tool.ticket_refused"])
    assert (await world.execute(verdict)).status == "ok"


@runs
async def test_a_ticket_is_good_for_a_minute_and_for_the_tool_as_it_was(world: World, seen: Seen) -> None:
    add(world, seen)
    late = await world.desk.consider(world.scope(), "c_1", "look", {"what": "x"})
    assert isinstance(late, Allowed)
    world.clock.turn(seconds=61)
    with pytest.raises(ToolTicketRefused, match="too late"):
        await world.execute(late)
    fresh = await world.desk.consider(world.scope(), "c_1", "look", {"what": "x"})
    assert isinstance(fresh, Allowed) and fresh.ticket.id != late.ticket.id
    world.registry.remove("look")
    with pytest.raises(ToolTicketRefused, match="tool has changed"):
        await world.execute(fresh)
    add(world, seen, origin="untrusted")
    with pytest.raises(ToolTicketRefused, match="tool has changed"):
        await world.execute(fresh)
    assert seen == []


@runs
async def test_an_unattended_call_that_would_ask_is_refused_and_audited(world: World) -> None:
    effect = kind("outside_write", world)
    result = await world.refused("send", {"what": "x"}, unattended=True)
    assert (result.status, result.data["code"]) == ("refused", "unattended")
    assert actions(world) == ["tool.refused"]
    assert await world.desk.approvals.listed(ANA) == []
    assert effect.happened() == []


@runs
async def test_what_a_workspace_forbids_is_refused_also_after_it_was_approved(world: World) -> None:
    effect = kind("deletion", world)
    approval = await world.ask(effect)
    await world.approve(approval)
    (world.workspace / "learngraph.toml").write_text('[tools]\ndelete = "never"\n')
    assert (await world.refused("delete", {"what": "one"})).data["code"] == "approval_stale"
    assert (await world.refused("delete", {"what": "one"}, call_id="c_2")).data["code"] == "not_allowed"
    assert effect.happened() == []


@runs
async def test_code_asks_where_there_is_no_box(world: World, seen: Seen) -> None:
    add(world, seen, "run", Effect.RUN_CODE)
    assert (await world.call("run", {"what": "x"})).status == "ok"
    hosted = Desk(world.store, world.registry, isolated=False)
    verdict = await hosted.consider(world.scope(), "c_2", "run", {"what": "x"})
    assert isinstance(verdict, NeedsApproval)


@runs
async def test_what_a_person_says_instead_reaches_the_model_and_nothing_happens(world: World) -> None:
    effect = kind("outside_write", world)
    decide = world.desk.approvals.decide
    rejected, answered = await world.ask(effect), await world.ask(effect, "c_2")
    await decide(ANA, rejected.id, "reject", rejected.exact.hash, text="not today")
    await decide(ANA, answered.id, "respond", answered.exact.hash, text="use the phone")
    first = await world.refused("send", {"what": effect.what})
    assert (first.status, first.data["code"], first.data["said"]) == ("rejected", "rejected", "not today")
    second = await world.refused("send", {"what": effect.what}, call_id="c_2")
    assert (second.status, second.data["code"], second.data["said"]) == ("rejected", "answered", "use the phone")
    assert effect.happened() == []


@runs
async def test_a_tool_that_only_asks_a_person_gets_their_answer(world: World, seen: Seen) -> None:
    world.registry.add(Tool(spec("ask_user", set(), mode="ask"), seen))
    verdict = await world.desk.consider(world.scope(), "c_1", "ask_user", {"what": "which week?"})
    assert isinstance(verdict, NeedsApproval)
    approval = await world.desk.approvals.find(verdict.approval_id)
    await world.desk.approvals.decide(ANA, approval.id, "respond", approval.exact.hash, text="week 7")
    answer = await world.refused("ask_user", {"what": "which week?"})
    assert (answer.status, answer.data) == ("ok", {"answer": "week 7"})


@runs
async def test_a_record_shows_redacted_arguments_and_the_exact_ones_are_used(world: World, seen: Seen) -> None:
    add(world, seen, "pay", Effect.OUTSIDE_WRITE, parameters=closed(what=TEXT, card=SECRET), redact=frozenset({"card"}))
    arguments = {"what": "Bearer abcdefghijklmnop", "card": {"pin": "1234"}}
    verdict = await world.desk.consider(world.scope(), "c_1", "pay", arguments)
    assert isinstance(verdict, NeedsApproval)
    approval = await world.desk.approvals.find(verdict.approval_id)
    shown = {"what": f"Bearer {MASK}", "card": MASK}
    assert approval.as_json()["arguments"] == shown
    assert world.desk.shown("pay", arguments) == shown
    everything = json.dumps([approval.as_json(), messages(world), actions(world)]) + repr(approval)
    assert "1234" not in everything and "abcdefghijklmnop" not in everything

    edit = {**shown, "what": "less"}
    new = await world.desk.approvals.decide(ANA, approval.id, "edit", approval.exact.hash, arguments=edit)
    await world.approve(new)
    await world.execute(await world.allowed(new))
    assert seen == [{"what": "less", "card": {"pin": "1234"}}]


@pytest.mark.parametrize("arguments", [{"what": 3}, {"what": "x", "other": MASK}, {"what": f"{MASK} more"}])
@runs
async def test_an_edit_that_breaks_the_schema_or_moves_a_mask_changes_nothing(
    world: World, arguments: dict[str, Any]
) -> None:
    approval = await world.ask(kind("outside_write", world))
    with pytest.raises(BadArguments):
        await world.desk.approvals.decide(ANA, approval.id, "edit", approval.exact.hash, arguments=arguments)
    assert (await world.desk.approvals.find(approval.id)).state == "pending"


@pytest.mark.parametrize(
    "decision",
    [
        {"choice": "yes"},
        {"choice": "Approve"},
        {"choice": ""},
        {"choice": "approve", "grant": "forever"},
        {"choice": "approve", "arguments": {"what": "x"}},
        {"choice": "edit"},
        {"choice": "reject", "grant": "always"},
        {"choice": "respond"},
        {"choice": "reject", "text": "x" * 5_000},
    ],
    ids=str,
)
@runs
async def test_a_decision_that_makes_no_sense_decides_nothing(world: World, decision: dict[str, Any]) -> None:
    approval = await world.ask(kind("outside_write", world))
    choice = decision.pop("choice")
    with pytest.raises(BadDecision):
        await world.desk.approvals.decide(ANA, approval.id, choice, approval.exact.hash, **decision)
    assert (await world.desk.approvals.find(approval.id)).state == "pending"
    assert actions(world) == ["approval.requested", "approval.refused"]


@runs
async def test_what_was_asked_and_decided_is_audited_and_told(world: World) -> None:
    effect = kind("outside_write", world)
    approval = await world.ask(effect)
    await world.approve(approval)
    await world.execute(await world.allowed(approval))
    expected = ["approval.requested", "approval.decided", "approval.consumed", "tool.begun", "tool.called"]
    assert actions(world) == expected
    told = messages(world)
    assert [type for type, _ in told] == ["approval.requested", "approval.decided", "tool.called"]
    assert all(payload["arguments_hash"] == approval.exact.hash for _, payload in told)
    assert told[1][1]["by"] == ANA
    assert told[2][1]["approval"] == approval.id


@runs
async def test_lists_are_by_person_state_and_conversation(world: World) -> None:
    effect = kind("outside_write", world)
    first, second = await world.ask(effect), await world.ask(effect, "c_2")
    await world.desk.approvals.decide(ANA, first.id, "reject", first.exact.hash)

    async def ids(*filters: Any) -> list[str]:
        return [approval.id for approval in await world.desk.approvals.listed(ANA, *filters)]

    assert await ids() == [second.id]
    assert await ids(None) == [second.id, first.id]
    assert await ids("rejected", "s_1") == [first.id]
    assert await ids(None, "s_2") == []
    world.clock.turn(hours=25)
    assert (await ids(), await ids("expired")) == ([], [second.id])
    assert await world.desk.approvals.expire() == [second.id]
    assert await ids("expired") == [second.id]


@runs
async def test_a_long_result_belongs_to_the_conversation_whose_call_gave_it(world: World) -> None:
    async def long(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        return ToolResult("ok", list(range(10_000)))

    world.registry.add(Tool(spec("long", {Effect.READ}), long))
    desk = Desk(world.store, world.registry, isolated=True, settings=lambda _: ToolSettings(DEFAULTS, characters=1_000))
    verdict = await desk.consider(world.scope(), "c_1", "long", {"what": "x"})
    assert isinstance(verdict, Allowed)
    result = await desk.execute(context(world.scope(), verdict.ticket), verdict.arguments)
    assert len(json.dumps(result.data)) < 1_500
    reference = result.meta["artifact"]
    assert json.loads(world.store.artifacts.read(reference)) == list(range(10_000))
    assert await desk.owns_result("s_1", reference)
    assert not await desk.owns_result("s_2", reference)
    assert not await desk.owns_result("s_1", "0" * 64)
