"""Starting a run: the kernel first, the rest while it boots.

A kernel takes most of a second to come up, and so do the imports of the runtime; doing both at once is why `learngraph
run` is faster than its parts.
"""

from __future__ import annotations

import asyncio
import getpass
import secrets
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from learngraph_kernel.broker.protocol import BROKER_VARIABLE, TICKET_VARIABLE
from learngraph_kernel.runs.kernel import KernelProcess
from learngraph_kernel.runs.outcome import RunOutcome
from learngraph_kernel.runs.plan import RunPlan

if TYPE_CHECKING:
    from learngraph_kernel.runs.engine import CellObserver


def current_actor() -> str:
    """Who starts runs from this process, e.g. `user:ana`."""
    return f"user:{getpass.getuser()}"


async def run_plan(plan: RunPlan, *, progress: CellObserver, run_id: str | None = None) -> RunOutcome:
    """Runs a plan to its end and seals it.

    Args:
        plan: checked already.
        progress: told of each cell.
        run_id: a run to go on with (resume); None begins a new one.

    Raises:
        LearnGraphError: the run could not begin; once it has begun, failures are in the outcome.
    """
    async with launched(plan) as (kernel, secret):
        from learngraph_kernel.runs.lifecycle import Lifecycle
        from learngraph_kernel.store.database import Store
        from learngraph_kernel.store.home import Home

        home = Home.default()
        with Store.open(home) as store:
            life = Lifecycle(store, home, plan, kernel, secret=secret, progress=progress, actor=current_actor())
            return await stoppable(life.resume(run_id) if run_id else life.run())


@asynccontextmanager
async def launched(plan: RunPlan) -> AsyncIterator[tuple[KernelProcess, str]]:
    """A starting kernel for the plan, with the secret of the ticket it was given."""
    secret = secrets.token_urlsafe(24)
    async with KernelProcess(plan.kernel, cwd=plan.cwd) as kernel:
        kernel.add_environment(
            {
                BROKER_VARIABLE: str(kernel.folder / "broker"),
                TICKET_VARIABLE: secret,
                # Sets and dicts of strings come out in the same order in every run.
                "PYTHONHASHSEED": "0",
            }
        )
        await kernel.start()
        yield kernel, secret


async def stoppable(work: Any) -> RunOutcome:
    """Lets SIGINT and SIGTERM cancel the run, so that it ends recorded. Signals reach the main thread only."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    try:
        outcome: RunOutcome = await task
        return outcome
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
