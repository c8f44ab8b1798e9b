"""Threads for what blocks: a bounded pool for the engine and files, one thread for the database.

The database has one thread, so that its transactions are in one order and none waits for another's lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Workers:
    """The daemon's threads and its background tasks; each has this owner."""

    def __init__(self, threads: int = 12) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="engine")
        self._database = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls: set[Future[Any]] = set()

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Runs a blocking call in the pool. Cancelling the wait does not end a call that has begun."""
        call = self._pool.submit(function, *args, **kwargs)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return await asyncio.wrap_future(call)

    async def record(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Runs a database call in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._database, lambda: function(*args, **kwargs))

    def spawn(self, work: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
        """Starts a task that this object holds; an exception in it is logged and not lost."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("task %s failed", task.get_name(), exc_info=error)

    async def settle(self) -> None:
        """Cancels the tasks and waits for them, and for blocking calls that somebody stopped waiting for."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(asyncio.wrap_future(call) for call in list(self._calls)), return_exceptions=True)

    async def close(self) -> None:
        """Settles, then ends the threads."""
        await self.settle()
        self._pool.shutdown(wait=True)
        self._database.shutdown(wait=True)
