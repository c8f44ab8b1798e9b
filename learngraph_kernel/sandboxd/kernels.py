"""Kernel containers: started for a run, or taken warm from the pool, and destroyed afterwards; never used twice.

A warm kernel is started before anybody asks, in folders that sandboxd makes; who gets it uses those folders. So a
kernel finds its broker and its ticket by name in its folder (`containers`), not in its environment. A kernel outlives a
restart of sandboxd, but not its client: it goes when the process that asked for it ends, or when nobody has asked about
it for the length of its lease.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotFound, OverCapacity
from learngraph_kernel.sandboxd import capacity
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.fitness import refuse_unfit_engine
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.kernel_folders import folder_full, open_folders, remove_sockets
from learngraph_kernel.sandboxd.kernel_life import KernelLife, kernels
from learngraph_kernel.sandboxd.kernel_requests import check_request, new_row, shown
from learngraph_kernel.sandboxd.processes import process_alive, process_identity
from learngraph_kernel.sandboxd.records import KERNEL_ACTIVE, Row
from learngraph_kernel.sandboxd.warm_pool import WarmPool

SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2")


class Kernels:
    """All kernels, the warm ones among them."""

    def __init__(self, core: Core, images: Images, *, temporary: Path | None = None) -> None:
        self._core, self._images = core, images
        self._life = KernelLife(core, (temporary or Path(tempfile.gettempdir())).resolve())
        self.pool = WarmPool(core, images, self._life)

    async def start(self, caller: Caller, request: Mapping[str, Any], key: str) -> Row:
        """A kernel for a run: warm when there is one and the request leaves image and folders to us.

        Args:
            request: `run`; optionally `image`, `folder` and `granted` (made by the caller), `environment`.

        Raises:
            BadRequest, Forbidden: a field. OverCapacity, NotReady.
        """
        wanted = check_request(request, caller.peer.uid, self._core.settings.kernel_roots)
        identity = {"call": "kernels", "request": dict(request)}
        async with self._core.lock("key", caller.owner, key):
            known = await self._core.workers.record(self._core.remembered, caller.owner, key, identity)
            if known is not None:
                return await self._again(known)
            await refuse_unfit_engine(self._core)
            image = await self._images.require(wanted["image"])
            row = None
            if wanted["folder"] is None and not wanted["environment"] and image == await self._images.require():
                row = await self.pool.take(caller, wanted["run"], image, key, identity)
            if row is None:
                row = await self._start_cold(caller, wanted, image, key, identity)
        self._core.workers.spawn(self.pool.refill(), "refill warm kernels")
        return shown(row)

    async def _again(self, known: Row) -> Row:
        row = await self._core.workers.record(self._core.records.get, kernels, known["resource"])
        if row is None:
            raise NotFound("this kernel is gone", code="no_such_kernel")
        return shown(row)

    # Cold

    async def _start_cold(self, caller: Caller, wanted: dict[str, Any], image: str, key: str, identity: Any) -> Row:
        ours = wanted["folder"] is None
        made = await self._life.make_folders() if ours else (wanted["folder"], wanted["granted"])
        process = process_identity(caller.peer.pid)
        now = self._core.clock()
        row = new_row(caller.owner, wanted["run"], image, made, ours=ours, warm=False, caller=process, now=now)
        try:
            await self._core.workers.run(open_folders, row, caller.peer.uid)
            await self._reserve(caller, row, key, identity)
        except BaseException:
            if ours:
                await self._life.remove_folders(row)
            raise
        try:
            return await self._life.launch(row, wanted["environment"], "running")
        except BaseException:
            # Nothing was created: the same key may try again.
            await self._core.workers.record(self._core.records.forget_key, caller.owner, key)
            raise

    async def _reserve(self, caller: Caller, row: Row, key: str, identity: Any) -> None:
        while True:
            try:
                async with self._core.gate.closed():
                    await self._core.workers.record(self._mark_starting, caller, row, key, identity)
                    return
            except OverCapacity as error:
                if error.code == "user_containers" or not await self.pool.evict():
                    raise

    def _mark_starting(self, caller: Caller, row: Row, key: str, identity: Any) -> None:
        records = self._core.records
        with records.transaction():
            capacity.judge(self._core.load(caller.owner), self._core.settings)
            records.insert(kernels, row)
            records.remember(caller.owner, key, digest(identity), row["id"], None, self._core.clock())

    # Again

    async def restart(self, caller: Caller, row: Row, environment: Mapping[str, Any]) -> Row:
        """A fresh kernel under the same id, in the same folders and with the same connection file.

        Whoever is connected to the old one reaches the new one without being told. Nothing of the old process is left;
        what it wrote into its folder is.

        Raises:
            BadRequest: the environment. Conflict: it is stopped, or being started. OverCapacity, NotReady.
        """
        check_request({"run": row["run"], "environment": environment}, caller.peer.uid, ())
        async with self._core.lock("kernel", row["id"]):
            old, row = row["container"], await self._mark_restarting(caller, row)
            try:
                # Before the engine says that the old one died, its row names it no more: this is no death.
                if old is not None:
                    await self._life.engine(self._core.engine.remove, old)
                await self._core.workers.run(remove_sockets, Path(row["folder"]))
            except BaseException:
                await asyncio.shield(self._life.finish(row, "failed", "the kernel could not be restarted"))
                raise
            return shown(await self._life.launch(row, environment, "running"))

    async def _mark_restarting(self, caller: Caller, row: Row) -> Row:
        async with self._core.gate.closed():
            return await self._core.workers.record(self._take_again, caller, row)

    def _take_again(self, caller: Caller, row: Row) -> Row:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            row = self._require(row["id"], caller.owner)
            if row["state"] not in ("running", "exited"):
                raise Conflict(f"the kernel is {row['state']}", code="kernel_not_running")
            if row["state"] == "exited":
                capacity.judge(self._core.load(caller.owner), self._core.settings)
            changes = {
                "state": "starting",
                "container": None,
                "warm": False,
                "seen": now,
                "finished": None,
                "exit_code": None,
                "reason": None,
            }
            records.update(kernels, row["id"], changes)
            return row | changes

    # While it runs

    def _require(self, identity: str, owner: str) -> Row:
        row = self._core.records.get(kernels, identity)
        if row is None or row["owner"] != owner:
            raise NotFound("there is no such kernel of yours", code="no_such_kernel")
        return row

    async def get(self, caller: Caller, identity: str) -> Row:
        """One of the caller's kernels. Raises NotFound."""
        return await self._core.workers.record(self._require, identity, caller.owner)

    async def list(self, caller: Caller) -> list[Row]:
        """The caller's kernels that are there."""
        mine = sa.select(kernels).where(kernels.c.owner == caller.owner, kernels.c.state.in_(KERNEL_ACTIVE))
        return await self._core.workers.record(self._core.records.rows, mine.order_by(kernels.c.created))

    async def state(self, row: Row) -> Row:
        """What a kernel is doing, asked of the engine; renews its lease."""
        if row["state"] == "running":
            facts = await self._life.engine(self._core.engine.facts, row["container"])
            if facts is None or not facts.running:
                row = await self._life.note_exit(row, None if facts is None else facts.exit_code)
            else:
                await self._core.workers.record(
                    self._core.records.update, kernels, row["id"], {"seen": self._core.clock()}
                )
        return row

    async def signal(self, row: Row, name: str) -> None:
        """Sends a signal to the kernel's first process; the init passes it on. Raises BadRequest, Conflict."""
        if name not in SIGNALS:
            raise BadRequest(f"signal must be one of {', '.join(SIGNALS)}", code="bad_signal")
        if row["state"] != "running":
            raise Conflict(f"the kernel is {row['state']}", code="kernel_not_running")
        await self._life.engine(self._core.engine.signal, row["container"], name)

    async def logs(self, row: Row, lines: int = 200) -> str:
        """The end of what the kernel's process printed outside of cells."""
        return str(await self._life.engine(self._core.engine.logs, row["container"], lines)) if row["container"] else ""

    async def delete(self, row: Row) -> None:
        """Destroys a kernel, and its folders when we made them. Safe to repeat."""
        await self._life.finish(row, "stopped", "stopped by its client")

    async def note_exit(self, row: Row, exit_code: int | None) -> Row:
        """As `KernelLife.note_exit`: the engine said that a kernel's process has ended."""
        return await self._life.note_exit(row, exit_code)

    async def lose(self, row: Row) -> None:
        """For a row whose container never was or is not any more."""
        await self._life.lose(row)

    async def sweep(self) -> None:
        """Ends kernels whose client is gone, whose time is up or whose folder is too full; renews the warm ones."""
        settings, now = self._core.settings, self._core.clock()
        active = sa.select(kernels).where(kernels.c.state.in_(("running", "warm")))
        for row in await self._core.workers.record(self._core.records.rows, active):
            age = now - row["created"]
            if row["state"] == "warm":
                if age >= settings.warm_age:
                    await self._life.finish(row, "stopped", "it was warm for too long", when=("warm",))
            elif row["caller"] is not None and not process_alive(row["caller"]):
                await self._life.finish(row, "stopped", "the process that asked for it ended")
            elif age >= settings.kernel_absolute:
                await self._life.finish(row, "stopped", "it reached its absolute age")
            elif now - row["seen"] >= settings.kernel_lease:
                await self._life.finish(row, "stopped", "nobody asked about it any more")
            elif await self._core.workers.run(folder_full, Path(row["folder"]), settings.workspace_bytes):
                await self._life.finish(row, "stopped", "its folder holds more than it may")
        await self.pool.refill()

    async def close(self) -> None:
        """Ends the warm kernels; the others belong to their runs and go on."""
        await self.pool.close()
