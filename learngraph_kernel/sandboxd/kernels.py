"""Kernel containers: started for a run, or taken warm from the pool, and destroyed afterwards; never used twice.

A warm kernel is started before anybody asks, in folders that sandboxd makes; who gets it uses those folders. So a
kernel finds its broker and its ticket by name in its folder (`containers`), not in its environment. A kernel outlives a
restart of sandboxd, but not its client: it goes when the process that asked for it ends, or when nobody has asked about
it for the length of its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotFound, OverCapacity
from learngraph_kernel.sandboxd import capacity, folders, schema
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.containers import (
    BROKER_SOCKET,
    CONNECTION_FILE,
    KERNEL_ENVIRONMENT,
    TICKET_FILE,
    kernel_container,
)
from learngraph_kernel.sandboxd.core import Core, engine_refusal
from learngraph_kernel.sandboxd.engine_port import EngineFailed
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.records import KERNEL_ACTIVE, Row, new_id
from learngraph_kernel.sandboxd.scan import Limits, scan
from learngraph_kernel.sandboxd.strictness import refuse_if_strict

_log = logging.getLogger(__name__)
kernels = schema.kernels
POOL = "pool"
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2")
READY_POLL = 0.02
REFILL_PAUSE = 60.0
"""After a warm kernel that did not start: whatever was wrong is not mended by trying every few seconds."""
GONE = ("exited", "stopped", "failed")


def shown(row: Row) -> Row:
    """What callers see: the paths are theirs to use, the container is not."""
    folder = row["folder"]
    return {
        "kernel": row["id"],
        "run": row["run"],
        "state": row["state"],
        "image": row["image"],
        "folder": folder,
        "granted": row["granted"],
        "connection_file": f"{folder}/{CONNECTION_FILE}",
        "broker_socket": f"{folder}/{BROKER_SOCKET}",
        "ticket_file": f"{folder}/{TICKET_FILE}",
        "warm": row["warm"],
        "exit_code": row["exit_code"],
        "reason": row["reason"],
        "created": row["created"],
    }


class Kernels:
    """All kernels, the warm ones among them."""

    def __init__(self, core: Core, images: Images, *, temporary: Path | None = None) -> None:
        self._core, self._images = core, images
        self._temporary = (temporary or Path(tempfile.gettempdir())).resolve()
        self._refilling = asyncio.Lock()
        self._not_before = 0.0
        self.closing = False

    async def start(self, caller: Caller, request: Mapping[str, Any], key: str) -> Row:
        """A kernel for a run: warm when there is one and the request leaves image and folders to us.

        Args:
            request: `run`; optionally `image`, `folder` and `granted` (made by the caller), `environment`.

        Raises:
            BadRequest, Forbidden: a field. OverCapacity, NotReady.
        """
        wanted = self._check(caller, request)
        identity = {"call": "kernels", "request": dict(request)}
        async with self._core.lock("key", caller.owner, key):
            known = await self._core.workers.record(self._core.remembered, caller.owner, key, identity)
            if known is not None:
                return await self._again(known)
            await refuse_if_strict(self._core)
            image = await self._images.require(wanted["image"])
            row = None
            if wanted["folder"] is None and not wanted["environment"] and image == await self._images.require():
                row = await self._take_warm(caller, wanted["run"], image, key, identity)
            if row is None:
                row = await self._start_cold(caller, wanted, image, key, identity)
        self._core.workers.spawn(self.refill(), "refill warm kernels")
        return shown(row)

    async def _again(self, known: Row) -> Row:
        row = await self._core.workers.record(self._core.records.get, kernels, known["resource"])
        if row is None:
            raise NotFound("this kernel is gone", code="no_such_kernel")
        return shown(row)

    def _check(self, caller: Caller, request: Mapping[str, Any]) -> dict[str, Any]:
        unknown = set(request) - {"run", "image", "folder", "granted", "environment"}
        if unknown:
            raise BadRequest(f"unknown field {sorted(unknown)[0]!r}", code="unknown_field")
        run = request.get("run")
        if not isinstance(run, str) or not 0 < len(run) <= 128 or not run.isprintable():
            raise BadRequest("run must be the id of a run", code="bad_run")
        environment = request.get("environment", {})
        if not isinstance(environment, dict) or not all(
            isinstance(v, str) and "\0" not in v for v in environment.values()
        ):
            raise BadRequest("environment must be an object of strings", code="bad_environment")
        foreign = set(environment) - KERNEL_ENVIRONMENT
        if foreign:
            raise BadRequest(
                f"a kernel's environment cannot have {sorted(foreign)[0]!r}",
                code="environment_not_allowed",
                remedy=f"allowed: {', '.join(sorted(KERNEL_ENVIRONMENT))}",
            )
        image = request.get("image")
        if image is not None and not isinstance(image, str):
            raise BadRequest("image must be an image id, sha256:…", code="bad_image")
        folder = granted = None
        if request.get("folder") is not None or request.get("granted") is not None:
            roots, uid = self._core.settings.kernel_roots, caller.peer.uid
            folder = folders.check_callers_folder(request.get("folder"), uid, roots)
            granted = folders.check_callers_folder(request.get("granted"), uid, roots)
            if folder == granted:
                raise BadRequest("folder and granted must be two folders", code="bad_folder")
        return {"run": run, "image": image, "folder": folder, "granted": granted, "environment": dict(environment)}

    # Warm

    async def _take_warm(self, caller: Caller, run: str, image: str, key: str, identity: Any) -> Row | None:
        async with self._core.gate.closed():
            row = await self._core.workers.record(self._mark_taken, caller, run, image, key, identity)
        if row is None:
            return None
        facts = await self._engine(self._core.engine.facts, row["container"])
        if facts is None or not facts.running:
            await self._finish(row, "failed", "the warm kernel had died")
            return None
        await self._core.workers.run(_hand_over, row, caller.peer.uid)
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
        await refuse_if_strict(self._core)
        image = await self._images.require()
        made = await self._core.workers.run(self._make_folders)
        row = _new_row(POOL, None, image, made, ours=True, warm=True, caller=None, now=self._core.clock())
        try:
            async with self._core.gate.closed():
                await self._core.workers.record(self._reserve_machine, row)
        except BaseException:
            await self._core.workers.run(self._remove_folders, row)
            raise
        await self._launch(row, {}, "warm")

    def _reserve_machine(self, row: Row) -> None:
        with self._core.records.transaction():
            capacity.judge_machine(self._core.load(POOL), self._core.settings)
            self._core.records.insert(kernels, row)

    async def evict_warm(self) -> bool:
        """Ends one warm kernel, so that somebody who asks for a container can have its place."""
        warm = sa.select(kernels).where(kernels.c.state == "warm")
        row = await self._core.workers.record(self._core.records.row, warm)
        if row is None:
            return False
        await self._finish(row, "stopped", "its place was needed", when=("warm",))
        return True

    # Cold

    async def _start_cold(self, caller: Caller, wanted: dict[str, Any], image: str, key: str, identity: Any) -> Row:
        ours = wanted["folder"] is None
        made = await self._core.workers.run(self._make_folders) if ours else (wanted["folder"], wanted["granted"])
        process = process_identity(caller.peer.pid)
        now = self._core.clock()
        row = _new_row(caller.owner, wanted["run"], image, made, ours=ours, warm=False, caller=process, now=now)
        try:
            await self._core.workers.run(_open_folders, row, caller.peer.uid)
            await self._reserve(caller, row, key, identity)
        except BaseException:
            if ours:
                await self._core.workers.run(self._remove_folders, row)
            raise
        try:
            return await self._launch(row, wanted["environment"], "running")
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
                if error.code == "user_containers" or not await self.evict_warm():
                    raise

    def _mark_starting(self, caller: Caller, row: Row, key: str, identity: Any) -> None:
        records = self._core.records
        with records.transaction():
            capacity.judge(self._core.load(caller.owner), self._core.settings)
            records.insert(kernels, row)
            records.remember(caller.owner, key, digest(identity), row["id"], None, self._core.clock())

    async def _launch(self, row: Row, environment: Mapping[str, str], state: str) -> Row:
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
                await core.workers.record(core.records.update, kernels, row["id"], changes)
                await core.workers.record(core.records.note_image, row["image"], core.clock())
        except BaseException as error:
            row["container"] = row["container"] or name
            await asyncio.shield(self._finish(row, "failed", f"start failed: {type(error).__name__}"))
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

    # Again

    async def restart(self, caller: Caller, row: Row, environment: Mapping[str, Any]) -> Row:
        """A fresh kernel under the same id, in the same folders and with the same connection file.

        Whoever is connected to the old one reaches the new one without being told. Nothing of the old process is left;
        what it wrote into its folder is.

        Raises:
            BadRequest: the environment. Conflict: it is stopped, or being started. OverCapacity, NotReady.
        """
        self._check(caller, {"run": row["run"], "environment": environment})
        async with self._core.lock("kernel", row["id"]):
            old, row = row["container"], await self._mark_restarting(caller, row)
            try:
                # Before the engine says that the old one died, its row names it no more: this is no death.
                if old is not None:
                    await self._engine(self._core.engine.remove, old)
                await self._core.workers.run(_remove_sockets, Path(row["folder"]))
            except BaseException:
                await asyncio.shield(self._finish(row, "failed", "the kernel could not be restarted"))
                raise
            return shown(await self._launch(row, environment, "running"))

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
            facts = await self._engine(self._core.engine.facts, row["container"])
            if facts is None or not facts.running:
                row = await self.note_exit(row, None if facts is None else facts.exit_code)
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
        await self._engine(self._core.engine.signal, row["container"], name)

    async def logs(self, row: Row, lines: int = 200) -> str:
        """The end of what the kernel's process printed outside of cells."""
        return str(await self._engine(self._core.engine.logs, row["container"], lines)) if row["container"] else ""

    async def delete(self, row: Row) -> None:
        """Destroys a kernel, and its folders when we made them. Safe to repeat."""
        await self._finish(row, "stopped", "stopped by its client")

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
            await self._core.workers.run(self._remove_folders, row)
        return row | changes

    async def lose(self, row: Row) -> None:
        """For a row whose container never was or is not any more."""
        await self._finish(row, "failed", "its container was gone when sandboxd looked")

    async def _finish(self, row: Row, state: str, reason: str, when: tuple[str, ...] | None = None) -> None:
        changes = {"state": state, "reason": reason, "finished": self._core.clock()}
        active = KERNEL_ACTIVE if when is None else when
        changed = await self._core.workers.record(self._core.records.update, kernels, row["id"], changes, when=active)
        if when is not None and not changed:
            return
        if row["container"] is not None:
            with contextlib.suppress(LearnGraphError):
                await self._core.workers.run(self._core.engine.remove, row["container"])
        if row["ours"]:
            await self._core.workers.run(self._remove_folders, row)

    async def sweep(self) -> None:
        """Ends kernels whose client is gone, whose time is up or whose folder is too full; renews the warm ones."""
        settings, now = self._core.settings, self._core.clock()
        active = sa.select(kernels).where(kernels.c.state.in_(("running", "warm")))
        for row in await self._core.workers.record(self._core.records.rows, active):
            age = now - row["created"]
            if row["state"] == "warm":
                if age >= settings.warm_age:
                    await self._finish(row, "stopped", "it was warm for too long", when=("warm",))
            elif row["caller"] is not None and not process_alive(row["caller"]):
                await self._finish(row, "stopped", "the process that asked for it ended")
            elif age >= settings.kernel_absolute:
                await self._finish(row, "stopped", "it reached its absolute age")
            elif now - row["seen"] >= settings.kernel_lease:
                await self._finish(row, "stopped", "nobody asked about it any more")
            elif await self._core.workers.run(_folder_full, Path(row["folder"]), settings.workspace_bytes):
                await self._finish(row, "stopped", "its folder holds more than it may")
        await self.refill()

    async def close(self) -> None:
        """Ends the warm kernels; the others belong to their runs and go on."""
        self.closing = True
        waiting = sa.select(kernels).where(kernels.c.state.in_(("warm", "warming")))
        for row in await self._core.workers.record(self._core.records.rows, waiting):
            await self._finish(row, "stopped", "sandboxd stopped")

    # Folders

    def _make_folders(self) -> tuple[Path, Path]:
        """Folder and granted folder, with a connection file; short, since a socket's path has 108 bytes (unix(7))."""
        made = tuple(Path(tempfile.mkdtemp(prefix="lg-", dir=self._temporary)) for _ in range(2))
        folder, granted = made
        connection: dict[str, Any] = {
            "transport": "ipc",
            "ip": f"{folder}/k",
            "key": secrets.token_hex(32),
            "signature_scheme": "hmac-sha256",
            "kernel_name": "learngraph-sandbox",
        }
        connection |= {port: number for number, port in enumerate(PORTS, 1)}
        path = folder / CONNECTION_FILE
        path.touch(mode=0o600)
        path.write_text(json.dumps(connection))
        folders.open_to_container(folder, others=(os.geteuid(),))
        folders.open_to_container(granted, others=(os.geteuid(),), writable=False)
        return folder, granted

    def _remove_folders(self, row: Row) -> None:
        for path in (Path(row["folder"]), Path(row["granted"])):
            if path.parent == self._temporary:
                folders.remove_below(self._temporary, path.name)

    async def _engine(self, function: Any, *arguments: Any) -> Any:
        try:
            return await self._core.workers.run(function, *arguments)
        except LearnGraphError as error:
            raise engine_refusal(error) from error


def _new_row(
    owner: str,
    run: str | None,
    image: str,
    made: tuple[Path, Path],
    *,
    ours: bool,
    warm: bool,
    caller: str | None,
    now: float,
) -> Row:
    return {
        "id": new_id("k"),
        "owner": owner,
        "run": run,
        "state": "warming" if warm else "starting",
        "container": None,
        "image": image,
        "folder": str(made[0]),
        "granted": str(made[1]),
        "ours": ours,
        "warm": warm,
        "caller": caller,
        "created": now,
        "seen": now,
        "finished": None,
        "exit_code": None,
        "reason": None,
    }


def _open_folders(row: Row, uid: int) -> None:
    """Lets container and caller in; a folder of the caller's keeps its owner."""
    folder, granted = Path(row["folder"]), Path(row["granted"])
    folders.open_to_container(folder, others=(uid,))
    folders.open_to_container(granted, others=(uid,), writable=False)
    if row["ours"]:
        folders.give(folder, uid)
        folders.give(granted, uid)


def _hand_over(row: Row, uid: int) -> None:
    if uid != os.geteuid():
        _open_folders(row, uid)


def _remove_sockets(folder: Path) -> None:
    """The old kernel's, so that nobody takes them for the new one's."""
    for number in range(1, len(PORTS) + 1):
        folder.joinpath(f"k-{number}").unlink(missing_ok=True)


def _folder_full(folder: Path, limit: int) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False  # its caller removed it; the kernel goes with the caller
    try:
        return scan(descriptor, Limits(bytes=limit)).stopped is not None
    finally:
        os.close(descriptor)


def process_identity(pid: int) -> str | None:
    """A process as "pid:start time", which no later process with the same pid shares; None when it is not visible."""
    started = _start_time(pid)
    return None if started is None else f"{pid}:{started}"


def process_alive(identity: str) -> bool:
    """Whether that very process still runs."""
    pid, _, started = identity.partition(":")
    return _start_time(int(pid)) == started


def _start_time(pid: int) -> str | None:
    if pid <= 0:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5): the name may contain anything, so count from its end
    return None if fields[0] in "ZX" else fields[19]
