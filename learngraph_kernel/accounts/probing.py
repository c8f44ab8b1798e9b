"""What an endpoint understands, found by asking it: one small real request a question, and nothing is assumed.

A question is a request that carries one more field. Refused (400, 422) means that the field is never sent; a failure
that says nothing about the field leaves the cautious default and is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import ModelError
from learngraph_kernel.models.messages import Limits, NormalizedRequest, Tool, user
from learngraph_kernel.models.port import Completion, ModelAdapter, complete

BARE = Capabilities(tools=False, temperature=False, stream_usage=False, output_limit="none")
LIMITS = Limits(no_output_s=60, total_s=120, attempts=2)
PING = Tool("ping", "Answers pong.", {"type": "object", "properties": {}, "additionalProperties": False})
SHAPE = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
ACCEPTED, REFUSED = "accepted", "refused"


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found, and how each question was answered."""

    capabilities: Capabilities
    seen: dict[str, str]


async def probe(
    opened: Callable[[Capabilities], ModelAdapter],
    *,
    known_windows: Callable[[], Awaitable[tuple[int | None, int | None]]],
) -> Probed:
    """Asks an endpoint what it understands.

    Args:
        opened: the adapter of the model, sending what these capabilities allow.
        known_windows: context window and longest output of the model in tokens, where a list says so.

    Raises:
        ModelError: the endpoint does not answer a plain question; nothing can be told then.
    """
    seen: dict[str, str] = {}
    found = BARE
    await _ask(opened(found), "Say ok.")
    seen["plain"] = ACCEPTED

    async def question(name: str, candidate: Capabilities, text: str = "Say ok.", **more: Any) -> Completion | None:
        try:
            answer = await _ask(opened(candidate), text, **more)
        except ModelError as error:
            refused = error.code == "model_request_refused"
            seen[name] = REFUSED if refused else f"not told: {error.code}"
            return None
        seen[name] = ACCEPTED
        return answer

    answer = await question("stream_usage", replace(found, stream_usage=True))
    if answer is not None:
        found = replace(found, stream_usage=True)
        seen["stream_usage"] = ACCEPTED if answer.usage is not None else "accepted, but no tokens were told"
    if await question("temperature", replace(found, temperature=True), temperature=0.0):
        found = replace(found, temperature=True)
    for field in ("max_tokens", "max_completion_tokens"):
        if await question(field, replace(found, output_limit=field), max_output_tokens=64):
            found = replace(found, output_limit=field)
            break
    answer = await question("tools", replace(found, tools=True), "Call the tool ping now.", tools=(PING,))
    if answer is not None and answer.tool_calls:
        found = replace(found, tools=True)
    elif answer is not None:
        seen["tools"] = "accepted, but no call came back"
    for form in ("json_schema", "json_object"):
        candidate = replace(found, structured_output=form)
        if await question(form, candidate, 'Answer with the JSON {"ok": true}.', response_schema=SHAPE):
            found = candidate
            break
    if await question("thinking", replace(found, thinking="switchable"), thinking="low"):
        found = replace(found, thinking="switchable")
    window, longest = await known_windows()
    return Probed(replace(found, context_window=window, max_output_tokens=longest), seen)


async def _ask(adapter: ModelAdapter, text: str, **more: Any) -> Completion:
    return await complete(adapter, NormalizedRequest(adapter.model, (user(text),), limits=LIMITS, **more))
