"""The brokers of both worlds: the real one, and one that checks nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import duckdb
import nbformat

from learngraph_kernel.broker import protocol
from learngraph_kernel.broker.server import BrokerServer
from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.data.workspace import find_workspace
from learngraph_kernel.runs.declaration import Declaration
from learngraph_kernel.runs.lifecycle import begin_run, new_state
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.sandboxd.hardening import GID, UID
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.sandbox.escape.planting import ROOT, World

TICKET, OTHER_TICKET = "t" * 32, "o" * 32
MAX_CALLS = 40


@contextlib.contextmanager
def brokers(world: World, place: Path) -> Iterator[None]:
    """Sockets `run/broker`, `run/expired` and `other/broker`, served until the end.

    Args:
        world: its parameters get the tickets.
        place: an empty folder for a workspace and a store.
    """
    world.parameters |= {"ticket": TICKET, "other ticket": OTHER_TICKET}
    loop, ready, done = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve(serving: contextlib.AbstractAsyncContextManager[None]) -> None:
        async with serving:
            for path in (world.run / "broker", world.run / "expired"):
                shutil.chown(path, UID, GID) if ROOT else path.chmod(0o777)
            ready.set()
            await done.wait()

    with _sessions(place) as sessions:
        serving = _real(world, *sessions) if world.hardened else _open(world)
        thread = threading.Thread(target=loop.run_until_complete, args=(serve(serving),))
        thread.start()
        try:
            assert ready.wait(20), "the brokers did not start"
            yield
        finally:
            loop.call_soon_threadsafe(done.set)
            thread.join()
            loop.close()


@contextlib.contextmanager
def _sessions(place: Path) -> Iterator[tuple[RunSession, RunSession, RunSession]]:
    """One run's session, the same with a ticket that has expired, and another run's."""
    root = place / "workspace"
    root.mkdir(parents=True)
    for name in ("shop", "secrets"):
        with duckdb.connect(str(root / f"{name}.duckdb")) as connection:
            connection.execute("create table orders as select 1 as id")
    sources = "".join(f'[sources.{name}]\nkind = "duckdb"\npath = "{name}.duckdb"\n' for name in ("shop", "secrets"))
    (root / "learngraph.toml").write_text(sources)
    found = find_workspace(root)
    plan = RunPlan(nbformat.v4.new_notebook(), "nb.ipynb", root, found, "python3", Declaration(), {}, formal=True)
    home = Home(place / "home")
    with Store.open(home) as store, contextlib.closing(found):

        def session(secret: str, seconds: float) -> RunSession:
            run = begin_run(store, plan, "user:ana")
            ticket = Ticket(secret, run, frozenset({"shop"}), MAX_CALLS, time.monotonic() + seconds)
            made = RunSession(new_state(store, home, plan, run), store.ledger, ticket, actor="user:ana")
            made.begin_cell("c0")
            return made

        yield session(TICKET, 300), session(TICKET, -1), session(OTHER_TICKET, 300)


@contextlib.asynccontextmanager
async def _real(world: World, run: RunSession, expired: RunSession, other: RunSession) -> AsyncIterator[None]:
    async with (
        BrokerServer(run, world.run / "broker"),
        BrokerServer(expired, world.run / "expired"),
        BrokerServer(other, world.base / "other/broker"),
    ):
        yield


@contextlib.asynccontextmanager
async def _open(world: World) -> AsyncIterator[None]:
    """Answers everybody, runs any SQL."""
    connection = duckdb.connect()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            message = json.loads(line)
            rows = connection.execute(message["params"]["sql"]).fetchall() if message["method"] == "query" else []
            writer.write(protocol.encode_message(protocol.success(message["id"], f"{len(rows)} rows")))
        await writer.drain()
        writer.close()

    paths = (world.run / "broker", world.run / "expired", world.base / "other/broker")
    servers = [await asyncio.start_unix_server(answer, path=str(path)) for path in paths]
    try:
        yield
    finally:
        for server in servers:
            server.close()
        connection.close()
