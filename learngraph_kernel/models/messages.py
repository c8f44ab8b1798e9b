"""What is said to a model, in our own words: messages, tools and the request; no vendor's type.

Assistant turns keep what a provider needs to continue them (`OpaquePart`) without anybody here reading it. A request is
a wish: which of its optional fields are really sent is decided by the adapter's capability snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from learngraph_kernel.errors import BadInput

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Thinking: TypeAlias = Literal["off", "low", "medium", "high"]

ROLES: tuple[str, ...] = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text."""

    text: str
    kind: ClassVar[str] = "text"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model wants called.

    Attributes:
        id: the provider's id, which the result must name.
        name: the tool.
        arguments: a JSON object; empty when `malformed` is set.
        malformed: the text of the arguments when it was not a JSON object; hand it back, never guess.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    malformed: str | None = None
    kind: ClassVar[str] = "tool_call"

    @classmethod
    def parse(cls, id: str, name: str, text: str) -> ToolCall:
        """A call from the text of its arguments, as a stream delivers it (empty text: no arguments)."""
        try:
            arguments = json.loads(text) if text.strip() else {}
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            return cls(id, name, arguments)
        return cls(id, name, {}, malformed=text)

    def arguments_text(self) -> str:
        """The arguments as a provider expects them back: JSON text, or what was malformed, verbatim."""
        if self.malformed is not None:
            return self.malformed
        return json.dumps(dict(self.arguments), ensure_ascii=False, sort_keys=True)

    def as_json(self) -> dict[str, Any]:
        body = {"kind": self.kind, "id": self.id, "name": self.name, "arguments": dict(self.arguments)}
        return body if self.malformed is None else {**body, "malformed": self.malformed}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, as text; `error` says that it is a failure the model should read as one."""

    call_id: str
    text: str
    error: bool = False
    kind: ClassVar[str] = "tool_result"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "call_id": self.call_id, "text": self.text, "error": self.error}


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """A provider's own item (signed thinking, continuation state); only the adapter named `provider` may read it."""

    provider: str
    data: Mapping[str, Any]
    kind: ClassVar[str] = "opaque"

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "provider": self.provider, "data": dict(self.data)}


Part: TypeAlias = TextPart | ToolCall | ToolResult | OpaquePart


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All text in it, tool results included, in order."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart | ToolResult))

    def as_json(self) -> dict[str, Any]:
        """JSON form, as kept in the ledger; `from_json` is the inverse."""
        return {"role": self.role, "parts": [part.as_json() for part in self.parts]}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Message:
        """Raises BadInput naming what is not a message."""
        if not isinstance(body, Mapping) or body.get("role") not in ROLES or not isinstance(body.get("parts"), list):
            raise BadInput("not a message", remedy=f"give role ({', '.join(ROLES)}) and a list of parts")
        return cls(body["role"], tuple(_part(part) for part in body["parts"]))


def _part(body: Any) -> Part:
    try:
        match body["kind"]:
            case TextPart.kind:
                return TextPart(str(body["text"]))
            case ToolCall.kind:
                return ToolCall(body["id"], body["name"], dict(body["arguments"]), body.get("malformed"))
            case ToolResult.kind:
                return ToolResult(body["call_id"], body["text"], bool(body.get("error")))
            case OpaquePart.kind:
                return OpaquePart(body["provider"], dict(body["data"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"not a message part: {body!r}", remedy="see learngraph_kernel.models.messages") from error
    raise BadInput(f"unknown kind of message part {body['kind']!r}", remedy="see learngraph_kernel.models.messages")


def system(text: str) -> Message:
    """A system message."""
    return Message("system", (TextPart(text),))


def user(text: str) -> Message:
    """A user message."""
    return Message("user", (TextPart(text),))


def assistant(text: str) -> Message:
    """An assistant message of text only."""
    return Message("assistant", (TextPart(text),))


def tool_results(results: Sequence[ToolResult]) -> Message:
    """The answers to one assistant turn's tool calls."""
    return Message("tool", tuple(results))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer: `schema` is the JSON Schema of its arguments (an object schema)."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a request may take.

    Attributes:
        no_output_s: seconds without any event before it counts as dead; one-off preparation is not counted.
        total_s: seconds for the whole request, retries included.
        attempts: how often it is tried at most; a failure after the first visible event is never retried.
    """

    no_output_s: float = 60.0
    total_s: float = 600.0
    attempts: int = 4

    def __post_init__(self) -> None:
        if not (self.no_output_s > 0 and self.total_s > 0 and self.attempts >= 1):
            raise BadInput("model limits must be positive", remedy="give seconds > 0 and attempts >= 1")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a declared model adds to each request made to it."""

    limits: Limits = field(default_factory=Limits)
    temperature: float | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None


@dataclass(frozen=True, slots=True)
class NormalizedRequest:
    """One request to a model.

    Attributes:
        model: the adapter's name for the model.
        messages: the conversation so far, oldest first.
        tools: what the model may call.
        response_schema: JSON Schema the answer should follow, where the model can be told so.
        temperature, max_output_tokens, thinking: sent only if set and if the capabilities allow them.
        limits: time-outs and attempts.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    response_schema: Mapping[str, Any] | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None
    limits: Limits = field(default_factory=Limits)
