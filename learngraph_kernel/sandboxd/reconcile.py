"""Making records and engine agree again: at the start, and every minute.

`plan` is pure: containers (by their labels), rows, and what this process holds open, in; what to do, out. Whatever is
in doubt is decided for the files and against the container: a container can be made again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd.commands import execs
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.engine_port import KIND, SANDBOX, ContainerFacts
from learngraph_kernel.sandboxd.fetch_pool import FetchPool
from learngraph_kernel.sandboxd.files import Files
from learngraph_kernel.sandboxd.kernel_life import kernels
from learngraph_kernel.sandboxd.kernels import Kernels
from learngraph_kernel.sandboxd.records import ACTIVE, KERNEL_ACTIVE, Row
from learngraph_kernel.sandboxd.sandboxes import Sandboxes, boxes

_log = logging.getLogger(__name__)


@dataclass
class Plan:
    """What to do.

    Attributes:
        remove: containers to remove.
        cold: sandboxes to make cold, with the container they claim.
        exited: kernels whose container ended, with its exit code.
        failed: kernels that never got a container, or lost it.
    """

    remove: list[str] = field(default_factory=list)
    cold: list[tuple[str, str | None]] = field(default_factory=list)
    exited: list[tuple[str, int | None]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def plan(
    containers: Sequence[ContainerFacts],
    sandboxes: Sequence[Row],
    kernel_rows: Sequence[Row],
    *,
    held: Collection[str],
    starting: bool,
    fetching: bool = False,
) -> Plan:
    """Compares. The containers must have been listed before the rows were read: a row says `starting` before its
    container is made, so a container that no row claims is nobody's, however young it is.

    Args:
        containers: all with this instance's label.
        sandboxes: rows that count as active. kernel_rows: likewise.
        held: containers of workspaces and of web fetches that this process holds a stream to.
        fetching: a web fetch's container is being made, so one that is not held may be it.
        starting: this process has just begun, or makes nothing any more: whatever is half done is nobody's.
    """
    result = Plan()
    by_id = {facts.id: facts for facts in containers}
    half_done = {row["id"] for row in (*sandboxes, *kernel_rows) if row["state"] in ("starting", "warming")}
    wanted: set[str] = set(held)
    for row in kernel_rows:
        facts = by_id.get(row["container"] or "")
        if row["state"] in ("starting", "warming", "warm") and starting:
            result.failed.append(row["id"])
        elif row["state"] in ("running", "warm"):
            if facts is not None and facts.running:
                wanted.add(facts.id)
            elif facts is not None:
                result.exited.append((row["id"], facts.exit_code))
            else:
                result.failed.append(row["id"])
    for facts in containers:
        if fetching and not starting and facts.labels.get(KIND) == "fetch":
            continue
        if facts.id not in wanted and (starting or facts.labels.get(SANDBOX) not in half_done):
            result.remove.append(facts.id)
    for row in sandboxes:
        if starting or (row["state"] != "starting" and row["container"] not in held):
            result.cold.append((row["id"], row["container"]))
    return result


class Reconciler:
    """Carries plans out."""

    def __init__(
        self, core: Core, sandboxes: Sandboxes, kernel_service: Kernels, files: Files, fetching: FetchPool
    ) -> None:
        self._core, self._sandboxes, self._kernels, self._files = core, sandboxes, kernel_service, files
        self._fetching = fetching

    async def recover(self) -> None:
        """At the start, also without an engine: rows alone. Commands that were running are `lost`; files come home."""
        rows = await self._core.workers.record(self._close_lost)
        for row in rows:
            await self._core.workers.run(self._files.take_over, row)

    def _close_lost(self) -> list[Row]:
        records, now = self._core.records, self._core.clock()
        reason = "sandboxd was restarted while it ran"
        with records.transaction() as connection:
            connection.execute(
                sa.update(execs).where(execs.c.state == "running").values(state="lost", reason=reason, finished=now)
            )
            rows = records.rows(sa.select(boxes).where(boxes.c.state.in_(ACTIVE)))
            cold = {"state": "cold", "container": None, "started": None, "reason": "sandboxd was restarted"}
            connection.execute(sa.update(boxes).where(boxes.c.state.in_(ACTIVE)).values(**cold))
            # The lease and the time of the last sign of life begin again: nobody could reach us meanwhile.
            connection.execute(sa.update(kernels).where(kernels.c.state.in_(KERNEL_ACTIVE)).values(seen=now))
        return rows

    async def run(self, *, starting: bool) -> Plan:
        """Compares and acts once. Raises NotReady when the engine does not answer."""
        core = self._core
        containers = await core.workers.run(core.engine.containers, core.around.instance)
        active = sa.select(boxes).where(boxes.c.state.in_(ACTIVE))
        sandboxes = await core.workers.record(core.records.rows, active)
        alive = sa.select(kernels).where(kernels.c.state.in_(KERNEL_ACTIVE))
        kernel_rows = await core.workers.record(core.records.rows, alive)
        held = {live.container for live in self._sandboxes.live.values()} | self._fetching.held
        making = self._fetching.unsettled
        todo = plan(containers, sandboxes, kernel_rows, held=held, starting=starting, fetching=making)
        by_id = {row["id"]: row for row in kernel_rows}
        for identity, code in todo.exited:
            await self._kernels.note_exit(by_id[identity], code)
        for identity in todo.failed:
            row = by_id[identity]
            if starting or not await self._runs(row):  # it may have started since the containers were listed
                await self._kernels.lose(row)
        for container in todo.remove:
            try:
                await core.workers.run(core.engine.remove, container)
                core.counters["orphans_removed"] += 1
            except LearnGraphError as error:
                _log.warning("orphan %s not removed yet: %s", container[:12], error)
        changes = {"state": "cold", "container": None, "started": None, "reason": "its container was gone"}
        for identity, claimed in todo.cold:
            update, states = core.records.update, ("running", "warm_idle")
            await core.workers.record(update, boxes, identity, changes, when=states, container=claimed)
        await core.workers.record(core.records.forget, before=core.clock() - 7 * 86_400)
        return todo

    async def _runs(self, row: Row) -> bool:
        if row["container"] is None:
            return False
        facts = await self._core.workers.run(self._core.engine.facts, row["container"])
        return facts is not None and facts.running
