"""The state of a turn between its steps: small, JSON, and enough to go on after a crash.

Messages and results are artifacts; the state has their names. It is stored after each step.
"""

from __future__ import annotations

from typing import Any, TypedDict


class TurnState(TypedDict):
    """Attributes:
    base: artifact of the messages the turn began with (prompt layers, history, question).
    transcript: artifacts of the messages since, in order.
    queue: tool calls of the last answer that are still to be made: `{"id", "name", "arguments", "malformed", "key"}`.
    step: model calls so far. calls: tool calls so far.
    usage: tokens by kind, added up. cost: amount by currency, as text.
    spent_s: seconds of work, without waiting for people.
    waiting: the approval a person has to decide.
    seen: digest of a call and of what had changed before it → artifact of its result.
    news: hashes of results that were seen. stale: steps in a row that brought none.
    revision: how many calls changed something.
    winding: why tools are no longer offered; None while they are.
    warned: limits that were warned of. repairs: how often the answer went back.
    run_id, notebook: of the last run of this turn, or of the conversation before it.
    text, document: the answer, and the artifact of its report document.
    """

    base: str
    transcript: list[str]
    queue: list[dict[str, Any]]
    step: int
    calls: int
    usage: dict[str, int]
    cost: dict[str, str]
    spent_s: float
    waiting: str | None
    seen: dict[str, str]
    news: list[str]
    stale: int
    revision: int
    winding: str | None
    warned: list[str]
    repairs: int
    run_id: str | None
    notebook: str | None
    text: str
    document: str | None


def first_state(base: str, *, run_id: str | None, notebook: str | None) -> TurnState:
    """The state of a turn that has done nothing yet."""
    return TurnState(
        base=base,
        transcript=[],
        queue=[],
        step=0,
        calls=0,
        usage={},
        cost={},
        spent_s=0.0,
        waiting=None,
        seen={},
        news=[],
        stale=0,
        revision=0,
        winding=None,
        warned=[],
        repairs=0,
        run_id=run_id,
        notebook=notebook,
        text="",
        document=None,
    )
