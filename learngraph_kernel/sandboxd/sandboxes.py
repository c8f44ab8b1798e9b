"""Workspaces and their containers: `created → cold → starting → running → warm_idle → (cold | expired)`.

The row is the promise, the container its disposable means: whatever happens to a container, the row goes to `cold` and
the files stay. `starting` is committed, and counted, before the engine is asked for anything, and rolled back when the
start fails. One lock a sandbox; what this process holds open (`Live`) is never in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from dataclasses import dataclass, field

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotFound, OverCapacity
from learngraph_kernel.sandboxd import capacity, folders, schema
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.containers import workspace_container
from learngraph_kernel.sandboxd.core import Core, engine_refusal
from learngraph_kernel.sandboxd.egress import Door, Egress
from learngraph_kernel.sandboxd.engine_port import EngineFailed
from learngraph_kernel.sandboxd.files import Files
from learngraph_kernel.sandboxd.fitness import refuse_unfit_engine
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.outputs import drop_output
from learngraph_kernel.sandboxd.records import ACTIVE, Row, new_id
from learngraph_kernel.sandboxd.runner_link import RunnerLink

_log = logging.getLogger(__name__)
POLICIES = ("sandbox-agent-v1", "sandbox-policy-v1")
boxes = schema.sandboxes


@dataclass
class Live:
    """A running container of a workspace, as this process holds it.

    Attributes:
        sandbox, container: ids.
        command: id of the command that is running.
        door: its way out, under a general egress policy; None without one.
        first_pid: process id of the container's first process on this host; 0 when unknown.
    """

    sandbox: str
    container: str
    link: RunnerLink
    first_pid: int = 0
    command: str | None = None
    door: Door | None = None
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.idle.set()


def shown(row: Row) -> Row:
    """What callers see of a row: no folder and no container of the host."""
    return {
        "sandbox": row["id"],
        "session": row["session"],
        "policy": row["policy"],
        "state": row["state"],
        "owner": row["owner"],
        "image": row["image"],
        "created": row["created"],
        "active": row["active"],
        "started": row["started"],
        "reason": row["reason"],
    }


class Sandboxes:
    """The workspaces of all users."""

    def __init__(self, core: Core, images: Images, files: Files, egress: Egress) -> None:
        self._core, self._images, self._files, self._egress = core, images, files, egress
        self.live: dict[str, Live] = {}

    async def create(self, caller: Caller, session: str, policy: str, key: str) -> Row:
        """The workspace of a session, made if it is not there. Raises Conflict when the session has another policy."""
        if policy not in POLICIES:
            raise BadRequest(f"policy must be one of {', '.join(POLICIES)}", code="unknown_policy")
        async with self._core.gate.closed():
            return await self._core.workers.record(self._create, caller.owner, session, policy, key)

    def _create(self, owner: str, session: str, policy: str, key: str) -> Row:
        records, now = self._core.records, self._core.clock()
        request = {"call": "sandboxes", "session": session, "policy": policy}
        with records.transaction():
            known = self._core.remembered(owner, key, request)
            if known is not None:
                return self._require(known["resource"], owner)
            row = records.row(sa.select(boxes).where(boxes.c.owner == owner, boxes.c.session == session))
            if row is not None and row["policy"] != policy:
                raise Conflict(
                    f"this session works under {row['policy']}; policies never mix in one session",
                    code="policy_mixed",
                    remedy="open a new session for the other policy",
                    zh=(f"此会话使用策略 {row['policy']}，同一会话不能混用策略", "请为另一策略新建会话"),
                )
            if row is None or row["state"] == "expired":
                retained = records.count(boxes, boxes.c.owner == owner, boxes.c.state != "expired")
                capacity.judge_retained(retained, self._core.settings)
                capacity.judge_disk(capacity.disk_free(self._core.settings.state), self._core.settings)
            if row is None:
                row = records.insert(
                    boxes,
                    {
                        "id": new_id("sb"),
                        "owner": owner,
                        "session": session,
                        "policy": policy,
                        "state": "created",
                        "container": None,
                        "image": None,
                        "folder": f"w_{secrets.token_hex(12)}",
                        "created": now,
                        "active": now,
                        "started": None,
                        "reason": None,
                    },
                )
            elif row["state"] == "expired":
                changes = {"state": "created", "created": now, "active": now, "started": None, "reason": None}
                records.update(boxes, row["id"], changes)
                row |= changes
            records.remember(owner, key, digest(request), row["id"], shown(row), now)
        return row

    def _require(self, identity: str, owner: str) -> Row:
        row = self._core.records.get(boxes, identity)
        if row is None or row["owner"] != owner:
            raise NotFound(
                "there is no such sandbox of yours",
                code="no_such_sandbox",
                remedy="see `learngraph sandbox ls`",
                zh=("没有这个沙箱", "请运行 learngraph sandbox ls 查看"),
            )
        return row

    async def get(self, caller: Caller, identity: str) -> Row:
        """One row of the caller's. Raises NotFound, also for somebody else's."""
        return await self._core.workers.record(self._require, identity, caller.owner)

    async def owned(self, caller: Caller) -> list[Row]:
        """The caller's rows, newest first."""
        statement = sa.select(boxes).where(boxes.c.owner == caller.owner).order_by(boxes.c.created.desc())
        return await self._core.workers.record(self._core.records.rows, statement)

    async def start(self, row: Row) -> Live:
        """The sandbox's container, started if it is cold.

        Raises:
            OverCapacity: a guard rail. NotReady: engine or image. Conflict: the workspace has expired.
        """
        async with self._core.lock("sandbox", row["id"]):
            live = self.live.get(row["id"])
            if live is not None and live.link.lost is None:
                return live
            await refuse_unfit_engine(self._core)
            await self._reserve(row)
            name = f"lg-{row['id'].replace('_', '-')}-{secrets.token_hex(4)}"
            try:
                async with asyncio.timeout(self._core.settings.start_seconds):
                    live = await self._launch(row, name)
            except BaseException as error:
                await asyncio.shield(self._roll_back(row["id"], name, error))
                if isinstance(error, TimeoutError):
                    raise engine_refusal(EngineFailed("the container did not start in time")) from error
                if isinstance(error, LearnGraphError):
                    raise engine_refusal(error) from error
                raise
            self._core.counters["sandbox_starts"] += 1
            return live

    async def _reserve(self, row: Row) -> None:
        while True:
            try:
                async with self._core.gate.closed():
                    await self._core.workers.record(self._mark_starting, row["id"])
                    return
            except OverCapacity as error:
                if error.code == "user_containers" or not await self._core.make_room():
                    raise

    def _mark_starting(self, identity: str) -> None:
        records = self._core.records
        with records.transaction():
            row = records.get(boxes, identity)
            if row is None or row["state"] == "expired":
                raise Conflict("the workspace has expired", code="expired", remedy="create it again for this session")
            if row["state"] not in ACTIVE:
                capacity.judge(self._core.load(row["owner"]), self._core.settings)
            now = self._core.clock()
            changes = {"state": "starting", "active": now, "started": now, "reason": None, "container": None}
            records.update(boxes, identity, changes)

    async def _launch(self, row: Row, name: str) -> Live:
        core = self._core
        image = await self._images.require()
        folder = await core.workers.run(self._files.prepare, row)
        policy = await self._egress.in_force(row, "general") if row["policy"] == "sandbox-agent-v1" else None
        door = None if policy is None else await self._egress.open(policy)
        link: RunnerLink | None = None
        try:
            way_out = None if door is None else str(door.folder)
            config = workspace_container(core.around, row, name, image, str(folder), core.clock(), door=way_out)
            container = await core.workers.run(core.engine.create, name, config)
            stream = await core.workers.run(core.engine.attach, container)
            link = RunnerLink(stream, lambda reason: self._on_lost(row["id"], container, reason))
            await core.workers.run(core.engine.start, container)
            await link.hello(core.settings.start_seconds)
            inspected = await core.workers.run(core.engine.inspect, container)
            # Held before the row says so: whoever compares rows with what is held must not find it missing.
            live = self.live[row["id"]] = Live(row["id"], container, link, int(inspected["State"]["Pid"]), door=door)
            changes = {"state": "warm_idle", "container": container, "image": image, "active": core.clock()}
            await core.workers.record(core.records.update, boxes, row["id"], changes)
            await core.workers.record(core.records.note_image, image, core.clock())
        except BaseException:
            self.live.pop(row["id"], None)
            if link is not None:
                await link.close()
            if door is not None:
                await self._egress.close(door)
            raise
        return live

    async def _roll_back(self, identity: str, name: str, error: BaseException) -> None:
        self._core.counters["sandbox_start_failures"] += 1
        with contextlib.suppress(LearnGraphError):  # the reaper removes it by its labels when the engine is back
            await self._core.workers.run(self._core.engine.remove, name)
        changes = {"state": "cold", "container": None, "started": None, "reason": f"start failed: {_short(error)}"}
        await self._core.workers.record(self._core.records.update, boxes, identity, changes, when=("starting",))

    def _on_lost(self, identity: str, container: str, reason: str) -> None:
        live = self.live.get(identity)
        if live is not None and live.container == container:
            self._core.counters["containers_lost"] += 1
            self._core.workers.spawn(self.discard(live, reason), f"discard {identity}")

    async def discard(self, live: Live, reason: str) -> None:
        """Removes a container and makes its sandbox cold; the files stay. Safe to call twice."""
        if self.live.get(live.sandbox) is live:
            del self.live[live.sandbox]
        await live.link.close()
        if live.door is not None:
            await self._egress.close(live.door)
        try:
            await self._core.workers.run(self._core.engine.remove, live.container)
        except LearnGraphError as error:
            _log.warning("container of %s not removed yet: %s", live.sandbox, error)
        changes = {"state": "cold", "container": None, "started": None, "reason": reason}
        update = self._core.records.update  # a container that was started meanwhile is not the one that went
        await self._core.workers.record(update, boxes, live.sandbox, changes, when=ACTIVE, container=live.container)

    async def change_way_out(self, row: Row) -> None:
        """After a general egress policy was given or taken back: the next container has its door, or has none.

        Raises:
            Conflict: a command is running.
        """
        live = self.live.get(row["id"])
        if live is not None and live.command is not None:
            raise Conflict("a command is running in this workspace", code="busy", remedy="wait for it, or cancel it")
        await self.stop(row, "its egress policy changed")

    async def stop(self, row: Row, reason: str) -> None:
        """Makes a sandbox cold."""
        async with self._core.lock("sandbox", row["id"]):
            live = self.live.get(row["id"])
            if live is not None:
                await self.discard(live, reason)
            elif row["state"] == "created":
                await self._core.workers.record(self._core.records.update, boxes, row["id"], {"state": "cold"})

    async def delete(self, row: Row) -> None:
        """Removes container, folder, logical files and what commands printed; the row stays as `expired`."""
        await self._expire(row, "deleted by its owner", logical=True)

    async def _expire(self, row: Row, reason: str, *, logical: bool = False) -> None:
        async with self._core.lock("sandbox", row["id"]):
            live = self.live.get(row["id"])
            if live is not None:
                await self.discard(live, reason)
            await self._core.workers.run(folders.remove_below, self._core.settings.workspaces, row["folder"])
            if logical:
                await self._core.workers.run(self._files.drop, row)
            for command in await self._core.workers.record(self._commands_of, row["id"]):
                await self._core.workers.run(drop_output, self._core.settings.outputs, command)
            changes = {"state": "expired", "container": None, "started": None, "reason": reason}
            await self._core.workers.record(self._core.records.update, boxes, row["id"], changes)

    def _commands_of(self, identity: str) -> list[str]:
        execs = schema.execs
        return [row["id"] for row in self._core.records.rows(sa.select(execs.c.id).where(execs.c.sandbox == identity))]

    async def touch(self, identity: str) -> None:
        """Notes activity: it puts off both idle time-outs."""
        await self._core.workers.record(self._core.records.update, boxes, identity, {"active": self._core.clock()})

    async def sweep(self) -> None:
        """Applies the time-outs once: idle and old containers go cold, idle and old workspaces expire."""
        settings, now = self._core.settings, self._core.clock()
        alive = sa.select(boxes).where(boxes.c.state != "expired")
        for row in await self._core.workers.record(self._core.records.rows, alive):
            live = self.live.get(row["id"])
            busy = live is not None and live.command is not None
            idle = now - row["active"]
            if now - row["created"] >= settings.workspace_absolute:
                await self._expire(row, "the workspace reached its absolute age")
            elif live is not None and now - (row["started"] or now) >= settings.container_absolute:
                await self.stop(row, "the container reached its absolute age")
            elif live is not None and not busy and idle >= settings.container_idle:
                await self.stop(row, "idle")
            elif live is None and row["state"] in ("created", "cold") and idle >= settings.workspace_idle:
                await self._expire(row, "the workspace was idle")

    async def close(self) -> None:
        """Ends every container; called when the daemon stops."""
        for live in list(self.live.values()):
            await self.discard(live, "sandboxd stopped")


def _short(error: BaseException) -> str:
    return error.what if isinstance(error, LearnGraphError) else type(error).__name__
