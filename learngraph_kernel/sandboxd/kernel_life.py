"""A kernel's container from its start to its end, whoever asked for it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.containers import kernel_container
from learngraph_kernel.sandboxd.core import Core, engine_refusal
from learngraph_kernel.sandboxd.engine_port import EngineFailed
from learngraph_kernel.sandboxd.kernel_folders import PORTS, make_folders, remove_folders
from learngraph_kernel.sandboxd.records import KERNEL_ACTIVE, Row

kernels = schema.kernels
POOL = "pool"
"""The owner of warm kernels until somebody gets one."""
READY_POLL = 0.02


class KernelLife:
    """Starts and ends containers of kernels; knows nothing of who may have one."""

    def __init__(self, core: Core, temporary: Path) -> None:
        self._core, self._temporary = core, temporary

    async def make_folders(self) -> tuple[Path, Path]:
        """Folder and granted folder, ours to remove."""
        return await self._core.workers.run(make_folders, self._temporary)

    async def remove_folders(self, row: Row) -> None:
        """Removes them, if we made them."""
        await self._core.workers.run(remove_folders, self._temporary, row)

    async def launch(self, row: Row, environment: Mapping[str, str], state: str) -> Row:
        """Creates and starts the container of a recorded kernel; a failure ends the record and leaves nothing.

        Raises:
            NotReady: the engine failed, or the kernel did not start in time.
        """
        # A name of its own for each container: the one before a restart may still be on its way out.
        core, name = self._core, f"lg-{row['id'].replace('_', '-')}-{secrets.token_hex(4)}"
        try:
            async with asyncio.timeout(core.settings.start_seconds):
                config = kernel_container(core.around, row, name, environment, core.clock())
                row["container"] = await core.workers.run(core.engine.create, name, config)
                await core.workers.run(core.engine.start, row["container"])
                if state == "warm":
                    await self._until_listening(row)
                changes = {"state": state, "container": row["container"], "seen": core.clock()}
                made = ("starting", "warming")
                if not await core.workers.record(core.records.update, kernels, row["id"], changes, when=made):
                    raise EngineFailed("the kernel was ended while it started")
                await core.workers.record(core.records.note_image, row["image"], core.clock())
        except BaseException as error:
            row["container"] = row["container"] or name
            await asyncio.shield(self.finish(row, "failed", f"start failed: {type(error).__name__}"))
            if isinstance(error, TimeoutError):
                raise engine_refusal(EngineFailed("the kernel did not start in time")) from error
            if isinstance(error, LearnGraphError):
                raise engine_refusal(error) from error
            raise
        core.counters["kernel_starts"] += 1
        return row | changes

    async def _until_listening(self, row: Row) -> None:
        """Returns when the kernel's sockets are there; fails as soon as its process has ended."""
        sockets = [Path(f"{row['folder']}/k-{number}") for number in range(1, len(PORTS) + 1)]
        for turn in itertools.count():
            if all(path.exists() for path in sockets):
                return
            if turn % 25 == 24:
                facts = await self._core.workers.run(self._core.engine.facts, row["container"])
                if facts is None or not facts.running:
                    raise EngineFailed("the kernel ended before it was ready")
            await asyncio.sleep(READY_POLL)

    async def note_exit(self, row: Row, exit_code: int | None) -> Row:
        """Records that a kernel's process has ended; its container is removed, its folders wait for `delete`."""
        reason = "out of memory, or killed" if exit_code == 137 else "the kernel's process ended"
        changes = {
            "state": "exited",
            "exit_code": exit_code,
            "reason": reason,
            "finished": self._core.clock(),
        }
        await self._core.workers.record(self._core.records.update, kernels, row["id"], changes, when=KERNEL_ACTIVE)
        with contextlib.suppress(LearnGraphError):  # the reaper's turn, then
            await self._core.workers.run(self._core.engine.remove, row["container"])
        if row["owner"] == POOL:
            await self.remove_folders(row)
        return row | changes

    async def lose(self, row: Row) -> None:
        """For a row whose container never was or is not any more."""
        await self.finish(row, "failed", "its container was gone when sandboxd looked")

    async def finish(self, row: Row, state: str, reason: str, when: tuple[str, ...] | None = None) -> None:
        """Ends a kernel: record, container, folders. With `when`, only one that is in one of these states."""
        changes = {"state": state, "reason": reason, "finished": self._core.clock()}
        active = KERNEL_ACTIVE if when is None else when
        changed = await self._core.workers.record(self._core.records.update, kernels, row["id"], changes, when=active)
        if when is not None and not changed:
            return
        if row["container"] is not None:
            with contextlib.suppress(LearnGraphError):
                await self._core.workers.run(self._core.engine.remove, row["container"])
        if row["ours"]:
            await self.remove_folders(row)

    async def engine(self, function: Any, *arguments: Any) -> Any:
        """A call of the engine's; its failure is an answer for the caller."""
        try:
            return await self._core.workers.run(function, *arguments)
        except LearnGraphError as error:
            raise engine_refusal(error) from error
