"""Running a command in a workspace: policy, record, runner, quota and restore around it, in that order.

    check argv → container → row `running` (committed) → shadow armed → runner → every 100 ms the quota
    → what was deleted without permission comes back → row closed

Whatever happens, the row gets an end with a reason. A command that overruns its time takes its container with it; the
files stay, and what it deleted comes back all the same.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotFound
from learngraph_kernel.sandbox.argv import CheckedCommand, argv_digest, check_argv
from learngraph_kernel.sandbox.inside.inspect_file import MAX_OUTPUT
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.containers import COMMAND_ENVIRONMENT, WORKSPACE
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.files import Files
from learngraph_kernel.sandboxd.inspection import TIMEOUT as INSPECTION_SECONDS
from learngraph_kernel.sandboxd.inspection import InspectionFailed, inspection_argv, read_inspection
from learngraph_kernel.sandboxd.outputs import STREAMS, CommandOutput, read_output
from learngraph_kernel.sandboxd.records import Row, new_id
from learngraph_kernel.sandboxd.runner_link import CommandEnd, LinkLost
from learngraph_kernel.sandboxd.sandboxes import Live, Sandboxes
from learngraph_kernel.sandboxd.sandboxes import boxes as sandboxes_table

execs = schema.execs
WITH_EGRESS = "learngraph_kernel.sandbox.inside.with_egress"
CANCEL_PATIENCE = 2.0
MAX_WAIT = 60.0
PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ending:
    """What the row of a command is closed with."""

    state: str
    exit_code: int | None = None
    reason: str | None = None
    truncated: bool = False


@dataclass
class Running:
    """A command that runs now."""

    id: str
    live: Live
    output: CommandOutput
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    end: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: Ending | None = None


class Commands:
    """All commands of all workspaces; one at a time in each."""

    def __init__(self, core: Core, sandboxes: Sandboxes, files: Files) -> None:
        self._core, self._sandboxes, self._files = core, sandboxes, files
        self.running: dict[str, Running] = {}

    async def begin(self, caller: Caller, row: Row, request: Mapping[str, Any], key: str, *, task: bool = False) -> Row:
        """Starts a command; the same key answers with the same command.

        Args:
            row: the sandbox.
            request: `argv`, `cwd`, `timeout` as sent; for a task `task`, `path`.
            task: a fixed task of sandbox-policy-v1 instead of a command of sandbox-agent-v1.

        Raises:
            ArgvRefused: policy. Conflict: another command is running. And what `Sandboxes.start` raises.
        """
        checked, seconds = self._check_task(row, request) if task else self._check(row, request)
        identity = {"call": "inspect" if task else "exec", "sandbox": row["id"], "request": dict(request)}
        async with self._core.lock("key", caller.owner, key):
            known = await self._core.workers.record(self._core.remembered, caller.owner, key, identity)
            if known is not None:
                return dict(json.loads(known["answer"]))
            live = await self._sandboxes.start(row)
            if live.command is not None:
                raise _busy()
            command = live.command = new_id("x")
            live.idle.clear()
            answer = {"exec": command, "state": "running"}
            try:
                await self._core.workers.record(self._open_row, caller, row, checked, answer, key, identity)
                output = CommandOutput(self._core.settings.outputs, command)
            except BaseException:
                live.command = None
                live.idle.set()
                raise
            running = self.running[command] = Running(command, live, output)
            self._core.workers.spawn(self._carry_out(running, row, checked, seconds), f"exec {command}")
        self._core.counters["commands"] += 1
        return answer

    def _check(self, row: Row, request: Mapping[str, Any]) -> tuple[CheckedCommand, float]:
        unknown = set(request) - {"argv", "cwd", "timeout"}
        if unknown:
            raise BadRequest(f"unknown field {sorted(unknown)[0]!r}", code="unknown_field")
        if row["policy"] != "sandbox-agent-v1":
            raise Conflict(
                "sandbox-policy-v1 runs fixed tasks only, never a command",
                code="policy_forbids_commands",
                remedy="use POST …/inspect, or a session under sandbox-agent-v1",
                zh=(
                    "sandbox-policy-v1 仅允许固定任务，不能执行命令",
                    "请使用 inspect 接口，或改用 sandbox-agent-v1 的会话",
                ),
            )
        argv, limit = request.get("argv"), self._core.settings.command_seconds
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            raise BadRequest("argv must be a list of strings", code="bad_argv")
        seconds = request.get("timeout", limit)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= limit:
            raise BadRequest(f"timeout must be above 0 and at most {limit:.0f} seconds", code="bad_timeout")
        return check_argv(argv, cwd=request.get("cwd", ".")), float(seconds)

    def _check_task(self, row: Row, request: Mapping[str, Any]) -> tuple[CheckedCommand, float]:
        if row["policy"] != "sandbox-policy-v1":
            raise Conflict(
                "fixed tasks belong to sandbox-policy-v1",
                code="policy_forbids_tasks",
                remedy="use a session under sandbox-policy-v1",
                zh=("固定任务仅适用于 sandbox-policy-v1", "请使用 sandbox-policy-v1 的会话"),
            )
        if set(request) - {"task", "path"} or request.get("task") not in ("inspect", "text"):
            raise BadRequest("a task has `task` (inspect or text) and `path`", code="bad_task")
        argv = inspection_argv(request["task"], request.get("path", ""))
        script = argv[-1]  # must be a regular file of the workspace, as a script must
        checked = CheckedCommand("run", argv, script, (), False, False, argv_digest(argv), argv)
        return checked, min(INSPECTION_SECONDS, self._core.settings.command_seconds)

    async def inspect(self, caller: Caller, row: Row, request: Mapping[str, Any], key: str) -> Row:
        """Carries a fixed task out and reads its answer. Raises InspectionFailed, and what `begin` raises."""
        begun = await self.begin(caller, row, request, key, task=True)
        await self.ended(begun["exec"], INSPECTION_SECONDS + 2 * CANCEL_PATIENCE)
        done = await self._core.workers.record(self._core.records.get, execs, begun["exec"])
        if done is None or done["state"] != "exited":
            reason = "it did not end" if done is None else done["reason"] or done["state"]
            raise InspectionFailed(f"the file was not looked at: {reason}", remedy="do not open the file")
        folder = self._core.settings.outputs
        out = await self._core.workers.run(read_output, folder, begun["exec"], "stdout", 0, MAX_OUTPUT + 2)
        found = read_inspection(request["task"], int(done["exit_code"]), out)
        return {"exec": begun["exec"], **asdict(found)}

    def _open_row(
        self, caller: Caller, row: Row, checked: CheckedCommand, answer: Row, key: str, request: Mapping[str, Any]
    ) -> None:
        records, now = self._core.records, self._core.clock()
        # The end is flushed, and this with it. If the machine goes down before, the command is gone with its container.
        with records.transaction(flushed=False):
            records.insert(
                execs,
                {
                    "id": answer["exec"],
                    "sandbox": row["id"],
                    "owner": caller.owner,
                    "state": "running",
                    "argv_digest": checked.digest,
                    "argv_redacted": json.dumps(checked.redacted, ensure_ascii=False),
                    "started": now,
                },
            )
            records.update(sandboxes_table, row["id"], {"state": "running", "active": now})
            records.remember(caller.owner, key, digest(dict(request)), answer["exec"], answer, now)

    async def _carry_out(self, running: Running, row: Row, checked: CheckedCommand, seconds: float) -> None:
        workers = self._core.workers
        loop = asyncio.get_running_loop()
        report: Row = {}
        ending = Ending("failed", reason="sandboxd stopped")

        def over_quota(reason: str) -> None:
            loop.call_soon_threadsafe(self._stop, running, Ending("failed", reason=reason))

        try:
            first_pid = running.live.first_pid
            around = await workers.run(self._files.command, row, running.id, first_pid, over_quota, checked)
            try:
                if checked.action == "remove":
                    await workers.run(around.remove, checked)
                    ending = Ending("exited", 0)
                else:
                    ending = await self._run(running, checked.argv, seconds)
            finally:
                report = await workers.run(around.finish)
        except LinkLost as error:
            ending = Ending("failed", reason=error.what)
        except LearnGraphError as error:  # quota, path, grant, a program that is not there: nothing ran
            ending = Ending("refused", reason=str(error))
        finally:
            await asyncio.shield(self._close_row(running, row, ending, report))
        self._core.counters[f"commands_{ending.state}"] += 1

    async def _run(self, running: Running, argv: Sequence[str], seconds: float) -> Ending:
        live, loop = running.live, asyncio.get_running_loop()
        work = asyncio.create_task(
            live.link.run(
                running.id,
                _with_way_out(live, argv),
                environment=COMMAND_ENVIRONMENT,
                cwd=WORKSPACE,
                cap=self._core.settings.output_bytes,
                sink=running.output.write,
            )
        )
        deadline = loop.time() + seconds
        stopping = asyncio.create_task(running.stop.wait())
        try:
            await asyncio.wait({work, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and running.stopped is not None:
                await live.link.cancel(running.id)
                await asyncio.wait({work}, timeout=min(CANCEL_PATIENCE, max(deadline - loop.time(), 0)))
            if work.done():
                return await self._ended(running, work.result())
            await self._sandboxes.discard(live, "a command did not end in time")
            ending = running.stopped or Ending("timed_out", reason=f"it ran longer than {seconds:g} s")
            return replace(ending, truncated=live.link.truncated)
        finally:
            stopping.cancel()
            work.cancel()

    def _stop(self, running: Running, ending: Ending) -> None:
        """Asks a command to end, and says what it ends as; the first reason counts."""
        if running.stopped is None:
            running.stopped = ending
            running.stop.set()

    async def _ended(self, running: Running, end: CommandEnd) -> Ending:
        if end.dirty:
            await self._sandboxes.discard(running.live, "a command left processes behind")
        if running.stopped is not None:
            return replace(running.stopped, exit_code=end.exit_code, truncated=end.truncated)
        return Ending("exited", end.exit_code, truncated=end.truncated)

    async def _close_row(self, running: Running, row: Row, ending: Ending, report: Row) -> None:
        running.output.close()
        await self._core.workers.record(self._write_end, running, row, ending, report)
        del self.running[running.id]
        running.live.command = None
        running.live.idle.set()
        running.output.wake()
        running.end.set()

    def _write_end(self, running: Running, row: Row, ending: Ending, report: Row) -> None:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            values = {
                "state": ending.state,
                "exit_code": ending.exit_code,
                "reason": ending.reason,
                "truncated": ending.truncated,
                "stdout_bytes": running.output.sizes["stdout"],
                "stderr_bytes": running.output.sizes["stderr"],
                "report": json.dumps(report, ensure_ascii=True),
                "finished": now,
            }
            records.update(execs, running.id, values)
            idle = {"state": "warm_idle", "active": now}
            records.update(sandboxes_table, row["id"], idle, when=("running",), container=running.live.container)

    async def ended(self, identity: str, wait: float) -> None:
        """Returns when a command has ended, after `wait` seconds at the latest."""
        running = self.running.get(identity)
        if running is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.end.wait(), min(wait, MAX_WAIT))

    async def show(self, identity: str, offsets: Mapping[str, int], wait: float) -> Row:
        """A command's state and its output from the offsets; waits up to `wait` seconds for news."""
        running = self.running.get(identity)
        if running is not None and wait > 0 and all(running.output.sizes[s] <= offsets[s] for s in STREAMS):
            await running.output.changed(min(wait, MAX_WAIT))
        return await self._core.workers.record(self._show, identity, offsets)

    def _show(self, identity: str, offsets: Mapping[str, int]) -> Row:
        row = self._core.records.get(execs, identity)
        if row is None:
            raise no_such_command()
        folder, running = self._core.settings.outputs, self.running.get(identity)
        answer: Row = {
            "exec": identity,
            "sandbox": row["sandbox"],
            "state": row["state"],
            "exit_code": row["exit_code"],
            "reason": row["reason"],
            "truncated": row["truncated"],
            "argv_digest": row["argv_digest"],
            "argv": json.loads(row["argv_redacted"]),
            "started": row["started"],
            "finished": row["finished"],
            "report": None if row["report"] is None else json.loads(row["report"]),
        }
        for stream in STREAMS:
            piece = read_output(folder, identity, stream, offsets[stream], PIECE)
            size = running.output.sizes[stream] if running is not None else row[f"{stream}_bytes"]
            answer[stream] = {
                "offset": offsets[stream],
                "next": offsets[stream] + len(piece),
                "size": size,
                "data": base64.b64encode(piece).decode(),
            }
        return answer

    async def owned(self, caller: Caller, identity: str) -> Row:
        """The row of one of the caller's commands. Raises NotFound."""
        row = await self._core.workers.record(self._core.records.get, execs, identity)
        if row is None or row["owner"] != caller.owner:
            raise no_such_command()
        return row

    async def cancel(self, identity: str) -> None:
        """Asks a command to end; its state says when it has."""
        running = self.running.get(identity)
        if running is not None:
            self._stop(running, Ending("cancelled", reason="cancelled"))

    async def list(self, sandbox: str) -> list[Row]:
        """The commands of a sandbox, newest first, without their output."""
        statement = sa.select(execs).where(execs.c.sandbox == sandbox).order_by(execs.c.started.desc()).limit(200)
        rows = await self._core.workers.record(self._core.records.rows, statement)
        return [
            {
                "exec": row["id"],
                "state": row["state"],
                "exit_code": row["exit_code"],
                "reason": row["reason"],
                "argv": json.loads(row["argv_redacted"]),
                "started": row["started"],
                "finished": row["finished"],
            }
            for row in rows
        ]


def no_such_command() -> NotFound:
    """For an id that is unknown or somebody else's."""
    return NotFound("there is no such command of yours", code="no_such_exec")


def _busy() -> Conflict:
    return Conflict(
        "another command is running in this workspace",
        code="busy",
        remedy="wait for it, or cancel it",
        zh=("此工作区正在执行另一个命令", "请等待其结束或取消它"),
    )


def _with_way_out(live: Live, argv: Sequence[str]) -> Sequence[str]:
    """The command, under what carries its connections to the door where there is one."""
    if live.door is None:
        return argv
    return ("python3", "-I", "-B", "-m", WITH_EGRESS, live.door.policy.digest, *argv)
