"""A model that plays a script: deterministic, offline, and good enough for every test, demo and screenshot.

The same request gives the same events: text is cut at fixed places, ids are counted, tokens are computed from the text.
The one thing that is remembered is how often a rule has played for a conversation, so that `times` can let a retry
succeed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.models.capabilities import Capabilities
from learngraph_kernel.models.errors import ModelMisconfigured
from learngraph_kernel.models.events import (
    ContentBlockStarted,
    Cost,
    Finish,
    NormalizedEvent,
    ResponseCompleted,
    ResponseFailed,
    ResponseStarted,
    TextDelta,
    ThinkingSummaryDelta,
    ToolCallCompleted,
    ToolCallDelta,
    Usage,
    UsageUpdated,
)
from learngraph_kernel.models.messages import Defaults, NormalizedRequest, ToolCall
from learngraph_kernel.models.prices import Prices
from learngraph_kernel.models.script import (
    FAULTS,
    Call,
    Count,
    Delay,
    End,
    Fault,
    Found,
    Say,
    Script,
    Think,
    choose,
    parse_script,
)

BYTES_PER_TOKEN = 4


class ScriptedModel:
    """The adapter.

    Args:
        script: what to play.
        defaults: what requests have unless they bring their own.
        prices: what tokens cost, if anything.
        sleep: how `delay_ms` waits, in seconds.
    """

    def __init__(
        self,
        script: Script,
        *,
        defaults: Defaults | None = None,
        prices: Prices | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.script = script
        self.model = script.model
        self.defaults = defaults or Defaults()
        self.capabilities: Capabilities = script.capabilities
        self._prices = prices
        self._sleep = sleep
        self._played: Counter[tuple[str, str]] = Counter()

    async def prepare(self) -> None:
        """Nothing to prepare."""

    async def invoke(self, request: NormalizedRequest) -> AsyncIterator[NormalizedEvent]:
        """Plays the first rule that fits. Raises ScriptUnmatched."""
        found = choose(self.script, request)
        key = _conversation_key(request)
        self._played[found.rule.name, key] += 1
        player = _Player(request, found, self.script.chunk, key)
        yield ResponseStarted(request.model, f"script-{key[:12]}")
        for step in found.rule.steps:
            match step:
                case Delay(seconds):
                    await self._sleep(seconds)
                case Fault() if step.times is None or self._played[found.rule.name, key] <= step.times:
                    if step.kind == "silence":
                        await asyncio.Event().wait()
                    code, status, reason = FAULTS[step.kind]
                    yield ResponseFailed(code, reason, request.model, status, step.retry_after_s)
                    return
                case _:
                    for event in player.play(step):
                        yield event
        for event in player.end(self._prices):
            yield event


class _Player:
    """Turns steps into events, counting blocks, calls and output as it goes."""

    def __init__(self, request: NormalizedRequest, found: Found, chunk: int, key: str) -> None:
        self._request = request
        self._found = found
        self._chunk = chunk
        self._key = key
        self._blocks = 0
        self._calls = 0
        self._said: list[str] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    def play(self, step: Any) -> list[NormalizedEvent]:
        match step:
            case Say(text):
                filled = _fill(text, self._found.groups)
                return self._block("text", filled, TextDelta)
            case Think(text):
                return self._block("thinking", _fill(text, self._found.groups), ThinkingSummaryDelta)
            case Call():
                return self._call(step)
            case Count(usage):
                self._usage = usage
            case End(finish):
                self._finish = finish
        return []

    def _block(
        self, kind: Any, text: str, delta: type[TextDelta] | type[ThinkingSummaryDelta]
    ) -> list[NormalizedEvent]:
        index = self._blocks
        self._blocks += 1
        self._said.append(text)
        pieces = [text[at : at + self._chunk] for at in range(0, len(text), self._chunk)]
        return [ContentBlockStarted(index, kind), *(delta(index, piece) for piece in pieces)]

    def _call(self, step: Call) -> list[NormalizedEvent]:
        index = self._blocks
        self._blocks += 1
        self._calls += 1
        call_id = step.id or f"call_{self._key[:8]}_{self._calls}"
        arguments = {key: _fill_all(value, self._found.groups) for key, value in step.arguments.items()}
        call = ToolCall(call_id, step.name, arguments)
        self._said.append(call.arguments_text())
        return [
            ContentBlockStarted(index, "tool_call"),
            ToolCallDelta(index, call_id, step.name, call.arguments_text()),
            ToolCallCompleted(index, call),
        ]

    def end(self, prices: Prices | None) -> list[NormalizedEvent]:
        usage = self._usage or Usage(input=_input_tokens(self._request), output=_tokens("".join(self._said)))
        finish: Finish = self._finish or ("tool_calls" if self._calls else "stop")
        cost: Cost | None = prices.cost(usage) if prices else None
        return [UsageUpdated(usage), ResponseCompleted(finish, cost)]


def _fill(text: str, groups: Mapping[str, str]) -> str:
    """Puts the named groups in; any other `${…}` stays as it is."""
    return re.sub(r"\$\{(\w+)\}", lambda found: groups.get(found[1], found[0]), text)


def _fill_all(value: Any, groups: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _fill(value, groups)
    if isinstance(value, Mapping):
        return {key: _fill_all(item, groups) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill_all(item, groups) for item in value]
    return value


def _tokens(text: str) -> int:
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def _conversation_key(request: NormalizedRequest) -> str:
    body = [request.model, *(message.as_json() for message in request.messages)]
    return sha256_hex(json.dumps(body, sort_keys=True, ensure_ascii=False, default=str).encode())


def _input_tokens(request: NormalizedRequest) -> int:
    tools = [json.dumps([tool.name, tool.description, dict(tool.schema)], sort_keys=True) for tool in request.tools]
    return _tokens("".join([*(json.dumps(message.as_json(), sort_keys=True) for message in request.messages), *tools]))


def read_script(path: Path) -> Script:
    """A script from its YAML file.

    Raises:
        ModelMisconfigured: no such file, not UTF-8 YAML, or not a script; the place is named.
    """
    try:
        body = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelMisconfigured(
            f"the script cannot be read: {reason}", where=str(path), remedy="check `script` in learngraph.toml"
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelMisconfigured(f"not YAML: {error}", where=str(path), remedy="correct the file") from error
    return parse_script(body, where=path.name)
