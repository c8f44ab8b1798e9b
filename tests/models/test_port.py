"""Delivery: the clock and the retries round an adapter."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import FAILURES, ModelDisconnected, ModelError, ModelServerFailed, ModelTimedOut
from learngraph_kernel.models.events import (
    NormalizedEvent,
    ResponseCompleted,
    ResponseFailed,
    ResponseStarted,
    TextDelta,
)
from learngraph_kernel.models.messages import (
    Defaults,
    Limits,
    Message,
    NormalizedRequest,
    OpaquePart,
    TextPart,
    ToolCall,
    ToolResult,
    tool_results,
)
from learngraph_kernel.models.port import Pacing, complete, deliver

from .conftest import Waits, asking, scripted

SAYS = "rules: [{steps: [{text: fine}]}]"


def failing(steps: str) -> Any:
    return scripted(f"rules: [{{steps: {steps}}}]")


@pytest.mark.parametrize("fault", ["rate_limit", "server", "disconnect", "garbage", "timeout"])
def test_a_passing_fault_is_retried_before_anything_is_visible(fault: str, pacing: Pacing) -> None:
    adapter = failing(f"[{{fault: {{kind: {fault}, times: 2}}}}, {{text: fine}}]")
    completion = asyncio.run(complete(adapter, asking("hi"), pacing))
    assert (completion.text, completion.attempts) == ("fine", 3)


def test_a_refused_key_is_not_retried(pacing: Pacing, waits: Waits) -> None:
    with pytest.raises(ModelError) as caught:
        asyncio.run(complete(failing("[{fault: auth}]"), asking("hi"), pacing))
    assert caught.value.code == "model_authentication"
    assert waits == []


def test_nothing_is_retried_after_the_first_visible_event(pacing: Pacing, waits: Waits) -> None:
    adapter = failing("[{text: half}, {fault: {kind: disconnect, times: 1}}]")
    with pytest.raises(ModelDisconnected):
        asyncio.run(complete(adapter, asking("hi"), pacing))
    assert waits == []


def test_an_attempt_that_failed_unseen_leaves_no_event(pacing: Pacing) -> None:
    adapter = failing("[{fault: {kind: server, times: 1}}, {text: fine}]")
    events = asyncio.run(complete(adapter, asking("hi"), pacing)).events
    assert [event for event in events if isinstance(event, ResponseStarted)] == [events[0]]
    assert not any(isinstance(event, ResponseFailed) for event in events)


def test_attempts_run_out_with_the_last_failure(pacing: Pacing, waits: Waits) -> None:
    with pytest.raises(ModelServerFailed) as caught:
        asyncio.run(complete(failing("[{fault: server}]"), asking("hi", attempts=3), pacing))
    assert caught.value.details == {"status": 503}
    assert len(waits) == 2


def test_pauses_double_and_carry_jitter(pacing: Pacing, waits: Waits) -> None:
    with pytest.raises(ModelServerFailed):
        asyncio.run(complete(failing("[{fault: server}]"), asking("hi", attempts=4), pacing))
    assert waits == [0.375, 0.75, 1.5]


def test_the_endpoint_s_own_waiting_time_is_kept(pacing: Pacing, waits: Waits) -> None:
    adapter = failing("[{fault: {kind: rate_limit, times: 1, retry_after_s: 7}}, {text: fine}]")
    asyncio.run(complete(adapter, asking("hi"), pacing))
    assert waits == [7.25]


def test_no_retry_begins_that_the_total_would_cut(pacing: Pacing, waits: Waits) -> None:
    adapter = failing("[{fault: {kind: rate_limit, times: 1, retry_after_s: 50}}, {text: fine}]")
    with pytest.raises(ModelError):
        asyncio.run(complete(adapter, asking("hi", total_s=10), pacing))
    assert waits == []


def test_retries_are_told(waits: Waits) -> None:
    told: list[tuple[int, str, float]] = []
    pacing = Pacing(waits.sleep, lambda: 0.5, lambda attempt, failed, pause: told.append((attempt, failed.code, pause)))
    asyncio.run(complete(failing("[{fault: {kind: server, times: 1}}, {text: fine}]"), asking("hi"), pacing))
    assert told == [(1, "model_server_failed", 0.375)]


def test_silence_ends_at_the_no_output_limit(pacing: Pacing) -> None:
    with pytest.raises(ModelTimedOut, match=r"no output for 0\.05 s"):
        asyncio.run(complete(failing("[{fault: silence}]"), asking("hi", no_output_s=0.05, attempts=1), pacing))


def test_silence_after_text_is_not_retried(pacing: Pacing, waits: Waits) -> None:
    adapter = failing("[{text: half}, {fault: silence}]")
    with pytest.raises(ModelTimedOut):
        asyncio.run(complete(adapter, asking("hi", no_output_s=0.05), pacing))
    assert waits == []


def test_a_stream_that_never_ends_stops_at_the_total() -> None:
    steps = "[" + ", ".join(["{text: x}, {delay_ms: 30}"] * 50) + "]"
    with pytest.raises(ModelTimedOut, match=r"not complete after 0\.2 s"):
        asyncio.run(complete(failing(steps), asking("hi", total_s=0.2)))


class Abrupt:
    """An adapter whose stream just stops, and which notes when it is closed."""

    model = "abrupt"
    defaults = Defaults()
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.closed = 0

    async def prepare(self) -> None:
        await asyncio.sleep(0.1)

    async def invoke(self, request: NormalizedRequest) -> AsyncIterator[NormalizedEvent]:
        try:
            yield ResponseStarted(request.model, "1")
            yield TextDelta(0, "half")
        finally:
            self.closed += 1


def test_a_stream_without_an_end_is_a_disconnect(pacing: Pacing) -> None:
    with pytest.raises(ModelDisconnected, match="ended before it was complete"):
        asyncio.run(complete(Abrupt(), asking("hi"), pacing))


def test_preparing_an_adapter_does_not_count_as_silence(pacing: Pacing) -> None:
    with pytest.raises(ModelDisconnected):
        asyncio.run(complete(Abrupt(), asking("hi", no_output_s=0.05), pacing))


def test_a_reader_who_leaves_closes_the_adapter_s_stream() -> None:
    adapter = Abrupt()

    async def leave() -> None:
        events = deliver(adapter, asking("hi"))
        async for event in events:
            if isinstance(event, TextDelta):
                break
        await events.aclose()

    asyncio.run(leave())
    assert adapter.closed == 1


def test_a_completion_goes_back_into_the_conversation() -> None:
    adapter = failing("[{text: looking}, {tool_call: {name: query, arguments: {sql: select 1}, id: c1}}]")
    message = asyncio.run(complete(adapter, asking("hi"))).message
    assert message == Message("assistant", (TextPart("looking"), ToolCall("c1", "query", {"sql": "select 1"})))


@pytest.mark.parametrize(
    "message",
    [
        Message("user", (TextPart("周报"),)),
        Message(
            "assistant",
            (OpaquePart("litellm/x", {"signature": "s"}), ToolCall("1", "q", {"a": 1}), ToolCall("2", "q", {}, "bad")),
        ),
        tool_results([ToolResult("1", "rows"), ToolResult("2", "no such table", error=True)]),
    ],
)
def test_a_message_survives_its_json(message: Message) -> None:
    assert Message.from_json(message.as_json()) == message


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": "boss", "parts": []},
        {"role": "user", "parts": [{"kind": "image"}]},
        {"role": "user", "parts": [{}]},
    ],
)
def test_what_is_no_message_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Message.from_json(body)


@pytest.mark.parametrize("text", ["not json", "[1]", '{"a": '])
def test_malformed_arguments_are_kept_and_sent_back_verbatim(text: str) -> None:
    call = ToolCall.parse("1", "query", text)
    assert (dict(call.arguments), call.malformed, call.arguments_text()) == ({}, text, text)


@pytest.mark.parametrize("limits", [{"no_output_s": 0}, {"total_s": -1}, {"attempts": 0}])
def test_limits_must_be_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Limits(**limits)


def test_every_failure_code_has_its_own_class_and_advice() -> None:
    for code, kind in FAILURES.items():
        error = ResponseFailed(code, "why", "m").error()
        assert type(error) is kind
        assert error.code == code
        assert error.remedy


def test_an_unknown_failure_code_is_kept() -> None:
    error = ResponseFailed("quota_of_the_moon", "why", "m").error()
    assert (type(error), error.details) == (ModelError, {"code": "quota_of_the_moon"})


def test_every_event_says_its_type_in_json() -> None:
    events = asyncio.run(
        complete(failing("[{thinking: hm}, {text: fine}, {tool_call: {name: q}}]"), asking("hi"))
    ).events
    assert [event.as_json()["type"] for event in events] == [
        "response.started",
        "content.block.started",
        "thinking.summary.delta",
        "content.block.started",
        "text.delta",
        "content.block.started",
        "tool.call.delta",
        "tool.call.completed",
        "usage.updated",
        "response.completed",
    ]
    assert isinstance(events[-1], ResponseCompleted)
    with pytest.raises(dataclasses.FrozenInstanceError):
        events[0].model = "other"  # type: ignore[misc, union-attr]
