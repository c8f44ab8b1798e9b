"""Reading on in a result that was too long to be shown whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from learngraph_kernel.errors import BadInput
from learngraph_kernel.tools.builtin.bench import Bench
from learngraph_kernel.tools.builtin.schemas import closed, text, whole
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

OwnsResult: TypeAlias = Callable[[str, str], Awaitable[bool]]
"""(session, sha256) → whether a call of that session gave it."""

PAGE = 8_000
"""Characters of one answer."""


class UnknownResult(BadInput):
    """No result of this conversation has that reference."""

    code = "unknown_result"


def result_tools(bench: Bench, owns: OwnsResult) -> tuple[Tool, ...]:
    """`read_result`; `owns` says whether a stored result belongs to a conversation."""

    async def read_result(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        reference, offset = arguments["artifact"], arguments.get("offset", 0)
        if not await owns(context.scope.session_id, reference):
            raise UnknownResult("there is no such result", where=reference, remedy="give the reference a result named")
        whole_text = (await asyncio.to_thread(bench.store.artifacts.read, reference)).decode()
        page = whole_text[offset : offset + PAGE]
        return ToolResult("ok", {"text": page, "offset": offset, "characters": len(whole_text)})

    return (
        Tool(
            ToolSpec(
                "read_result",
                {"en": "Read a full result", "zh": "读取完整结果"},
                "Reads on in a result of this conversation that was shortened.",
                closed(
                    {
                        "artifact": text("the reference that the shortened result names", longest=64),
                        "offset": whole("first character", least=0, most=100_000_000, default=0),
                    },
                    required=["artifact"],
                ),
                frozenset({Effect.READ}),
                origin="untrusted",
            ),
            read_result,
        ),
    )
