"""Warm kernels: started before anybody asks, bounded in number, age and memory; each is taken once or thrown away."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd import capacity
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.fitness import refuse_unfit_engine
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.kernel_folders import hand_over
from learngraph_kernel.sandboxd.kernel_life import POOL, KernelLife, kernels
from learngraph_kernel.sandboxd.kernel_requests import new_row
from learngraph_kernel.sandboxd.processes import process_identity
from learngraph_kernel.sandboxd.records import Row

_log = logging.getLogger(__name__)
REFILL_PAUSE = 60.0
"""After a warm kernel that did not start: whatever was wrong is not mended by trying every few seconds."""


class WarmPool:
    """The warm kernels of a daemon."""

    def __init__(self, core: Core, images: Images, life: KernelLife) -> None:
        self._core, self._images, self._life = core, images, life
        self._refilling = asyncio.Lock()
        self._not_before = 0.0
        self.closing = False

    async def take(self, caller: Caller, run: str, image: str, key: str, identity: Any) -> Row | None:
        """A warm kernel for a run, now the caller's; None when there is none of this image."""
        async with self._core.gate.closed():
            row = await self._core.workers.record(self._mark_taken, caller, run, image, key, identity)
        if row is None:
            return None
        facts = await self._life.engine(self._core.engine.facts, row["container"])
        if facts is None or not facts.running:
            await self._life.finish(row, "failed", "the warm kernel had died")
            return None
        await self._core.workers.run(hand_over, row, caller.peer.uid)
        self._core.counters["warm_kernels_used"] += 1
        return row

    def _mark_taken(self, caller: Caller, run: str, image: str, key: str, identity: Any) -> Row | None:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            warm = sa.select(kernels).where(kernels.c.state == "warm", kernels.c.image == image)
            row = records.row(warm.order_by(kernels.c.created))
            if row is None:
                return None
            load = self._core.load(caller.owner)
            if load.user >= self._core.settings.active_per_user:
                capacity.judge(load, self._core.settings)
            changes = {
                "owner": caller.owner,
                "run": run,
                "state": "running",
                "seen": now,
                "caller": process_identity(caller.peer.pid),
            }
            records.update(kernels, row["id"], changes)
            row |= changes
            records.remember(caller.owner, key, digest(identity), row["id"], None, now)
        return row

    async def refill(self) -> None:
        """Starts warm kernels until there are enough, as far as the guard rails and the pool's memory allow."""
        settings = self._core.settings
        size = min(settings.warm_kernels, settings.warm_memory // max(settings.container_memory, 1))
        async with self._refilling:
            while not self.closing:
                waiting = kernels.c.state.in_(("warm", "warming"))
                if await self._core.workers.record(self._core.records.count, kernels, waiting) >= size:
                    return
                if self._core.clock() < self._not_before:
                    return
                try:
                    await self._warm_one()
                except LearnGraphError as error:
                    _log.info("no warm kernel: %s", error)
                    self._not_before = self._core.clock() + REFILL_PAUSE
                    return

    async def _warm_one(self) -> None:
        await refuse_unfit_engine(self._core)
        image = await self._images.require()
        made = await self._life.make_folders()
        row = new_row(POOL, None, image, made, ours=True, warm=True, caller=None, now=self._core.clock())
        try:
            async with self._core.gate.closed():
                await self._core.workers.record(self._reserve_machine, row)
        except BaseException:
            await self._life.remove_folders(row)
            raise
        await self._life.launch(row, {}, "warm")

    def _reserve_machine(self, row: Row) -> None:
        with self._core.records.transaction():
            capacity.judge_machine(self._core.load(POOL), self._core.settings)
            self._core.records.insert(kernels, row)

    async def evict(self) -> bool:
        """Ends one warm kernel, so that somebody who asks for a container can have its place."""
        warm = sa.select(kernels).where(kernels.c.state == "warm")
        row = await self._core.workers.record(self._core.records.row, warm)
        if row is None:
            return False
        await self._life.finish(row, "stopped", "its place was needed", when=("warm",))
        return True

    async def close(self) -> None:
        """Ends them all and makes no more."""
        self.closing = True
        waiting = sa.select(kernels).where(kernels.c.state.in_(("warm", "warming")))
        for row in await self._core.workers.record(self._core.records.rows, waiting):
            await self._life.finish(row, "stopped", "sandboxd stopped")
