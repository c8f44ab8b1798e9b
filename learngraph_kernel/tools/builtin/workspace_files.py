"""The six tools of the closed box: write, read, list, execute, inspect, publish in the conversation's workspace.

The workspace is the conversation's own: its id is set by the platform and never taken from a model. What a script may
be is decided by sandboxd's policy (an interpreter and a script file, no inline code); these tools only pass it on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.client import SandboxClient, connected
from learngraph_kernel.tools.builtin.bench import Bench
from learngraph_kernel.tools.builtin.schemas import (
    PATH_LENGTH,
    SOURCE_LENGTH,
    closed,
    maybe_empty,
    several,
    text,
    whole,
)
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolHandler, ToolResult, ToolSpec

T = TypeVar("T")
SHOWN_CHARACTERS = 20_000
_PATH = text("path in the workspace, e.g. work/clean.py", longest=PATH_LENGTH)


class NotText(BadInput):
    """The file is not text; it can be inspected or published."""

    code = "not_text"


def sandbox_tools(bench: Bench) -> tuple[Tool, ...]:
    """Files and commands in the closed box."""
    box = _Box(bench)

    def tool(
        name: str, en: str, zh: str, description: str, schema: dict[str, Any], effects: set[Effect], run: ToolHandler
    ) -> Tool:
        hidden = frozenset({"chat_session_id"})
        properties = {**schema["properties"], "chat_session_id": text("set by the platform", longest=80)}
        required = [*schema["required"], "chat_session_id"]
        full = {**schema, "properties": properties, "required": required}
        return Tool(
            ToolSpec(
                name, {"en": en, "zh": zh}, description, full, frozenset(effects), origin="untrusted", hidden=hidden
            ),
            run,
        )

    return (
        tool(
            "sandbox_write",
            "Write a file in the box",
            "在沙箱中写文件",
            "Writes a text file in the conversation's workspace in the closed box (below work/).",
            closed({"path": _PATH, "text": maybe_empty("the file", longest=SOURCE_LENGTH)}, required=["path", "text"]),
            {Effect.WRITE_WORKSPACE},
            box.write,
        ),
        tool(
            "sandbox_read",
            "Read a file of the box",
            "读取沙箱文件",
            "The text of a file of the workspace in the box.",
            closed(
                {"path": _PATH, "offset": whole("first character", least=0, most=10**9, default=0)}, required=["path"]
            ),
            {Effect.READ},
            box.read,
        ),
        tool(
            "sandbox_list",
            "List files of the box",
            "列出沙箱文件",
            "The files of the workspace in the box, with sizes.",
            closed({"below": text("only below this folder", longest=PATH_LENGTH)}),
            {Effect.READ},
            box.list,
        ),
        tool(
            "sandbox_exec",
            "Run a script in the box",
            "在沙箱中运行脚本",
            "Runs `python work/script.py …` or `node work/script.js …` in the closed box. No inline code, no network. "
            "Numbers it computes cannot be cited.",
            closed(
                {
                    "argv": several(
                        text("an argument", longest=1_000), "interpreter, script, arguments", most=32, least=2
                    ),
                    "seconds": whole("time limit", least=1, most=180, default=60),
                },
                required=["argv"],
            ),
            {Effect.RUN_CODE, Effect.WRITE_WORKSPACE},
            box.exec,
        ),
        tool(
            "sandbox_inspect",
            "Inspect a file",
            "检查文件",
            "Kind, size, encoding, sheets and columns of a file, or the listing of an archive, without running it.",
            closed({"path": _PATH}, required=["path"]),
            {Effect.READ, Effect.RUN_CODE},
            box.inspect,
        ),
        tool(
            "sandbox_publish",
            "Publish a file",
            "发布文件",
            "Keeps a file of the box as an artifact of the conversation.",
            closed({"path": _PATH}, required=["path"]),
            {Effect.WRITE_WORKSPACE},
            box.publish,
        ),
    )


class _Box:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def _with(self, arguments: Mapping[str, Any], work: Callable[[SandboxClient, str], T]) -> T:
        """Work with the conversation's sandbox, made when there is none; in a thread, for the client blocks."""

        def go() -> T:
            with connected() as client:
                session = str(arguments["chat_session_id"])
                return work(client, client.create(session, key=f"chat:{session}").id)

        return await asyncio.to_thread(go)

    async def write(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = arguments["text"].encode()
        entry = await self._with(arguments, lambda client, box: client.put_file(box, arguments["path"], data))
        return ToolResult("ok", entry)

    async def read(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await self._with(arguments, lambda client, box: client.get_file(box, arguments["path"]))
        try:
            whole_text = data.decode()
        except UnicodeDecodeError as error:
            raise NotText(
                "the file is not UTF-8 text", where=arguments["path"], remedy="use sandbox_inspect or sandbox_publish"
            ) from error
        offset = arguments.get("offset", 0)
        page = whole_text[offset : offset + SHOWN_CHARACTERS]
        return ToolResult(
            "ok", {"path": arguments["path"], "text": page, "offset": offset, "characters": len(whole_text)}
        )

    async def list(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        files = await self._with(arguments, lambda client, box: client.files(box, arguments.get("below")))
        return ToolResult("ok", {"files": files})

    async def exec(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        seconds = float(arguments.get("seconds", 60))
        key = context.ticket.id

        def run(client: SandboxClient, box: str) -> dict[str, Any]:
            command = client.run(box, list(arguments["argv"]), timeout=seconds, key=key)
            return {
                "exit_code": command.exit_code,
                "state": command.state,
                "stdout": command.stdout.decode(errors="replace"),
                "stderr": command.stderr.decode(errors="replace"),
                "truncated": command.truncated,
            }

        data = await self._with(arguments, run)
        return ToolResult("ok" if data["exit_code"] == 0 else "error", data)

    async def inspect(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        key = context.ticket.id
        data = await self._with(arguments, lambda client, box: client.inspect(box, arguments["path"], key=key))
        return ToolResult("ok", data)

    async def publish(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await self._with(arguments, lambda client, box: client.get_file(box, arguments["path"]))
        sha256 = await asyncio.to_thread(self._bench.store.artifacts.put, data)
        assert sha256 == sha256_hex(data)
        name = arguments["path"].rsplit("/", 1)[-1]
        body = {"kind": "file", "name": name, "artifact": sha256, "bytes": len(data)}
        await context.emit("artifact", body)
        return ToolResult("ok", body)
