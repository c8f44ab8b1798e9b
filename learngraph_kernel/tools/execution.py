"""One handler under way: its time limit, being stopped, and what its failures are told as.

A stopped or late handler gets a moment to end. If what it was doing goes beyond reading, the result says that it may
have happened: being asked to stop is no proof of having stopped in time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.tools.results import failure
from learngraph_kernel.tools.values import CallContext, Effect, Status, Tool, ToolResult, ToolScope

GRACE = 0.4
"""Seconds for a handler to end once it was asked to; a turn has to be stopped within a second."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a handler.

    Attributes:
        result: as it gave it, or why there is none.
        by_handler: whether these are the handler's words, and not the desk's.
    """

    result: ToolResult
    by_handler: bool


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Execution:
    """A call that this process makes.

    Attributes:
        stopped: set it to stop the call.
        abandoned: handlers that did not end when asked; kept so that they are not lost while they run.
    """

    tool: Tool
    seconds: float
    abandoned: set[asyncio.Task[Outcome]]
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def outcome(self, arguments: Mapping[str, Any], context: CallContext) -> Outcome:
        """Runs the handler; whatever happens to it is a result. Raises nothing of the handler's."""
        if self.stopped.is_set():
            return _by_desk(failure("cancelled", "cancelled", "it was stopped before it began", None))
        task = asyncio.create_task(self._handled(arguments, context), name=f"tool {self.tool.spec.name}")
        stop = asyncio.create_task(self.stopped.wait())
        try:
            await asyncio.wait({task, stop}, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                return await self._end(task)
            return task.result() if not task.cancelled() else self._cancelled("it was cancelled")
        finally:
            stop.cancel()

    async def _handled(self, arguments: Mapping[str, Any], context: CallContext) -> Outcome:
        try:
            result = await self.tool.handler(arguments, context)
            if not isinstance(result, ToolResult):
                raise TypeError(f"a handler gives a ToolResult, not {type(result).__name__}")
        except LearnGraphError as error:
            return Outcome(told(error, context.scope), by_handler=True)
        except Exception as error:  # noqa: BLE001  logged with its stack; a model is told nothing of it
            return _by_desk(internal(self.tool.spec.name, error))
        return Outcome(result, by_handler=True)

    async def _end(self, task: asyncio.Task[Outcome]) -> Outcome:
        """Ends a handler that was stopped or is late."""
        late = not self.stopped.is_set()
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            self.abandoned.add(task)
            task.add_done_callback(self._ended_late)
        elif not task.cancelled():
            return task.result()  # it came to an end all the same, and that is what is true
        if late:
            reason = f"it took longer than {self.seconds:g} s and was ended"
            remedy = "ask for less, or raise [tools] seconds"
            return _by_desk(failure("error", "tool_timeout", reason + self._doubt(), remedy))
        return self._cancelled("it was stopped")

    def _cancelled(self, reason: str) -> Outcome:
        return _by_desk(failure("cancelled", "cancelled", reason + self._doubt(), None))

    def _doubt(self) -> str:
        harmless = self.tool.spec.effects <= {Effect.READ}
        return "" if harmless else "; part of what it does may have happened"

    def _ended_late(self, task: asyncio.Task[Outcome]) -> None:
        self.abandoned.discard(task)
        how = "cancelled" if task.cancelled() else task.result().result.status
        _log.warning("tool %s ended after it was given up: %s", self.tool.spec.name, how)


def internal(tool: str, error: Exception) -> ToolResult:
    """What a model is told of a mistake in our own code or a handler's: a number to find it in the server's log by."""
    incident = f"i_{secrets.token_hex(6)}"
    _log.error("tool %s failed unexpectedly, incident %s", tool, incident, exc_info=error)
    return failure(
        "error",
        "internal",
        "the tool failed for a reason of its own",
        f"try something else; the incident {incident} is in the server's log",
        incident=incident,
    )


def told(error: LearnGraphError, scope: ToolScope) -> ToolResult:
    """An error that a model can do something about, without the paths of this machine."""
    root = str(scope.workspace)

    def short(text: str) -> str:
        return text.replace(root + "/", "").replace(root, ".")

    more: dict[str, Any] = {"place": short(error.where)} if error.where else {}
    if "problems" in error.details:
        more["problems"] = error.details["problems"]
    status: Status = "unavailable" if isinstance(error, Unavailable) else "error"
    return failure(status, error.code, short(error.what), short(error.remedy) if error.remedy else None, **more)


def _by_desk(result: ToolResult) -> Outcome:
    return Outcome(result, by_handler=False)
