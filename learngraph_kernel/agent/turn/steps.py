"""What each step of a turn does. Each begins by asking what is on record, so that doing it again repeats no effect.

`think` asks the model, `act` makes the next tool call, `decide` uses a person's decision, `check` checks the answer.
A step returns what changes in the state; where it goes next is decided by `next_step`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias, cast

from learngraph_kernel.agent.ports import SessionLog
from learngraph_kernel.agent.turn import guards, spending
from learngraph_kernel.agent.turn.answer import check_answer, repair_request
from learngraph_kernel.agent.turn.limits import DEFAULT_WINDOW, Limits
from learngraph_kernel.agent.turn.spending import Spending
from learngraph_kernel.agent.turn.state import TurnState
from learngraph_kernel.agent.values import EventType, SessionEvent
from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.models.errors import ModelEmptyAnswer
from learngraph_kernel.models.events import (
    VISIBLE,
    NormalizedEvent,
    ResponseFailed,
    ResponseStarted,
    TextDelta,
    ThinkingSummaryDelta,
)
from learngraph_kernel.models.messages import Message, Tool, ToolCall, user
from learngraph_kernel.models.messages import ToolResult as ResultPart
from learngraph_kernel.models.port import Completion, ModelAdapter, completion_of, deliver, request_for
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.errors import ApprovalError, ReplayedApproval
from learngraph_kernel.tools.results import failure, for_model
from learngraph_kernel.tools.values import (
    Allowed,
    CallContext,
    Effect,
    NeedsApproval,
    Refused,
    ToolDesk,
    ToolResult,
    ToolScope,
    Verdict,
)

Step: TypeAlias = Literal["think", "act", "decide", "check", "end"]
Changes: TypeAlias = dict[str, Any]

_WIND_DOWN = {
    "no_news": "The last steps brought nothing new.",
    "context": "The conversation is nearly as long as it can be.",
    "steps": "This is the last step of this turn.",
    "calls": "The tool calls of this turn are used up.",
    "tokens": "The tokens of this turn are used up.",
    "money": "The budget of this turn is used up.",
    "time": "The time of this turn is used up.",
    "budget": "The budget is nearly used up.",
}
_FINISH = "{why} No tool can be called any more: answer now with what you have, and say what is missing."


@dataclass(frozen=True)
class Surroundings:
    """What the steps of one turn work with.

    Attributes:
        log: where events go.
        desk: where tool calls go.
        adapter: the model.
        scope: for whom tools are called.
        limits: fixed when the turn began.
        language: of the question.
        redact: the arguments of a tool as people may see them.
        spending: the budgets beyond this turn's own limits.
        earlier: events of this turn from before a crash.
    """

    log: SessionLog
    desk: ToolDesk
    store: Store
    home: Home
    adapter: ModelAdapter
    scope: ToolScope
    limits: Limits
    language: str
    redact: Callable[[str, Mapping[str, Any]], Any]
    spending: Spending
    earlier: tuple[SessionEvent, ...] = ()
    clock: Any = time.monotonic
    _messages: dict[str, Message] = field(default_factory=dict)

    @property
    def window(self) -> int:
        """Of the model, in tokens."""
        return self.adapter.capabilities.context_window or DEFAULT_WINDOW

    async def event(self, type: EventType, data: Mapping[str, Any]) -> SessionEvent:
        """Records an anchor of this turn."""
        scope = self.scope
        return await self.log.append(scope.session_id, type, data, turn_id=scope.turn_id, message_id=scope.message_id)

    def delta(self, type: EventType, data: Mapping[str, Any]) -> None:
        """Shows a delta of this turn."""
        scope = self.scope
        self.log.delta(scope.session_id, type, data, turn_id=scope.turn_id, message_id=scope.message_id)

    async def keep(self, message: Message) -> str:
        """Stores a message; its name."""
        return await asyncio.to_thread(self.store.artifacts.put_json, message.as_json())

    async def conversation(self, state: TurnState) -> list[Message]:
        """All messages so far."""
        base = await asyncio.to_thread(self.store.artifacts.read_json, state["base"])
        said = [Message.from_json(body) for body in base]
        for name in state["transcript"]:
            if name not in self._messages:
                body = await asyncio.to_thread(self.store.artifacts.read_json, name)
                self._messages[name] = Message.from_json(body)
            said.append(self._messages[name])
        return said


def next_step(state: TurnState) -> Step:
    """Where a turn goes from a state."""
    if state["document"] is not None:
        return "end"
    if state["waiting"] is not None:
        return "decide"
    if state["queue"]:
        return "act"
    return "check" if state["text"] else "think"


# Asking the model


async def think(turn: Surroundings, state: TurnState) -> Changes:
    """One model call; its message is on record before anything is done with it. Raises ModelError, BudgetExhausted."""
    began, step = turn.clock(), state["step"] + 1
    messages = await turn.conversation(state)
    smaller = guards.compacted(messages, turn.window)
    if smaller is not None:
        messages = smaller
        await _warn(turn, state, "compacted", "Old results of this turn are shortened, to save room.")
    tokens, recorded = guards.estimate(messages), _recorded(turn, step)
    standings = [] if recorded else await turn.spending.before(step, tokens)
    if (near := spending.warning(standings)) is not None:
        await _warn(turn, state, "budget_low", near)
    winding = guards.winding_down(state, turn.limits, tokens, turn.window)
    winding = winding or ("budget" if spending.winds_down(standings) else None)
    if winding is not None:
        messages = [*messages, user(_FINISH.format(why=_WIND_DOWN[winding]))]
        await _warn(turn, state, "winding_down", _WIND_DOWN[winding])
    if recorded is None:
        await turn.event(EventType.STEP_STARTED, {"step": step})
        completion = await _ask(turn, messages, step, with_tools=winding is None)
        name = await turn.keep(completion.message)
        recorded = {"step": step, "message": name, **_usage(completion)}
        await turn.event(EventType.USAGE, recorded)
    await turn.spending.after(step, recorded)
    message = Message.from_json(await asyncio.to_thread(turn.store.artifacts.read_json, recorded["message"]))
    calls = [part for part in message.parts if isinstance(part, ToolCall)] if winding is None else []
    if not calls and not message.text.strip():
        raise ModelEmptyAnswer(
            "the model answered nothing", where=f"model {turn.adapter.model}", remedy=ModelEmptyAnswer.advice
        )
    changes: Changes = {
        "transcript": [*state["transcript"], recorded["message"]],
        "queue": [_queued(call, index, turn, step) for index, call in enumerate(calls)],
        "step": step,
        "usage": _added(state["usage"], recorded),
        "cost": _spent(state["cost"], recorded.get("cost")),
        "spent_s": state["spent_s"] + turn.clock() - began,
        "winding": winding,
        "text": "" if calls else message.text,
    }
    after = cast(TurnState, {**state, **changes})
    for name in guards.warnings(after, turn.limits):
        await _warn(turn, after, f"{name}_low", f"More than 80 % of the limit on {name} is used.")
    return changes | {"warned": after["warned"]}


async def _ask(turn: Surroundings, messages: list[Message], step: int, *, with_tools: bool) -> Completion:
    """Streams one answer into the session's events. Raises ModelError."""
    tools = await turn.desk.offered(turn.scope) if with_tools else ()
    offered = [Tool(spec.name, spec.description, spec.parameters) for spec in tools]
    events: list[NormalizedEvent] = []
    async for event in deliver(turn.adapter, request_for(turn.adapter, messages, tools=offered)):
        events.append(event)
        if isinstance(event, TextDelta):
            turn.delta(EventType.TEXT_DELTA, {"step": step, "text": event.text})
        elif isinstance(event, ThinkingSummaryDelta):
            turn.delta(EventType.REASONING_DELTA, {"step": step, "text": event.text})
        elif isinstance(event, ResponseFailed):
            if not any(isinstance(seen, VISIBLE) for seen in events):
                await turn.spending.failed(step)
            raise event.error()
    return completion_of(events)


def _recorded(turn: Surroundings, step: int) -> dict[str, Any] | None:
    """What is on record of a model call that was paid for before a crash."""
    for event in turn.earlier:
        if event.type is EventType.USAGE and event.data.get("step") == step:
            return dict(event.data)
    return None


def _usage(completion: Completion) -> dict[str, Any]:
    usage = {} if completion.usage is None else completion.usage.as_json()
    cost = completion.cost
    started = [event for event in completion.events if isinstance(event, ResponseStarted) and event.request_id]
    named = {"request_id": started[0].request_id} if started else {}
    return usage | named | ({} if cost is None else {"cost": {cost.currency: format(cost.amount, "f")}})


def _added(usage: Mapping[str, int], more: Mapping[str, Any]) -> dict[str, int]:
    kinds = ("input", "cached", "cache_creation", "output")
    return {kind: usage.get(kind, 0) + int(more.get(kind, 0)) for kind in kinds}


def _spent(cost: Mapping[str, str], more: Mapping[str, str] | None) -> dict[str, str]:
    total = {currency: Decimal(amount) for currency, amount in cost.items()}
    for currency, amount in (more or {}).items():
        total[currency] = total.get(currency, Decimal(0)) + Decimal(amount)
    return {currency: format(amount, "f") for currency, amount in total.items()}


def _queued(call: ToolCall, index: int, turn: Surroundings, step: int) -> dict[str, Any]:
    # A provider may use an id twice; the desk's key says which call of which step it is.
    key = f"{turn.scope.agent}-{step}-{index}"
    return {
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
        "malformed": call.malformed,
        "key": key,
    }


async def _warn(turn: Surroundings, state: TurnState, code: str, text: str) -> None:
    """Warns once a turn."""
    name = code.removesuffix("_low")
    if name not in state["warned"]:
        state["warned"] = [*state["warned"], name]
        await turn.event(EventType.WARNING, {"code": code, "text": text})


# Calling tools


async def act(turn: Surroundings, state: TurnState) -> Changes:
    """The next tool call of the queue: refused, made, or handed to a person."""
    call = state["queue"][0]
    if state["calls"] >= turn.limits.calls:
        reason = "the tool calls of this turn are used up"
        return await _done(turn, state, call, failure("refused", "calls_used_up", reason, "answer with what you have"))
    if call["malformed"] is not None:
        reason, remedy = "the arguments are not a JSON object", "write them again as one JSON object"
        return await _done(turn, state, call, failure("error", "malformed_arguments", reason, remedy))
    key = guards.call_key(call["name"], call["arguments"], state["revision"])
    if key in state["seen"]:
        return await _again(turn, state, call, state["seen"][key])
    verdict = await turn.desk.consider(turn.scope, call["key"], call["name"], call["arguments"])
    return await _by(turn, state, call, verdict)


async def decide(turn: Surroundings, state: TurnState) -> Changes:
    """After somebody was asked: the decision is read from the record, never from what woke the turn."""
    call, approval = state["queue"][0], state["waiting"]
    assert approval is not None
    try:
        verdict = await turn.desk.decided(turn.scope, approval)
    except ReplayedApproval:
        # It was used before this step was interrupted: the desk knows how far the call came.
        verdict = await turn.desk.consider(turn.scope, call["key"], call["name"], call["arguments"])
    except ApprovalError as error:
        verdict = Refused(failure("refused", error.code, error.what, error.remedy))
    if isinstance(verdict, NeedsApproval) and verdict.approval_id == approval:
        return {}  # nobody has decided yet
    return await _by(turn, state, call, verdict)


async def _by(turn: Surroundings, state: TurnState, call: dict[str, Any], verdict: Verdict) -> Changes:
    if isinstance(verdict, Refused):
        return await _done(turn, state, call, verdict.result)
    if isinstance(verdict, NeedsApproval):
        return {"waiting": verdict.approval_id}
    return await _make(turn, state, call, verdict)


async def _make(turn: Surroundings, state: TurnState, call: dict[str, Any], allowed: Allowed) -> Changes:
    """Makes a call that may be made."""
    ticket = allowed.ticket
    shown = {"call_id": call["key"], "tool": call["name"], "effects": sorted(ticket.effects), "agent": turn.scope.agent}
    shown |= {"arguments_hash": ticket.arguments_hash, "arguments": turn.redact(call["name"], call["arguments"])}
    await turn.event(EventType.TOOL_CALL, shown)

    async def emit(kind: str, data: Mapping[str, Any]) -> None:
        type = EventType(kind)
        if type is EventType.TOOL_PROGRESS:
            turn.delta(type, {"call_id": call["key"], **data})
        else:
            await turn.event(type, {"call_id": call["key"], **data})

    began = turn.clock()
    result = await turn.desk.execute(CallContext(turn.scope, ticket, emit), allowed.arguments)
    changes = await _done(turn, state, call, result, edited=_edited(call, allowed))
    changes["spent_s"] = state["spent_s"] + turn.clock() - began
    if ticket.effects - {Effect.READ}:
        changes["revision"] = state["revision"] + 1
    if result.meta.get("run_id"):
        changes |= {"run_id": result.meta["run_id"], "notebook": result.meta.get("notebook")}
    return changes


def _edited(call: Mapping[str, Any], allowed: Allowed) -> bool:
    return any(allowed.arguments.get(name) != value for name, value in call["arguments"].items())


async def _again(turn: Surroundings, state: TurnState, call: dict[str, Any], name: str) -> Changes:
    """The same call with nothing changed in between: its result is handed back, and it does not happen again."""
    text = (await asyncio.to_thread(turn.store.artifacts.read, name)).decode()
    await turn.event(
        EventType.TOOL_CALL,
        {"call_id": call["key"], "tool": call["name"], "arguments": turn.redact(call["name"], call["arguments"])},
    )
    told = {"call_id": call["key"], "status": "ok", "data": None, "meta": {"replayed": True}}
    await turn.event(EventType.TOOL_RESULT, told)
    note = "[The same call was made before and nothing has changed since; this is its result.]\n"
    return await _answered(turn, state, call, note + text, error=False, news=None)


async def _done(
    turn: Surroundings, state: TurnState, call: dict[str, Any], result: ToolResult, *, edited: bool = False
) -> Changes:
    """Records a result and hands it to the model."""
    await turn.event(EventType.TOOL_RESULT, {"call_id": call["key"], "tool": call["name"], **result.as_json()})
    text = for_model(result)
    changes = await _answered(turn, state, call, _note(edited) + text, error=result.status != "ok", news=text)
    if result.status == "ok" and not result.meta.get("replayed"):
        key = guards.call_key(call["name"], call["arguments"], state["revision"])
        name = await asyncio.to_thread(turn.store.artifacts.put, text.encode())
        changes["seen"] = {**state["seen"], key: name}
    return changes


def _note(edited: bool) -> str:
    return "[A person changed the arguments before allowing the call.]\n" if edited else ""


async def _answered(
    turn: Surroundings, state: TurnState, call: dict[str, Any], text: str, *, error: bool, news: str | None
) -> Changes:
    """The tool message, and whether it brought anything new."""
    name = await turn.keep(Message("tool", (ResultPart(call["id"], text, error=error),)))
    mark = None if news is None else sha256_hex(news.encode())[:16]
    fresh = mark is not None and mark not in state["news"]
    return {
        "transcript": [*state["transcript"], name],
        "queue": state["queue"][1:],
        "calls": state["calls"] + 1,
        "waiting": None,
        "news": [*state["news"], mark] if fresh else state["news"],
        "stale": 0 if fresh else state["stale"] + 1,
    }


# The answer


async def check(turn: Surroundings, state: TurnState) -> Changes:
    """Checks the answer; without evidence it goes back, as often as the limits say."""
    checked = await asyncio.to_thread(
        check_answer, state["text"], turn.language, turn.store, turn.home, state["run_id"]
    )
    if checked.problems and state["repairs"] < turn.limits.repairs and state["winding"] is None:
        name = await turn.keep(user(repair_request(checked.problems)))
        text = "The answer stated things without evidence and is written again."
        await turn.event(
            EventType.WARNING, {"code": "answer_repaired", "text": text, "problems": list(checked.problems)}
        )
        return {"transcript": [*state["transcript"], name], "repairs": state["repairs"] + 1, "text": ""}
    document = await asyncio.to_thread(turn.store.artifacts.put, checked.document.to_bytes())
    return {"document": document}
