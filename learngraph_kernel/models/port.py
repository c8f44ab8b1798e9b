"""The model port: one method that streams events, and what gathers them.

`deliver` is how a request is made: it puts the clock and the retries round an adapter, so that no adapter has its own.
Retries happen only before the first visible event: after that, a second answer would contradict what a reader or a
program has already acted on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.events import (
    VISIBLE,
    Cost,
    Finish,
    NormalizedEvent,
    ResponseCompleted,
    ResponseFailed,
    ResponseStarted,
    TextDelta,
    ToolCallCompleted,
    Usage,
    UsageUpdated,
)
from learngraph_kernel.models.messages import Defaults, Message, NormalizedRequest, Part, TextPart, Tool, ToolCall

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
LONGEST_RETRY_AFTER_S = 60.0


class ModelAdapter(Protocol):
    """One vendor, or one script."""

    @property
    def model(self) -> str:
        """The model a request is for unless it names another."""

    @property
    def defaults(self) -> Defaults:
        """What a request has unless it brings its own."""

    @property
    def capabilities(self) -> Capabilities:
        """The snapshot that decides what is sent."""

    async def prepare(self) -> None:
        """What is slow and happens once (importing a vendor); not counted against time-outs. Raises Unavailable."""

    def invoke(self, request: NormalizedRequest) -> AsyncIterator[NormalizedEvent]:
        """One attempt. A failure of the response is the last event; only a failure of the set-up raises."""


def request_for(
    adapter: ModelAdapter,
    messages: Sequence[Message],
    *,
    tools: Sequence[Tool] = (),
    response_schema: Mapping[str, Any] | None = None,
) -> NormalizedRequest:
    """A request to an adapter's own model with its defaults."""
    defaults = adapter.defaults
    return NormalizedRequest(
        adapter.model,
        tuple(messages),
        tuple(tools),
        response_schema,
        temperature=defaults.temperature,
        max_output_tokens=defaults.max_output_tokens,
        thinking=defaults.thinking,
        limits=defaults.limits,
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole response.

    Attributes:
        text: all text blocks, joined.
        usage: tokens of the successful attempt; None when the endpoint told none.
        tool_calls: in order.
        finish: why it stopped.
        events: everything, as delivered.
        cost: None when no price is known.
        attempts: how many it took.
        message: this turn as it goes back into the conversation.
    """

    text: str
    usage: Usage | None
    tool_calls: tuple[ToolCall, ...]
    finish: Finish
    events: tuple[NormalizedEvent, ...]
    cost: Cost | None
    attempts: int
    message: Message


@dataclass(frozen=True, slots=True)
class Pacing:
    """Where time and chance come from; tests hand in their own.

    Attributes:
        sleep: seconds to wait, as asyncio.sleep.
        chance: a float in [0, 1), for the jitter.
        on_retry: told the failed attempt (from 1), its failure and the pause in seconds.
    """

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    on_retry: Callable[[int, ResponseFailed, float], None] = lambda attempt, failed, pause: None


async def deliver(
    adapter: ModelAdapter, request: NormalizedRequest, pacing: Pacing | None = None
) -> AsyncGenerator[NormalizedEvent, None]:
    """The events of a request under its limits, retried while nothing was visible.

    Args:
        adapter: whom to ask.
        request: what to ask; its limits hold for all attempts together.
        pacing: clock and chance.

    Returns: events; the last is `response.completed` or `response.failed`.

    Raises:
        LearnGraphError: the adapter cannot be used at all (missing library, unmatched script).
    """
    pacing = pacing or Pacing()
    await adapter.prepare()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.limits.total_s
    for attempt in range(1, request.limits.attempts + 1):
        held: list[NormalizedEvent] = []  # nothing of an attempt is shown until something of it is visible
        visible = False
        async with contextlib.aclosing(_timed(adapter, request, deadline)) as events:
            async for event in events:
                if isinstance(event, ResponseStarted):
                    event = replace(event, attempt=attempt)
                if isinstance(event, ResponseFailed) and not visible and attempt < request.limits.attempts:
                    pause = _pause(attempt, event, pacing.chance())
                    if event.retryable and loop.time() + pause < deadline:
                        pacing.on_retry(attempt, event, pause)
                        await pacing.sleep(pause)
                        break
                visible = visible or isinstance(event, (*VISIBLE, ResponseCompleted, ResponseFailed))
                held.append(event)
                if visible:
                    for ready in held:
                        yield ready
                    held.clear()
            else:
                return


def _pause(attempt: int, failed: ResponseFailed, chance: float) -> float:
    """Seconds before the next attempt: what the endpoint asked for, else doubling; the jitter only ever adds."""
    if failed.retry_after_s is not None and failed.retry_after_s <= LONGEST_RETRY_AFTER_S:
        return float(failed.retry_after_s + FIRST_PAUSE_S * chance)
    return float(min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S) * (0.5 + chance / 2))


async def _timed(
    adapter: ModelAdapter, request: NormalizedRequest, deadline: float
) -> AsyncGenerator[NormalizedEvent, None]:
    """One attempt's events; silence, lateness and a stream without an end become `response.failed`."""
    loop = asyncio.get_running_loop()
    stream = aiter(adapter.invoke(request))
    try:
        while True:
            patience = min(request.limits.no_output_s, deadline - loop.time())
            try:
                async with asyncio.timeout(max(patience, 0)):
                    event = await anext(stream, None)
            except TimeoutError:
                yield _late(request, over=loop.time() >= deadline)
                return
            if event is None:
                yield ResponseFailed("model_disconnected", "the response ended before it was complete", request.model)
                return
            yield event
            if isinstance(event, ResponseCompleted | ResponseFailed):
                return
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


def _late(request: NormalizedRequest, *, over: bool) -> ResponseFailed:
    if over:
        reason = f"not complete after {request.limits.total_s:g} s in all"
    else:
        reason = f"no output for {request.limits.no_output_s:g} s"
    return ResponseFailed("model_timed_out", reason, request.model, final=over)


async def complete(adapter: ModelAdapter, request: NormalizedRequest, pacing: Pacing | None = None) -> Completion:
    """Delivers a request and gathers its events.

    Raises:
        ModelError: the response failed; the class says how.
        LearnGraphError: the adapter cannot be used.
    """
    events = [event async for event in deliver(adapter, request, pacing)]
    return completion_of(events)


def completion_of(events: Sequence[NormalizedEvent]) -> Completion:
    """What delivered events say together. Raises ModelError when the response failed."""
    last = events[-1]
    if isinstance(last, ResponseFailed):
        raise last.error()
    assert isinstance(last, ResponseCompleted)  # `deliver` promises it
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    calls = tuple(event.call for event in events if isinstance(event, ToolCallCompleted))
    parts: list[Part] = [*last.opaque, *([TextPart(text)] if text else []), *calls]
    return Completion(
        text=text,
        usage=next((event.usage for event in reversed(events) if isinstance(event, UsageUpdated)), None),
        tool_calls=calls,
        finish=last.finish,
        events=tuple(events),
        cost=last.cost,
        attempts=next((event.attempt for event in events if isinstance(event, ResponseStarted)), 1),
        message=Message("assistant", tuple(parts)),
    )
