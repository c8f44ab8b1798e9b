"""Between our request and events and the chat-completion form that LiteLLM speaks: pure, imports no vendor.

Only fields named here are ever sent, and the optional ones only when the capability snapshot allows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.events import (
    BlockKind,
    ContentBlockStarted,
    Finish,
    NormalizedEvent,
    TextDelta,
    ThinkingSummaryDelta,
    ToolCallCompleted,
    ToolCallDelta,
    Usage,
)
from learngraph_kernel.models.messages import (
    Message,
    NormalizedRequest,
    OpaquePart,
    TextPart,
    ToolCall,
    ToolResult,
)

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def opaque_provider(model: str) -> str:
    """The `provider` of opaque items that a model of this name may be sent back: vendors don't read each other's."""
    return f"litellm/{model.partition('/')[0]}"


def wire_request(request: NormalizedRequest, capabilities: Capabilities) -> dict[str, Any]:
    """The fields of a request that may be sent."""
    fields: dict[str, Any] = {
        "model": request.model,
        "messages": [item for message in request.messages for item in _wire_message(message, request.model)],
        "stream": True,
    }
    if capabilities.stream_usage:
        fields["stream_options"] = {"include_usage": True}
    if request.tools and capabilities.tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
            }
            for tool in request.tools
        ]
    if request.temperature is not None and capabilities.temperature:
        fields["temperature"] = request.temperature
    if request.max_output_tokens is not None and capabilities.output_limit != "none":
        most = capabilities.max_output_tokens or request.max_output_tokens
        fields[capabilities.output_limit] = min(request.max_output_tokens, most)
    if request.thinking is not None and capabilities.thinking == "switchable":
        fields["reasoning_effort"] = "none" if request.thinking == "off" else request.thinking
    if request.response_schema is not None and capabilities.structured_output != "none":
        fields["response_format"] = _response_format(request.response_schema, capabilities)
    return fields


def _response_format(schema: Mapping[str, Any], capabilities: Capabilities) -> dict[str, Any]:
    if capabilities.structured_output == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(schema)}}


def _wire_message(message: Message, model: str) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [
            {
                "role": "tool",
                "tool_call_id": part.call_id,
                "content": f"error: {part.text}" if part.error else part.text,
            }
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
    text = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    body: dict[str, Any] = {"role": message.role, "content": text if text or not calls else None}
    for part in message.parts:
        if isinstance(part, OpaquePart) and part.provider == opaque_provider(model):
            body.update(part.data)
    if calls:
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text()}}
            for call in calls
        ]
    return [body]


def finish_of(reason: str) -> Finish:
    """The provider's finish reason; one we do not know means the model stopped by itself."""
    return _FINISH.get(reason, "stop")


def usage_of(reported: Any) -> Usage:
    """LiteLLM's usage object, split: its `prompt_tokens` include what was read from and written to a cache."""
    details = getattr(reported, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or getattr(reported, "cache_read_input_tokens", None) or 0
    created = getattr(reported, "cache_creation_input_tokens", None) or 0
    prompt = getattr(reported, "prompt_tokens", None) or 0
    return Usage(
        input=max(prompt - cached - created, 0),
        cached=cached,
        cache_creation=created,
        output=getattr(reported, "completion_tokens", None) or 0,
    )


class StreamReader:
    """Turns the deltas of one stream into events, opening blocks as their kind changes."""

    def __init__(self) -> None:
        self._index = -1
        self._kind: BlockKind | None = None
        self._calls: dict[int, _OpenCall] = {}  # by the provider's index
        self._closed: list[_OpenCall] = []
        self._thinking: list[dict[str, Any]] = []
        self.finish: str | None = None
        self.anything = False

    def read(self, choice: Any) -> Iterator[NormalizedEvent]:
        """Events of one chunk's choice."""
        delta = choice.delta
        thought = getattr(delta, "reasoning_content", None)
        if thought:
            yield from self._open("thinking")
            yield ThinkingSummaryDelta(self._index, thought)
        self._keep_thinking(getattr(delta, "thinking_blocks", None) or ())
        if delta.content:
            yield from self._open("text")
            yield TextDelta(self._index, delta.content)
        for piece in delta.tool_calls or ():
            yield from self._read_call(piece)
        if choice.finish_reason:
            self.finish = choice.finish_reason

    def _open(self, kind: BlockKind) -> Iterator[NormalizedEvent]:
        self.anything = True
        if self._kind != kind or kind == "tool_call":
            self._index += 1
            self._kind = kind
            yield ContentBlockStarted(self._index, kind)

    def _read_call(self, piece: Any) -> Iterator[NormalizedEvent]:
        place = piece.index or 0
        call = self._calls.get(place)
        if call is None or (piece.id and call.id and piece.id != call.id):  # some relays give every call index 0
            if call is not None:
                self._closed.append(call)
            yield from self._open("tool_call")
            call = self._calls[place] = _OpenCall(self._index)
        call.id = call.id or piece.id or ""
        call.name = call.name or piece.function.name or ""
        text = piece.function.arguments or ""
        call.text.append(text)
        yield ToolCallDelta(call.index, call.id, call.name, text)

    def _keep_thinking(self, blocks: Any) -> None:
        """Joins the pieces of signed thinking, which its provider wants back whole and unread."""
        for block in blocks:
            last = self._thinking[-1] if self._thinking else None
            if block.get("type") != "thinking" or last is None or last.get("signature") or last["type"] != "thinking":
                self._thinking.append(dict(block))
                continue
            last["thinking"] = (last.get("thinking") or "") + (block.get("thinking") or "")
            if block.get("signature"):
                last["signature"] = block["signature"]

    def calls(self) -> Iterator[ToolCallCompleted]:
        """The calls, complete, in the order they began; a call without an id gets a counted one."""
        for number, call in enumerate(sorted([*self._closed, *self._calls.values()], key=lambda call: call.index)):
            call_id = call.id or f"call_{number}"
            yield ToolCallCompleted(call.index, ToolCall.parse(call_id, call.name, "".join(call.text)))

    def opaque(self, model: str) -> tuple[OpaquePart, ...]:
        """What goes back with this turn."""
        if not self._thinking:
            return ()
        return (OpaquePart(opaque_provider(model), {"thinking_blocks": self._thinking}),)


class _OpenCall:
    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.text: list[str] = []
