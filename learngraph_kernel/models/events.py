"""What a model says back: a tagged union of frozen events, the same for every provider.

The order is: `response.started`, then blocks (`content.block.started` and the deltas of its index), `usage.updated`
where known, and exactly one of `response.completed` and `response.failed` as the last. `.type` names the event,
`.as_json()` is what goes over a wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeAlias

from learngraph_kernel.models.errors import FAILURES, ModelError, failure
from learngraph_kernel.models.messages import OpaquePart, ToolCall

Finish: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter"]
BlockKind: TypeAlias = Literal["text", "thinking", "tool_call"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response, split as they are billed; `input` excludes what was read from or written to a cache."""

    input: int = 0
    cached: int = 0
    cache_creation: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cached + other.cached,
            self.cache_creation + other.cache_creation,
            self.output + other.output,
        )

    def as_json(self) -> dict[str, int]:
        return {
            "input": self.input,
            "cached": self.cached,
            "cache_creation": self.cache_creation,
            "output": self.output,
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """Money: `amount` in `currency` (ISO 4217)."""

    amount: Decimal
    currency: str

    def as_json(self) -> dict[str, str]:
        return {"amount": format(self.amount, "f"), "currency": self.currency}


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """The endpoint accepted the request; `attempt` counts from 1, `request_id` is the endpoint's own name for it."""

    model: str
    id: str
    attempt: int = 1
    request_id: str = ""
    type: ClassVar[str] = "response.started"

    def as_json(self) -> dict[str, Any]:
        body = {"type": self.type, "model": self.model, "id": self.id, "attempt": self.attempt}
        return body | ({"request_id": self.request_id} if self.request_id else {})


@dataclass(frozen=True, slots=True)
class ContentBlockStarted:
    """A block begins; `index` counts the blocks of a response from 0."""

    index: int
    kind: BlockKind
    type: ClassVar[str] = "content.block.started"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "index": self.index, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of block `index`."""

    index: int
    text: str
    type: ClassVar[str] = "text.delta"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "index": self.index, "text": self.text}


@dataclass(frozen=True, slots=True)
class ThinkingSummaryDelta:
    """More of what the provider shows of the model's thinking."""

    index: int
    text: str
    type: ClassVar[str] = "thinking.summary.delta"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "index": self.index, "text": self.text}


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a tool call's arguments (JSON text)."""

    index: int
    id: str
    name: str
    arguments: str
    type: ClassVar[str] = "tool.call.delta"

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "index": self.index,
            "id": self.id,
            "name": self.name,
            "arguments": self.arguments,
        }


@dataclass(frozen=True, slots=True)
class ToolCallCompleted:
    """A tool call with all its arguments."""

    index: int
    call: ToolCall
    type: ClassVar[str] = "tool.call.completed"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "index": self.index, "call": self.call.as_json()}


@dataclass(frozen=True, slots=True)
class UsageUpdated:
    """Tokens so far in this response (not an increment)."""

    usage: Usage
    type: ClassVar[str] = "usage.updated"

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "usage": self.usage.as_json()}


@dataclass(frozen=True, slots=True)
class ResponseCompleted:
    """The response is whole.

    Attributes:
        finish: why the model stopped.
        cost: None when no price is known.
        opaque: provider's items to send back with this turn.
    """

    finish: Finish
    cost: Cost | None = None
    opaque: tuple[OpaquePart, ...] = ()
    type: ClassVar[str] = "response.completed"

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "finish": self.finish,
            "cost": None if self.cost is None else self.cost.as_json(),
            "opaque": [part.as_json() for part in self.opaque],
        }


@dataclass(frozen=True, slots=True)
class ResponseFailed:
    """The response failed.

    Attributes:
        code: one of `errors.FAILURES`.
        reason: one sentence for a person.
        model: the model asked.
        status: HTTP status, where there was one.
        retry_after_s: how long the endpoint asked to wait.
        final: never retry, whatever the code says.
        request_id: the endpoint's own name for the request, for its support.
    """

    code: str
    reason: str
    model: str
    status: int | None = None
    retry_after_s: float | None = None
    final: bool = False
    request_id: str = ""
    type: ClassVar[str] = "response.failed"

    @property
    def retryable(self) -> bool:
        """Whether trying again may help."""
        return not self.final and FAILURES.get(self.code, ModelError).retryable

    def error(self) -> ModelError:
        """The same as an exception."""
        details: dict[str, Any] = {} if self.status is None else {"status": self.status}
        details |= {"request_id": self.request_id} if self.request_id else {}
        return failure(self.code, self.reason, model=self.model, details=details)

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "code": self.code,
            "reason": self.reason,
            "model": self.model,
            "status": self.status,
            "retry_after_s": self.retry_after_s,
            "retryable": self.retryable,
        }


NormalizedEvent: TypeAlias = (
    ResponseStarted
    | ContentBlockStarted
    | TextDelta
    | ThinkingSummaryDelta
    | ToolCallDelta
    | ToolCallCompleted
    | UsageUpdated
    | ResponseCompleted
    | ResponseFailed
)

VISIBLE: tuple[type, ...] = (TextDelta, ThinkingSummaryDelta, ToolCallDelta, ToolCallCompleted)
"""Events a reader or a program may already have acted on: after one of these nothing is retried."""
