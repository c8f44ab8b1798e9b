"""The MCP servers of workspaces: connected when a turn begins, their tools registered for that workspace alone.

Before each call the server is asked again what it is. If it says anything else than what the tool was registered, shown
and perhaps granted with, the call is refused and the tools are registered anew: a person sees the new ones first.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.tools.mcp.config import McpConfig, mcp_servers
from learngraph_kernel.tools.mcp.connection import McpConnection
from learngraph_kernel.tools.mcp.snapshot import Snapshot
from learngraph_kernel.tools.mcp.specs import spec_of
from learngraph_kernel.tools.registry import Registry
from learngraph_kernel.tools.values import CallContext, Tool, ToolResult

_log = logging.getLogger(__name__)


class McpChanged(LearnGraphError):
    """The server is not what it was when the tool was offered."""

    code = "mcp_changed"


@dataclass
class _Server:
    config: McpConfig
    connection: McpConnection
    snapshot: Snapshot | None = None
    names: tuple[str, ...] = ()


class Toolbox:
    """Servers by workspace and name; `close` it before the loop ends."""

    def __init__(self, registry: Registry, environ: Mapping[str, str] | None = None) -> None:
        self._registry = registry
        self._environ = os.environ if environ is None else environ
        self._servers: dict[tuple[Path, str], _Server] = {}
        self._lock = asyncio.Lock()

    async def ready(self, workspace: Path) -> list[LearnGraphError]:
        """Connects what a workspace declares and registers its tools; what cannot be used, one error each.

        Raises:
            BadWorkspace: a declaration is wrong.
        """
        async with self._lock:
            declared = await asyncio.to_thread(mcp_servers, workspace)
            for key in [key for key in self._servers if key[0] == workspace]:
                if declared.get(key[1]) != self._servers[key].config:
                    await self._forget(key)
            errors = []
            for name, config in declared.items():
                server = self._servers.setdefault(
                    (workspace, name), _Server(config, McpConnection(config, self._environ))
                )
                try:
                    self._register(workspace, server, await server.connection.snapshot())
                except LearnGraphError as error:
                    errors.append(error)
                    self._unregister(workspace, server)
            return errors

    async def close(self) -> None:
        """Ends every connection."""
        async with self._lock:
            for key in list(self._servers):
                await self._forget(key)

    async def _forget(self, key: tuple[Path, str]) -> None:
        server = self._servers.pop(key)
        self._unregister(key[0], server)
        await server.connection.close()

    def _register(self, workspace: Path, server: _Server, snapshot: Snapshot) -> None:
        if server.snapshot is not None and server.snapshot.sha256 == snapshot.sha256:
            return
        self._unregister(workspace, server)
        names = []
        for tool in snapshot.tools:
            spec = spec_of(server.config, snapshot, tool, self._environ)
            try:
                self._registry.add(
                    Tool(spec, self._handler(workspace, server, tool.name, snapshot)),
                    seconds=server.config.seconds,
                    workspace=workspace,
                )
            except LearnGraphError as error:
                _log.warning("MCP tool %s of %s is not offered: %s", tool.name, server.config.name, error)
                continue
            names.append(spec.name)
        server.snapshot, server.names = snapshot, tuple(names)

    def _unregister(self, workspace: Path, server: _Server) -> None:
        for name in server.names:
            self._registry.remove(name, workspace)
        server.snapshot, server.names = None, ()

    def _handler(self, workspace: Path, server: _Server, tool: str, shown: Snapshot) -> Any:
        async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
            now = await server.connection.snapshot()
            if now.sha256 != shown.sha256:
                async with self._lock:
                    self._register(workspace, server, now)
                raise McpChanged(
                    f"the MCP server {server.config.name!r} has changed: {', '.join(shown.differences(now)[:5])}",
                    where=server.config.where,
                    remedy="nothing was called; look at the tool as it is now before you call it",
                )
            answer = await server.connection.call(tool, arguments)
            data = {"content": answer["content"]} | (
                {"structured": answer["structured"]} if answer["structured"] is not None else {}
            )
            return ToolResult("error" if answer["error"] else "ok", data)

        return handler
