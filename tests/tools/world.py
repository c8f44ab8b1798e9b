"""A small world for the desk: five kinds of effect that can be counted where they happen, and a clock to turn."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import functools
import threading
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.tools.approval_record import Approval
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.registry import Registry
from learngraph_kernel.tools.values import (
    Allowed,
    CallContext,
    Effect,
    NeedsApproval,
    Refused,
    Tool,
    ToolHandler,
    ToolResult,
    ToolScope,
    ToolSpec,
    ToolTicket,
)

ANA, BOB = "user:ana", "user:bob"
TEXT = {"type": "string", "maxLength": 200}


def runs(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Lets pytest call an async test."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def spec(name: str, effects: set[Effect], parameters: Mapping[str, Any] | None = None, **more: Any) -> ToolSpec:
    return ToolSpec(
        name,
        {"en": name},
        f"Does {name}.",
        closed(what=TEXT) if parameters is None else parameters,
        frozenset(effects),
        **more,
    )


async def silent(type: str, data: Mapping[str, Any]) -> None:
    """Progress that nobody watches."""


@dataclass
class Clock:
    """A clock that goes on by itself and can be turned."""

    offset: dt.timedelta = dt.timedelta(0)

    def __call__(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC) + self.offset

    def turn(self, **by: float) -> None:
        self.offset += dt.timedelta(**by)


@dataclass
class Outside:
    """An HTTP server on this machine that keeps what it was sent."""

    port: int = 0
    got: list[str] = field(default_factory=list)


@contextmanager
def outside() -> Iterator[Outside]:
    world = Outside()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            world.got.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer()

        def do_GET(self) -> None:
            world.got.append(self.path)
            self._answer()

        def _answer(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    world.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield world
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class World:
    """A home, a workspace, a server outside, and a desk that can be left and come back to.

    Attributes:
        done: what has really happened, by kind: read where the effect is, not where it was ordered.
    """

    home: Home
    workspace: Path
    server: Outside
    clock: Clock = field(default_factory=Clock)
    registry: Registry = field(default_factory=Registry)
    isolated: bool = True

    def __post_init__(self) -> None:
        (self.workspace / "rubbish").mkdir(parents=True)
        for name in ("one", "two", "three", "four"):
            (self.workspace / "rubbish" / name).touch()
        self.start()

    def start(self) -> None:
        self.store = Store.open(self.home, clock=self.clock)
        self.desk = Desk(self.store, self.registry, isolated=self.isolated)

    def restart(self) -> None:
        """What a new process finds: nothing in memory, everything on disk."""
        self.store.close()
        self.start()

    def scope(self, owner: str = ANA, turn: str = "n_1", **more: Any) -> ToolScope:
        return ToolScope(owner, "s_1", turn, "m_1", self.workspace, **more)

    # Acting

    async def ask(self, kind: Kind, call_id: str = "c_1", what: str | None = None, turn: str = "n_1") -> Approval:
        """Considers a call that needs a person; gives the pending approval."""
        arguments = {"what": what or kind.what}
        verdict = await self.desk.consider(self.scope(turn=turn), call_id, kind.spec.name, arguments)
        assert isinstance(verdict, NeedsApproval), verdict
        return await self.desk.approvals.find(verdict.approval_id)

    async def approve(self, approval: Approval, **more: Any) -> Approval:
        return await self.desk.approvals.decide(ANA, approval.id, "approve", approval.exact.hash, **more)

    async def allowed(self, approval: Approval, **more: Any) -> Allowed:
        verdict = await self.desk.decided(self.scope(**more), approval.id)
        assert isinstance(verdict, Allowed), verdict
        return verdict

    async def execute(self, allowed: Allowed, scope: ToolScope | None = None) -> ToolResult:
        return await self.desk.execute(context(scope or self.scope(), allowed.ticket), allowed.arguments)

    async def refused(self, name: str, arguments: Mapping[str, Any], call_id: str = "c_1", **more: Any) -> ToolResult:
        verdict = await self.desk.consider(self.scope(**more), call_id, name, arguments)
        assert isinstance(verdict, Refused), verdict
        return verdict.result

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str = "c_1") -> ToolResult:
        """A call that policy allows at once."""
        verdict = await self.desk.consider(self.scope(), call_id, name, arguments)
        assert isinstance(verdict, Allowed), verdict
        return await self.execute(verdict)


def context(scope: ToolScope, ticket: ToolTicket) -> CallContext:
    return CallContext(scope, ticket, silent)


def altered(ticket: ToolTicket, **changes: Any) -> ToolTicket:
    return dataclasses.replace(ticket, **changes)


# Five kinds of effect


@dataclass(frozen=True)
class Kind:
    """A tool whose effect can be counted.

    Attributes:
        what: an argument that works.
        other: another one.
        happened: what has really happened so far, read from the file system or the server.
    """

    spec: ToolSpec
    handler: ToolHandler
    what: str
    other: str
    happened: Callable[[], list[str]]

    def tool(self, **changes: Any) -> Tool:
        return Tool(dataclasses.replace(self.spec, **changes), self.handler)


KINDS = ("tool", "mcp", "acquisition", "deletion", "outside_write")


def kind(name: str, world: World) -> Kind:
    made = {
        "tool": _tool,
        "mcp": _mcp,
        "acquisition": _acquisition,
        "deletion": _deletion,
        "outside_write": _outside_write,
    }[name](world)
    world.registry.add(made.tool())
    return made


def _tool(world: World) -> Kind:
    file = world.workspace / "written"

    async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        with file.open("a") as stream:
            stream.write(arguments["what"] + "\n")
        return ToolResult("ok", {"written": arguments["what"]})

    return Kind(
        spec("note", {Effect.WRITE_WORKSPACE}, mode="ask"),
        handler,
        "first",
        "second",
        lambda: file.read_text().splitlines() if file.exists() else [],
    )


def _post(world: World) -> ToolHandler:
    def send(text: str) -> str:
        url = f"http://127.0.0.1:{world.server.port}/orders"
        with urllib.request.urlopen(urllib.request.Request(url, text.encode(), method="POST"), timeout=10) as answer:
            return str(answer.read().decode())

    async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        return ToolResult("ok", {"answer": await asyncio.to_thread(send, arguments["what"])})

    return handler


def _mcp(world: World) -> Kind:
    described = spec(
        "mcp__shop__order",
        {Effect.NETWORK, Effect.OUTSIDE_WRITE},
        origin="untrusted",
        authorisation={"endpoint": "https://shop.example/mcp", "manifest": "0" * 64},
    )
    return Kind(described, _post(world), "1 tea", "2 teas", lambda: list(world.server.got))


def _outside_write(world: World) -> Kind:
    return Kind(spec("send", {Effect.OUTSIDE_WRITE}), _post(world), "to ana", "to bob", lambda: list(world.server.got))


def _acquisition(world: World) -> Kind:
    def fetch(path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{world.server.port}{path}", timeout=10) as answer:
            return bytes(answer.read())

    async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await asyncio.to_thread(fetch, arguments["what"])
        (world.workspace / "fetched").write_bytes(data)
        return ToolResult("ok", {"bytes": len(data)})

    described = spec("acquire", {Effect.NETWORK, Effect.WRITE_WORKSPACE})
    return Kind(described, handler, "/a.csv", "/b.csv", lambda: list(world.server.got))


def _deletion(world: World) -> Kind:
    folder = world.workspace / "rubbish"
    there = sorted(path.name for path in folder.iterdir())

    async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        (folder / arguments["what"]).unlink()
        return ToolResult("ok", {"deleted": arguments["what"]})

    return Kind(
        spec("delete", {Effect.DELETE}),
        handler,
        "one",
        "two",
        lambda: [name for name in there if not (folder / name).exists()],
    )
