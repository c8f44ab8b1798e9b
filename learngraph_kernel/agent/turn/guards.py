"""The rules that keep a turn from going round in circles or beyond its limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from learngraph_kernel.agent.turn.limits import COMPACT_AT, STALE_STEPS, WARN_AT, WIND_DOWN_AT, Limits
from learngraph_kernel.agent.turn.state import TurnState
from learngraph_kernel.canonical import digest
from learngraph_kernel.models.messages import Message, ToolResult

KEPT_RESULTS = 4
"""The latest tool results stay whole when a conversation is compacted."""
CHARACTERS_A_TOKEN = 3
"""A cautious guess for English, Chinese and JSON mixed; the real count comes with the usage."""
EVICTED = "[shortened to save room: {count} characters; read_result gives them again where `artifact` is named]"


def call_key(name: str, arguments: Mapping[str, Any], revision: int) -> str:
    """What makes a call the same as one before: tool, arguments, and nothing changed in between."""
    return digest({"tool": name, "arguments": dict(arguments), "revision": revision})


def used(state: TurnState, limits: Limits) -> Iterator[tuple[str, float]]:
    """(limit, share of it that is used), for every limit that there is."""
    for name, amount, most in (
        ("steps", state["step"], limits.steps),
        ("calls", state["calls"], limits.calls),
        ("tokens", sum(state["usage"].values()), limits.tokens),
        ("time", state["spent_s"], limits.seconds),
    ):
        yield name, amount / most if most else 1.0
    for currency, most_money in limits.money.items():
        spent = Decimal(state["cost"].get(currency, "0"))
        yield "money", float(spent / most_money) if most_money else 1.0


def warnings(state: TurnState, limits: Limits) -> list[str]:
    """Limits that are nearly used up and were not warned of yet."""
    near = {name for name, share in used(state, limits) if share >= WARN_AT}
    return sorted(near - set(state["warned"]))


def exhausted(state: TurnState, limits: Limits) -> str | None:
    """The limit that is used up; `steps` one step early, so that the last one can be an answer."""
    for name, share in used(state, limits):
        if share >= 1.0:
            return name
    return "steps" if state["step"] + 1 >= limits.steps else None


def winding_down(state: TurnState, limits: Limits, tokens: int, window: int) -> str | None:
    """Why no more tools are offered; None while they are.

    Args:
        tokens: of the request that is about to be made. window: of the model, in tokens.
    """
    if state["winding"] is not None:
        return state["winding"]
    if state["stale"] >= STALE_STEPS:
        return "no_news"
    if tokens > WIND_DOWN_AT * window:
        return "context"
    return exhausted(state, limits)


def estimate(messages: Sequence[Message]) -> int:
    """Tokens of messages, roughly."""
    return sum(len(str(message.as_json())) for message in messages) // CHARACTERS_A_TOKEN


def compacted(messages: Sequence[Message], window: int) -> list[Message] | None:
    """The same conversation with old tool results shortened; None while it is small enough.

    Args:
        window: in tokens.
    """
    if estimate(messages) <= COMPACT_AT * window:
        return None
    results = [index for index, message in enumerate(messages) if message.role == "tool"]
    old = set(results[:-KEPT_RESULTS])
    return [_evicted(message) if index in old else message for index, message in enumerate(messages)]


def _evicted(message: Message) -> Message:
    parts = tuple(
        ToolResult(part.call_id, part.text[:400] + EVICTED.format(count=len(part.text)), part.error)
        if isinstance(part, ToolResult) and len(part.text) > 1_000
        else part
        for part in message.parts
    )
    return Message(message.role, parts)
