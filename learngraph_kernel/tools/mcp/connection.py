"""One MCP server, through the official SDK, connected in a task of its own. The only importer of `mcp`.

The SDK ties a connection to the task that opened it. So one task opens it, answers requests from a queue one after
the other, and closes it; a server that dies fails what is being asked and is connected to anew by the next request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.tools.mcp.config import McpConfig
from learngraph_kernel.tools.mcp.snapshot import McpTool, Snapshot

_log = logging.getLogger(__name__)
PAGES = 20
"""Of a list that is paged; a server that goes on is cut there, and says so in its snapshot."""


class McpUnavailable(Unavailable):
    """The server cannot be reached, or does not speak MCP."""

    code = "mcp_unavailable"


class McpFailed(LearnGraphError):
    """The server answered with an error."""

    code = "mcp_failed"


@dataclass
class _Request:
    work: Callable[[Any], Awaitable[Any]]
    answer: asyncio.Future[Any]


class McpConnection:
    """A connection that is opened when it is needed."""

    def __init__(self, config: McpConfig, environ: Mapping[str, str]) -> None:
        self._config, self._environ = config, environ
        self._requests: asyncio.Queue[_Request | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def snapshot(self) -> Snapshot:
        """What the server says of itself now. Raises McpUnavailable, McpFailed."""
        snapshot: Snapshot = await self._ask(_snapshot)
        return snapshot

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Calls a tool: `{"content": […], "structured", "error"}`. Raises McpUnavailable, McpFailed."""

        async def work(client: Any) -> dict[str, Any]:
            answer = await client.call_tool(tool, dict(arguments))
            content = [_content(item) for item in answer.content]
            structured = getattr(answer, "structured_content", None)
            return {"content": content, "structured": structured, "error": bool(answer.is_error)}

        result: dict[str, Any] = await self._ask(work)
        return result

    async def close(self) -> None:
        """Ends the connection and its program."""
        if self._task is not None and not self._task.done():
            self._requests.put_nowait(None)
            try:
                async with asyncio.timeout(5):
                    await self._task
            except TimeoutError:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def _ask(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        from mcp import MCPError

        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._serve())
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._requests.put_nowait(_Request(work, answer))
        try:
            async with asyncio.timeout(self._config.seconds):
                return await answer
        except TimeoutError as error:
            self._task.cancel()  # whatever it was doing: the next request connects anew
            raise self._unavailable(f"it did not answer within {self._config.seconds:.0f} s") from error
        except MCPError as error:
            raise McpFailed(
                f"the MCP server {self._config.name!r} refused: {str(error)[:300]}", where=self._config.where
            ) from error

    async def _serve(self) -> None:
        """Opens the connection and answers requests until it is closed or breaks."""
        from mcp import Client

        request: _Request | None = None
        try:
            async with Client(self._target(), read_timeout_seconds=self._config.seconds) as client:
                while (request := await self._requests.get()) is not None:
                    try:
                        result = await request.work(client)
                    except Exception as error:
                        _fail(request, error)
                        if not _still_there(error):
                            raise
                    else:
                        if not request.answer.done():
                            request.answer.set_result(result)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  the SDK raises groups; whoever waits is told
            _log.info("MCP server %s: %s", self._config.name, error)
            self._fail_all(request, error)

    def _fail_all(self, request: _Request | None, error: BaseException) -> None:
        told: BaseException = error
        if not isinstance(error, LearnGraphError):
            said = f": {str(error)[:200]}" if str(error) else ""
            told = self._unavailable(f"{type(error).__name__}{said}")
        if request is not None:
            _fail(request, told)
        while not self._requests.empty():
            waiting = self._requests.get_nowait()
            if waiting is not None:
                _fail(waiting, told)

    def _target(self) -> Any:
        from mcp import StdioServerParameters

        secrets = self._config.secrets(self._environ)
        if self._config.url is None:
            program, *arguments = self._config.command
            path = {"PATH": self._environ.get("PATH", "/usr/bin:/bin")}
            return StdioServerParameters(command=program, args=arguments, env={**path, **secrets})
        if not secrets:
            return self._config.url
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        return streamable_http_client(self._config.url, http_client=create_mcp_http_client(headers=secrets))

    def _unavailable(self, reason: str) -> McpUnavailable:
        return McpUnavailable(
            f"the MCP server {self._config.name!r} cannot be used: {reason}",
            where=self._config.where,
            remedy="start it, or take it out of learngraph.toml",
        )


def _fail(request: _Request, error: BaseException) -> None:
    if not request.answer.done():
        request.answer.set_exception(error)


def _still_there(error: Exception) -> bool:
    """Whether a failure was the answer of a server that is there, and not the end of the connection."""
    from mcp import MCPError
    from mcp.types import CONNECTION_CLOSED

    return isinstance(error, MCPError) and error.code != CONNECTION_CLOSED


async def _snapshot(client: Any) -> Snapshot:
    info = client.server_info
    capabilities = client.server_capabilities
    tools = await _all(client.list_tools, "tools") if capabilities.tools is not None else []
    resources = await _all(client.list_resources, "resources") if capabilities.resources is not None else []
    prompts = await _all(client.list_prompts, "prompts") if capabilities.prompts is not None else []
    identity = {
        "name": info.name,
        "version": info.version,
        "protocol": client.protocol_version,
        "instructions": client.instructions,
    }
    return Snapshot(
        identity,
        tuple(_tool(tool) for tool in tools),
        tuple(_plain(item) for item in resources),
        tuple(_plain(item) for item in prompts),
    )


async def _all(listing: Any, name: str) -> list[Any]:
    """Every page of a list. The SDK may keep lists; what is there *now* is the point of a snapshot."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await listing(cursor=cursor, cache_mode="refresh")
        found += getattr(page, name)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _tool(tool: Any) -> McpTool:
    annotations = {} if tool.annotations is None else _plain(tool.annotations)
    return McpTool(tool.name, tool.title or "", tool.description or "", dict(tool.input_schema), annotations)


def _plain(item: Any) -> dict[str, Any]:
    body: dict[str, Any] = item.model_dump(mode="json", exclude_none=True, by_alias=True)
    return body


def _content(item: Any) -> dict[str, Any]:
    """A piece of a result: text as it is, of anything else what it is."""
    if item.type == "text":
        return {"type": "text", "text": item.text}
    body = _plain(item)
    return {"type": item.type, "media_type": body.get("mimeType"), "characters": len(str(body.get("data", "")))}
