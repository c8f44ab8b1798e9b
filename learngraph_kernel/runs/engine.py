"""Executing a notebook's cells: nbclient, with limits and named moments.

nbclient does the protocol work (outputs, display updates, widgets). What is added here: a limit on what one cell may
print, errors as our own classes with the cell's place, and an observer that is told when a cell starts, ends or fails.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any, Protocol

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from learngraph_kernel.broker.box import HOST
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.runs.limits import MIB, CellLimits
from learngraph_kernel.runs.run_kernel import RunKernel

GRACE_SECONDS = 5.0
"""How long a kernel has to obey an interrupt before it is killed."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class CellFailed(LearnGraphError):
    """A cell raised. `details` has the exception's name, value and traceback (without ANSI)."""

    code = "cell_failed"


class CellTimedOut(LearnGraphError):
    """A cell ran longer than its limit."""

    code = "cell_timeout"


class OutputLimitExceeded(LearnGraphError):
    """A cell printed more than its limit."""

    code = "output_limit"


class KernelDied(LearnGraphError):
    """The kernel's process ended during a cell."""

    code = "kernel_died"


class CellObserver(Protocol):
    """Told what happens, cell by cell; runs on the event loop and must not block for long."""

    def cell_started(self, cell: Any, index: int, total: int) -> None: ...

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None: ...

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None: ...


class Executor(NotebookClient):
    """Runs the cells of one notebook in one kernel.

    Args:
        nb: changed in place: outputs and execution counts are filled in.
        kernel: connected already; the caller ends it.
        limits: for each cell.
        observer: told of each code cell.
    """

    def __init__(self, nb: Any, kernel: RunKernel, limits: CellLimits, observer: CellObserver) -> None:
        super().__init__(
            nb, km=kernel.manager, timeout=None, record_timing=False, coalesce_streams=True, allow_errors=False
        )
        self.kc = kernel.client
        self._kernel = kernel
        self._info = kernel.info
        self._limits = limits
        self._observer = observer
        self._printed = 0
        self._flooded = False
        self._enforcer: asyncio.Task[None] | None = None
        self._timed_out = False

    async def run(self) -> None:
        """Executes all code cells in order.

        Raises:
            CellFailed, CellTimedOut, OutputLimitExceeded, KernelDied: naming the cell; later cells did not run.
        """
        self.reset_execution_trackers()
        if "language_info" in self._info:
            self.nb.metadata["language_info"] = self._info["language_info"]
        code = [(n, cell) for n, cell in enumerate(self.nb.cells) if cell.cell_type == "code" and cell.source.strip()]
        for number, (index, cell) in enumerate(code, start=1):
            started = time.monotonic()
            self._observer.cell_started(cell, index, len(code))
            try:
                await self._run_cell(cell, index, number)
                self._observer.cell_completed(cell, index, time.monotonic() - started)
            except LearnGraphError as error:
                self._observer.cell_failed(cell, index, error)
                raise
        self.set_widgets_metadata()

    async def _run_cell(self, cell: Any, index: int, number: int) -> None:
        self._printed, self._flooded, self._timed_out = 0, False, False
        place = f"cell {number} ({cell.id})"  # as in `In [number]` and in the progress; text cells do not count
        timer = None
        if self._limits.seconds is not None:
            timer = asyncio.get_running_loop().call_later(self._limits.seconds, self._time_is_up)
        try:
            await self.async_execute_cell(cell, index, execution_count=self.code_cells_executed + 1)
        except (CellExecutionError, DeadKernelError, CellTimeoutError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # nbclient takes any cancellation for a dead kernel; this one came from whoever runs us.
                raise asyncio.CancelledError from error
            raise await self._explain(error, place) from error
        finally:
            if timer is not None:
                timer.cancel()
            if self._enforcer is not None:
                self._enforcer.cancel()
                await asyncio.wait([self._enforcer])  # else it might still be killing while the caller ends the kernel
                self._enforcer = None
        if self._flooded:
            raise self._flood(place)

    async def _explain(self, error: Exception, place: str) -> LearnGraphError:
        if self._flooded:
            return self._flood(place)
        if self._timed_out:
            return CellTimedOut(
                f"the cell ran longer than {self._limits.seconds:g} s",
                where=place,
                remedy="raise the limit with --execution-timeout, or make the cell faster",
            )
        if isinstance(error, CellExecutionError):
            return _cell_failed(error, place, boxed=self._kernel.isolation != HOST)
        reason = await self._kernel.why_dead()
        return KernelDied(
            "the kernel died while this cell ran" + (f": {reason}" if reason else ""),
            where=place,
            remedy="it may have run out of memory or crashed in native code; `learngraph resume` goes on from here",
        )

    def _flood(self, place: str) -> OutputLimitExceeded:
        return OutputLimitExceeded(
            f"the cell printed more than {self._limits.output_bytes // MIB} MiB",
            where=place,
            remedy="print less, or write large results to a file or a snapshot",
        )

    def _time_is_up(self) -> None:
        self._timed_out = True
        self._stop_cell()

    def _stop_cell(self) -> None:
        if self._enforcer is None:
            self._enforcer = asyncio.ensure_future(self._interrupt_then_kill())

    async def _interrupt_then_kill(self) -> None:
        assert self.km is not None
        await self.km.interrupt_kernel()  # type: ignore[misc]
        await asyncio.sleep(GRACE_SECONDS)
        await self.km.shutdown_kernel(now=True)  # type: ignore[misc]

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """nbclient's hook for each message of a cell: counts output and stops a flood."""
        if msg["msg_type"] in ("stream", "display_data", "execute_result", "update_display_data", "error"):
            self._printed += _size(msg["content"])
            if self._printed > self._limits.output_bytes:
                if not self._flooded:
                    self._flooded = True
                    self._stop_cell()
                return None
        return super().process_message(msg, cell, cell_index)


def _size(content: dict[str, Any]) -> int:
    if "text" in content:
        return len(content["text"])
    return sum(len(item) if isinstance(item, str) else len(str(item)) for item in content.get("data", {}).values())


BOX_REMEDIES = {
    "FileNotFoundError": "the closed box has no files of the host's: ask a source with lg.query, or use --sandbox host",
    "ModuleNotFoundError": "the closed box has the packages of its image only: use one of them, or --sandbox host",
    "gaierror": "the closed box has no network: what comes from outside comes through `lg`",
    "URLError": "the closed box has no network: what comes from outside comes through `lg`",
    "ConnectError": "the closed box has no network: what comes from outside comes through `lg`",
    "ConnectionError": "the closed box has no network: what comes from outside comes through `lg`",
}
"""What often stops a notebook that was written for the host, by the exception's name."""


def _cell_failed(error: CellExecutionError, place: str, *, boxed: bool) -> CellFailed:
    name, value = error.ename or "error", _ANSI.sub("", error.evalue or "")
    return CellFailed(
        f"{name}: {value}",
        where=place,
        remedy=BOX_REMEDIES.get(name) if boxed else None,
        details={"name": name, "value": value, "traceback": _ANSI.sub("", error.traceback or "")},
    )
