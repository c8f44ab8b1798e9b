"""What a message shows, folded from the events of its turn: the same for one that streams, ended or was interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from learngraph_kernel.agent.values import EventType, Part, SessionEvent


def parts_of(events: Iterable[SessionEvent]) -> list[Part]:
    """The parts of an assistant's message, in order.

    A step that began again after a crash counts once: what its first attempt had streamed is dropped. The final text is
    that of `completed`; what was streamed before it, beside tool calls, stays as what it was.
    """
    blocks: list[tuple[int | None, Part]] = []
    calls: dict[str, dict[str, Any]] = {}
    for event in events:
        data = dict(event.data)
        match event.type:
            case EventType.STEP_STARTED:
                blocks = [block for block in blocks if block[0] != data["step"]]
            case EventType.TEXT_DELTA | EventType.REASONING_DELTA:
                kind = "text" if event.type is EventType.TEXT_DELTA else "thinking"
                _add_text(blocks, data.get("step"), kind, str(data["text"]))
            case EventType.TOOL_CALL:
                if data["call_id"] not in calls:
                    calls[data["call_id"]] = data
                    blocks.append((None, Part("tool_call", calls[data["call_id"]])))
            case EventType.TOOL_RESULT:
                call = calls.get(data["call_id"])
                if call is None:
                    call = calls[data["call_id"]] = {"call_id": data["call_id"], "tool": data.get("tool")}
                    blocks.append((None, Part("tool_call", call)))
                call["result"] = {key: data[key] for key in ("status", "data", "meta")}
            case EventType.APPROVAL_REQUESTED:
                known = next((i for i, (_, part) in enumerate(blocks) if part.data.get("id") == data["id"]), None)
                if known is None:
                    blocks.append((None, Part("approval", data)))
                else:
                    blocks[known] = (None, Part("approval", data))
            case EventType.APPROVAL_DECIDED:
                blocks = [(step, _decided(part, data)) for step, part in blocks]
            case EventType.ARTIFACT:
                blocks.append((None, Part("artifact", data)))
            case EventType.CARD:
                blocks.append((None, Part("card", data)))
            case EventType.WARNING:
                blocks.append((None, Part("notice", data)))
            case EventType.COMPLETED:
                blocks = _without_last_text(blocks)
                blocks.append((None, Part("text", {key: data[key] for key in _ANSWER if key in data})))
            case _:
                continue
    return [part for _, part in blocks]


_ANSWER = ("text", "shown", "report", "run_id", "notebook", "language", "violations")


def _decided(part: Part, data: dict[str, Any]) -> Part:
    if part.kind != "approval" or part.data.get("id") != data["approval_id"]:
        return part
    return Part("approval", {**part.data, "decision": {key: data[key] for key in ("choice", "by", "grant")}})


def _add_text(blocks: list[tuple[int | None, Part]], step: int | None, kind: Any, text: str) -> None:
    if blocks and blocks[-1][0] == step and step is not None and blocks[-1][1].kind == kind:
        before = blocks[-1][1].data["text"]
        blocks[-1] = (step, Part(kind, {"text": before + text}))
    else:
        blocks.append((step, Part(kind, {"text": text})))


def _without_last_text(blocks: list[tuple[int | None, Part]]) -> list[tuple[int | None, Part]]:
    """Without the streamed texts of the steps after the last tool call: drafts of the answer that follows."""
    last_call = max((index for index, (_, part) in enumerate(blocks) if part.kind == "tool_call"), default=-1)
    return [block for index, block in enumerate(blocks) if index <= last_call or block[1].kind != "text"]
