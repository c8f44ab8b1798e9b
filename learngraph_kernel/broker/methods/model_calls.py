"""`lg.ask`: a model call through the model port."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Effect, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import decode_value, encode_value
from learngraph_kernel.models.ask import Answer, ask, repair
from learngraph_kernel.models.messages import Message

CONTEXT_ROWS = 50
"""Rows of a snapshot that a model gets to see; it cites the rest by reference."""


class AskCall(Method):
    """Asks the workspace's default model; the answer is named `A1`, `A2`, …"""

    name = "ask"
    effect: Effect = "model"  # type: ignore[misc]
    external = True

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        context = [_material(item, state) for item in arguments.get("context") or []]
        answer = asyncio.run(
            ask(
                state.open_model(),
                text_argument(arguments, "question"),
                context=context,
                schema=arguments.get("schema"),
                max_repairs=state.max_repairs,
            )
        )
        return {"ref": f"A{len(state.answers) + 1}", **encode_value(answer.as_json())}

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        state.answers[result["ref"]] = decode_value(result)

    def present(self, state: RunState, result: Any) -> Any:
        return {"ref": result["ref"], "text": result["text"], "value": result["value"]}


def repair_answer(state: RunState, ref: str, violations: list[dict[str, Any]]) -> str:
    """Hands the violations of a report back to the model that wrote it; returns the whole text again."""
    conversation = [Message.from_json(item) for item in state.answers[ref]["conversation"]]
    problems = [
        f"“{item['text']}” (characters {item['start']}–{item['end']}): {item['message']}" for item in violations
    ]
    answer: Answer = asyncio.run(repair(state.open_model(), conversation, problems))
    state.answers[ref] = {**state.answers[ref], **answer.as_json()}
    return answer.text


def _material(item: dict[str, Any], state: RunState) -> Any:
    """What a model sees of a piece of context: a snapshot's first rows with their references, a metric, a value."""
    if "value" in item:
        return item["value"]
    ref = item["ref"]
    if ref in state.book.snapshots:
        snapshot = state.book.snapshots[ref]
        info = snapshot.info
        return {
            "snapshot": ref,
            "columns": [column.name for column in info.columns],
            "row_count": info.row_count,
            "rows": [encode_value(list(row)) for row in itertools.islice(snapshot.rows(0, CONTEXT_ROWS), CONTEXT_ROWS)],
            "cite": f"[[v:{ref}.r0.COLUMN]]",
        }
    metric = state.book.metrics.get(ref.removeprefix("m:"))
    if metric is not None:
        return {
            "metric": metric.name,
            "title": dict(metric.title),
            "value": encode_value(metric.value),
            "cite": f"[[{ref}]]",
        }
    if ref in state.answers:
        return state.answers[ref]["text"]
    raise BadCall(f"the context names {ref!r}, which this run does not have")
