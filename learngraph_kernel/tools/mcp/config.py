"""`[mcp.NAME]` in learngraph.toml.

```toml
[mcp.tickets]
command = ["tickets-mcp", "--readonly"]      # a program that speaks MCP on its standard streams; or
# url = "https://tickets.example.org/mcp"    # streamable HTTP
env = {TICKETS_TOKEN = "TICKETS_TOKEN"}      # variable of the program → variable of ours it is taken from
# headers = {Authorization = "TICKETS_AUTH"} # header → variable it is taken from
mode = "gated"                               # ask, gated (a standing grant is possible) or always; default gated
tools = {search = "always", create = "ask"}  # the same for single tools
seconds = 60
```

Secrets are never in the file: `env` and `headers` name variables. A program gets these and nothing else of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.data.workspace import BadWorkspace
from learngraph_kernel.errors import Unavailable
from learngraph_kernel.naming import suggestion
from learngraph_kernel.tools.values import Mode

_KEYS = ("command", "url", "env", "headers", "mode", "tools", "seconds")
_MODES: tuple[Mode, ...] = ("ask", "gated", "always")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


@dataclass(frozen=True, slots=True)
class McpConfig:
    """One server.

    Attributes:
        command: program and arguments; empty for a server that is reached by `url`.
        env, headers: name → variable of this process that its value is taken from.
        modes: tool → how its calls are approved; `mode` for the others.
        seconds: for connecting, and for one call.
        where: for messages.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = "gated"
    modes: Mapping[str, Mode] = field(default_factory=dict)
    seconds: float = 60.0
    where: str = "learngraph.toml"

    @property
    def endpoint(self) -> str:
        """Where the server is, as a grant is bound to it."""
        return self.url or " ".join(self.command)

    def secrets(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The values of `env` or `headers`. Raises Unavailable naming a variable that is not set."""
        wanted = self.headers if self.url else self.env
        for variable in wanted.values():
            if variable not in environ:
                raise Unavailable(
                    f"MCP server {self.name!r} needs the variable {variable}",
                    where=self.where,
                    remedy=f"set {variable}",
                )
        return {name: environ[variable] for name, variable in wanted.items()}

    def auth_fingerprint(self, environ: Mapping[str, str]) -> str:
        """Of the secrets, so that a grant does not outlive them; nothing of them can be read from it."""
        return sha256_hex(repr(sorted(self.secrets(environ).items())).encode())


def parse_mcp(tables: Mapping[str, Any], *, where: str) -> dict[str, McpConfig]:
    """The servers by name. Raises BadWorkspace naming the key."""
    return {name: _server(name, table, where) for name, table in tables.items()}


def _server(name: str, table: Any, where: str) -> McpConfig:
    def wrong(what: str, remedy: str) -> BadWorkspace:
        return BadWorkspace(f"[mcp.{name}] {what}", where=where, remedy=remedy)

    if not _NAME.match(name):
        raise wrong("is no name of a server", "small letters, digits and _, at most 40")
    if not isinstance(table, Mapping):
        raise wrong("must be a table", f"write [mcp.{name}]")
    for key in table:
        if key not in _KEYS:
            raise wrong(f"has no key {key!r}", suggestion(key, _KEYS, kind="keys"))
    command, url = table.get("command", []), table.get("url")
    if bool(command) == bool(url):
        raise wrong("needs either `command` or `url`", 'command = ["program", "argument"]')
    if command and (not isinstance(command, list) or not all(isinstance(word, str) and word for word in command)):
        raise wrong("`command` must be a list of texts", 'command = ["program", "argument"]')
    if url is not None and not (
        isinstance(url, str) and re.match(r"https://|http://(localhost|127\.0\.0\.1)[:/]", url)
    ):
        raise wrong("`url` must be https, or http on this machine", 'url = "https://…/mcp"')
    names = {key: _texts(key, table.get(key, {}), wrong) for key in ("env", "headers", "tools")}
    modes = {tool: _mode(mode, wrong) for tool, mode in names["tools"].items()}
    seconds = table.get("seconds", 60.0)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 3_600:
        raise wrong("`seconds` must be above 0 and at most 3600", "seconds = 60")
    return McpConfig(
        name,
        tuple(command),
        url,
        names["env"],
        names["headers"],
        _mode(table.get("mode", "gated"), wrong),
        modes,
        float(seconds),
        where,
    )


def _texts(key: str, value: Any, wrong: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
        raise wrong(f"`{key}` must be a table of texts", f'{key} = {{NAME = "…"}}')
    return dict(value)


def _mode(value: Any, wrong: Any) -> Mode:
    for mode in _MODES:
        if value == mode:
            return mode
    raise wrong(f"{value!r} is no mode", "ask, gated or always")


def mcp_servers(workspace: Path) -> dict[str, McpConfig]:
    """The servers of a workspace's learngraph.toml. Raises BadWorkspace."""
    from learngraph_kernel.data.workspace import load_workspace

    loaded = load_workspace(workspace)
    return parse_mcp(loaded.mcp, where=str(loaded.file or workspace))
