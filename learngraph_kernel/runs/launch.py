"""Starting a run: the kernel first, the rest while it boots.

A kernel takes most of a second to come up, and so do the imports of the runtime; doing both at once is why `learngraph
run` is faster than its parts.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from learngraph_kernel.actor import current_actor
from learngraph_kernel.errors import Unavailable
from learngraph_kernel.runs.outcome import RunOutcome
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.runs.run_kernel import RunKernel

if TYPE_CHECKING:
    from learngraph_kernel.runs.engine import CellObserver
    from learngraph_kernel.store.home import Home

_log = logging.getLogger(__name__)


async def run_plan(
    plan: RunPlan,
    *,
    progress: CellObserver,
    run_id: str | None = None,
    home: Home | None = None,
    actor: str | None = None,
    on_begin: Callable[[str], None] = lambda run_id: None,
    signals: bool = True,
) -> RunOutcome:
    """Runs a plan to its end and seals it.

    Args:
        plan: checked already.
        progress: told of each cell.
        run_id: a run to go on with (resume); None begins a new one.
        home: where the run is kept; None: the environment's.
        actor: who runs it; None: the user of this process.
        on_begin: told the run's id before anything happens.
        signals: SIGINT and SIGTERM end the run; a server that hosts many has its own use for them.

    Raises:
        LearnGraphError: the run could not begin; once it has begun, failures are in the outcome.
    """
    from learngraph_kernel.store.run_record import new_run_id

    identity = run_id or new_run_id()
    on_begin(identity)
    async with launched(plan, identity) as (kernel, secret):
        from learngraph_kernel.runs.lifecycle import Lifecycle
        from learngraph_kernel.store.database import Store
        from learngraph_kernel.store.home import Home as DefaultHome

        place = home or DefaultHome.default()
        with Store.open(place) as store:
            who = actor or current_actor()
            life = Lifecycle(store, place, plan, kernel, secret=secret, progress=progress, actor=who)
            work = life.resume(run_id) if run_id else life.run(identity)
            return await (stoppable(work) if signals else work)


@asynccontextmanager
async def launched(plan: RunPlan, run_id: str) -> AsyncIterator[tuple[RunKernel, str]]:
    """A starting kernel for a run, with the secret of the ticket it was given.

    Raises:
        Unavailable, Refusal: the run belongs into the closed box, and there is none for it; never the host instead.
    """
    secret = secrets.token_urlsafe(24)
    async with await _started(plan, run_id, secret) as kernel:
        yield kernel, secret


async def _started(plan: RunPlan, run_id: str, secret: str) -> RunKernel:
    if plan.sandbox != "host":
        boxed = await _boxed(plan, run_id, secret)
        if boxed is not None:
            return boxed
    from learngraph_kernel.runs.kernel import KernelProcess

    return await _start(KernelProcess(plan.kernel, cwd=plan.cwd), secret)


async def _boxed(plan: RunPlan, run_id: str, secret: str) -> RunKernel | None:
    """A kernel in the box; None when the host will do and the box is not there."""
    from learngraph_kernel.sandbox.place import default_socket, listening

    if plan.sandbox == "auto" and not listening(default_socket()):
        return None
    from learngraph_kernel.runs.box import BoxKernel
    from learngraph_kernel.sandbox.answers import Refusal

    try:
        return await _start(BoxKernel(run_id, image=plan.image), secret)
    except (Unavailable, Refusal) as error:
        if plan.sandbox == "docker":
            raise
        _log.warning("not in the closed box, the seal will say `isolation: host`: %s", error)
        return None


async def _start(kernel: RunKernel, secret: str) -> RunKernel:
    try:
        await kernel.start(secret)
    except BaseException:
        await kernel.stop()
        raise
    return kernel


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
