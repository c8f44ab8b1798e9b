"""The daemon put together: parts, background tasks, and the order in which they begin and end.

It starts without an engine as well, says `engine_unreachable` until there is one, and reconciles as soon as it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.sandbox.answers import BadRequest, Forbidden
from learngraph_kernel.sandbox.place import listening
from learngraph_kernel.sandboxd import folders, schema
from learngraph_kernel.sandboxd.auth import Authenticator, Caller
from learngraph_kernel.sandboxd.capacity import Gate
from learngraph_kernel.sandboxd.cgroups import cap_processors, release
from learngraph_kernel.sandboxd.commands import Commands
from learngraph_kernel.sandboxd.containers import Surroundings
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.egress import Egress, Network
from learngraph_kernel.sandboxd.engine_port import ContainerEvent, EnginePort, EventStream
from learngraph_kernel.sandboxd.fetch_pool import FetchPool
from learngraph_kernel.sandboxd.files import Files
from learngraph_kernel.sandboxd.grants import Grants
from learngraph_kernel.sandboxd.health import Health
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.kernel_life import kernels
from learngraph_kernel.sandboxd.kernels import Kernels
from learngraph_kernel.sandboxd.reconcile import Reconciler
from learngraph_kernel.sandboxd.records import ACTIVE, KERNEL_ACTIVE, Records, Row, begin, pragmas
from learngraph_kernel.sandboxd.sandboxes import Sandboxes
from learngraph_kernel.sandboxd.settings import Settings
from learngraph_kernel.sandboxd.storage import Storage
from learngraph_kernel.sandboxd.tickets import Tickets
from learngraph_kernel.sandboxd.workers import Workers
from learngraph_kernel.store.artifacts import ArtifactStore

_log = logging.getLogger(__name__)
LOCK_SECONDS, LOCK_POLL = 15.0, 0.05
ENGINE_RETRY = (0.5, 1.0, 2.0, 5.0, 10.0)


class AlreadyRunning(Unavailable):
    """Another sandboxd works on this state."""

    code = "sandboxd_running"


class Daemon:
    """All of sandboxd but its socket. `start`, then `close`.

    Attributes:
        core, images, files, sandboxes, commands, kernels, tickets, health, authenticator: what the API calls.
    """

    def __init__(
        self,
        settings: Settings,
        engine: EnginePort,
        *,
        clock: Callable[[], float] = time.time,
        network: Network | None = None,
    ) -> None:
        folders.private_folder(settings.state)
        self._lock = _lock(settings.state / "sandboxd.lock", settings.socket)
        for path in (settings.workspaces, settings.outputs, settings.service_keys):
            folders.private_folder(path)
        records = Records(settings.database)
        instance = records.fact("instance", secrets.token_hex(8))
        secret = bytes.fromhex(records.fact("ticket secret", secrets.token_hex(32)))
        workers = Workers()
        processors = os.cpu_count() or 1
        cgroup = cap_processors(f"learngraph-{instance}", settings.cpu_share * processors)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        around = Surroundings(settings, instance, cgroup, processors)
        gate = Gate(settings.state / "capacity.lock", workers)
        self.core = Core(settings, records, engine, workers, gate, around, clock, memory)
        shared = sa.create_engine(f"sqlite:///{settings.database}")
        event.listen(shared, "connect", pragmas)
        event.listen(shared, "begin", begin)
        self._shared = shared
        self.files = Files(settings, Storage(shared, ArtifactStore(settings.state / "blobs")), Grants(shared))
        self.images = Images(self.core)
        self.egress = Egress(self.core, network or Network())
        self.fetching = FetchPool(self.core, self.images, self.egress)
        self.sandboxes = Sandboxes(self.core, self.images, self.files, self.egress)
        self.commands = Commands(self.core, self.sandboxes, self.files)
        self.kernels = Kernels(self.core, self.images)
        self.core.make_room = self._make_room
        self.core.unrecorded = lambda: self.fetching.size
        self.tickets = Tickets(self.core, secret)
        self.health = Health(self.core, self.images)
        self.authenticator = Authenticator(os.geteuid(), settings.admit, settings.service_keys)
        self.reconciler = Reconciler(self.core, self.sandboxes, self.kernels, self.files, self.fetching)
        self.stopping = asyncio.Event()
        self.calls = Activity(clock)
        self._closing = False
        self._events: EventStream | None = None

    async def start(self) -> None:
        """Puts the records right, then begins the background tasks; an engine is not needed for that."""
        await self.reconciler.recover()
        await self.images.abandon()
        try:
            await self.reconciler.run(starting=True)
            settled = True
        except LearnGraphError as error:
            _log.warning("not reconciled yet: %s", error)
            settled = False
        workers = self.core.workers
        workers.spawn(self._reconcile_forever(settled), "reconcile")
        workers.spawn(self._sweep_forever(), "sweep")
        workers.spawn(self._watch_forever(), "engine events")

    async def _make_room(self) -> bool:
        return await self.kernels.pool.evict() or await self.fetching.evict()

    async def _reconcile_forever(self, settled: bool) -> None:
        pauses = iter(ENGINE_RETRY)
        while True:
            pause = self.core.settings.reconcile_every if settled else next(pauses, ENGINE_RETRY[-1])
            await asyncio.sleep(pause)
            try:
                # Nothing can have started before the engine first answered: until then it is still the beginning.
                await self.reconciler.run(starting=not settled and not self.sandboxes.live)
                settled, pauses = True, iter(ENGINE_RETRY)
            except LearnGraphError as error:
                _log.warning("not reconciled: %s", error)
                if settled:
                    await asyncio.sleep(ENGINE_RETRY[0])

    async def _sweep_forever(self) -> None:
        while True:
            for sweep in (self.sandboxes.sweep, self.kernels.sweep, self.fetching.sweep):
                try:
                    await sweep()
                except LearnGraphError as error:
                    _log.warning("sweep: %s", error)
            await asyncio.sleep(self.core.settings.sweep_every)

    async def _watch_forever(self) -> None:
        """Hears of containers that end. A thread of its own: the stream blocks for as long as nothing happens."""
        loop, pauses = asyncio.get_running_loop(), iter(ENGINE_RETRY)
        while not self._closing:
            try:
                await asyncio.to_thread(self._watch, loop)
                pauses = iter(ENGINE_RETRY)
            except LearnGraphError as error:
                _log.info("engine events: %s", error)
            await asyncio.sleep(next(pauses, ENGINE_RETRY[-1]))
            with contextlib.suppress(LearnGraphError):
                await self.reconciler.run(starting=False)  # for what ended while nobody listened

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._events = self.core.engine.events(self.core.around.instance)
        if self._closing:
            self._events.close()
        for happened in self._events:
            if happened.action == "die" and not self._closing:
                loop.call_soon_threadsafe(self._heard, happened)

    def _heard(self, happened: ContainerEvent) -> None:
        if not self._closing:
            self.core.workers.spawn(self._note_death(happened), "container died")

    async def _note_death(self, happened: ContainerEvent) -> None:
        mine = sa.select(kernels).where(kernels.c.container == happened.container, kernels.c.state.in_(KERNEL_ACTIVE))
        row = await self.core.workers.record(self.core.records.row, mine)
        if row is not None and row["state"] in ("running", "warm"):
            await self.kernels.note_exit(row, happened.exit_code)

    async def grant(self, caller: Caller, row: Row, body: dict[str, Any], key: str) -> Row:
        """Permission to delete, for one command. The same key gives the same grant."""
        paths, ttl = body.get("paths"), body.get("ttl", 600)
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise BadRequest("paths must be a list of paths below work/", code="bad_paths")
        if isinstance(ttl, bool) or not isinstance(ttl, int | float):
            raise BadRequest("ttl must be a number of seconds", code="bad_ttl")
        identity = {"call": "grants", "sandbox": row["id"], "request": body}
        async with self.core.lock("key", caller.owner, key):
            known = await self.core.workers.record(self.core.remembered, caller.owner, key, identity)
            if known is not None:
                return {"grant": known["resource"]}
            given = await self.core.workers.run(self.files.grant, row, paths, float(ttl), caller.owner)
            remember = self.core.records.remember
            now = self.core.clock()
            await self.core.workers.record(remember, caller.owner, key, digest(identity), given.id, None, now)
        return {"grant": given.id}

    def shut_down(self, caller: Caller) -> None:
        """Ends the daemon as SIGTERM does. Raises Forbidden for anybody but its own user and root."""
        if caller.peer.uid not in (0, os.geteuid()):
            raise Forbidden(
                "this sandboxd is not yours to stop",
                code="not_its_owner",
                remedy="its administrator stops it: systemctl stop sandboxd",
                zh=("您无权停止此 sandboxd", "请由管理员执行：systemctl stop sandboxd"),
            )
        self.stopping.set()

    async def idle_for(self) -> float:
        """Seconds since the last call ended, with nothing running; 0 while anything runs."""
        if self.calls.open or await self.core.workers.record(self._anything_runs):
            self.calls.touch()
        return self.calls.quiet()

    def _anything_runs(self) -> bool:
        records = self.core.records
        held = kernels.c.state.in_(tuple(state for state in KERNEL_ACTIVE if state not in ("warm", "warming")))
        return bool(
            self.fetching.size
            or records.count(kernels, held)
            or records.count(schema.sandboxes, schema.sandboxes.c.state.in_(ACTIVE))
            or records.count(schema.image_jobs, schema.image_jobs.c.state == "running")
        )

    async def collect(self) -> Row:
        """Applies time-outs, removes orphans and unnamed contents now."""
        await self.sandboxes.sweep()
        done = await self.reconciler.run(starting=False)
        freed = await self.core.workers.run(self.files.sweep)
        return {"containers": len(done.remove), "cold": len(done.cold), "contents": freed}

    async def close(self) -> None:
        """Ends workspaces' and warm containers; kernels of runs go on. Files and records stay."""
        self._closing = True
        self.kernels.pool.closing = True
        if self._events is not None:
            self._events.close()
        try:
            await self.sandboxes.close()
            await self.kernels.close()
            await self.fetching.close()
            await self.egress.close_all()
            await self.core.workers.settle()
            # What could not be removed when its time was, and what was still being made when its task was cancelled.
            await self.reconciler.run(starting=True)
        except LearnGraphError as error:
            _log.warning("containers are left to the next start: %s", error)
        await self.core.workers.close()
        if self.core.around.cgroup is not None:
            release(self.core.around.cgroup.lstrip("/"))
        self.core.records.close()
        self._shared.dispose()
        os.close(self._lock)


class Activity:
    """How many calls are being answered, and when the last one ended."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self.open = 0

    def touch(self) -> None:
        """Something happened just now."""
        self._last = self._clock()

    def quiet(self) -> float:
        """Seconds since then."""
        return self._clock() - self._last


def _lock(path: Path, served: Path) -> int:
    """One sandboxd a state folder, for as long as the descriptor is open.

    One that is on its way out (it holds the lock and serves no more) is waited for.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError as error:
            if listening(served) or time.monotonic() > deadline:
                os.close(descriptor)
                raise AlreadyRunning(
                    "another sandboxd works on this state folder", remedy="use that one, or stop it"
                ) from error
        time.sleep(LOCK_POLL)
