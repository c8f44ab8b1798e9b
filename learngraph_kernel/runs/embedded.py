"""The runtime of a script or notebook that nobody started through LearnGraph (`notebook.embedded` starts it).

It serves one caller, records an exploratory run, and ends when the caller's end of its standard input closes, which the
system does even when the caller is killed.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import socket
import sys
from pathlib import Path

from learngraph_kernel.actor import current_actor
from learngraph_kernel.broker.box import BOX_VARIABLE, Box, Isolation, link_into
from learngraph_kernel.broker.folders import PREFIX, claim
from learngraph_kernel.broker.interactive import InteractiveSession
from learngraph_kernel.broker.lookups import Lookups
from learngraph_kernel.broker.protocol import BROKER_VARIABLE, READY, TICKET_VARIABLE
from learngraph_kernel.broker.server import BrokerServer
from learngraph_kernel.data.workspace import find_workspace
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.runs.closing import Closing, close_run
from learngraph_kernel.runs.declaration import Declaration
from learngraph_kernel.runs.lifecycle import begin_run, new_state, new_ticket
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.run_record import new_run_id


async def serve(home: Home, path: Path, secret: str, box: Box | None = None) -> None:
    """Serves calls on `path` until standard input ends, then closes and seals the run if anything was asked.

    Args:
        box: the closed box that the caller is in; None: a process of this machine's.
    """
    import nbformat

    cwd = Path.cwd()
    plan = RunPlan(
        nb=nbformat.v4.new_notebook(),
        path="(interactive)",
        cwd=cwd,
        workspace=find_workspace(cwd),
        kernel="",
        declaration=Declaration(),
        parameters={},
    )
    actor = current_actor()
    with Store.open(home) as store:
        run_id = new_run_id()
        state = new_state(store, home, plan, run_id)
        if box is not None:
            state.isolation, state.grant = Isolation("docker", box.image), functools.partial(link_into, box.granted)
        session = InteractiveSession(
            state,
            store.ledger,
            new_ticket(secret, run_id, plan.workspace.runs),
            actor=actor,
            lookups=Lookups(state, store),
            begin=lambda: begin_run(store, plan, actor, run_id, isolation=state.isolation),
        )
        listener = None if box is None else socket.socket(fileno=box.listener)
        async with BrokerServer(session, path, private=box is None, listener=listener):
            sys.stdout.buffer.write(READY)
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.buffer.read)
        plan.workspace.close()
        if session.begun:
            close_run(Closing(store, home, plan, session.notebook, state, actor), None)


def main() -> int:
    """Entry point of `python -m learngraph_kernel.runs.embedded`."""
    path, secret = Path(os.environ.pop(BROKER_VARIABLE)), os.environ.pop(TICKET_VARIABLE)
    told = os.environ.pop(BOX_VARIABLE, None)
    box = None if told is None else Box.parse(told)
    ours = box is None and path.parent.name.startswith(PREFIX)
    try:
        if ours:
            claim(path.parent)
        asyncio.run(serve(Home.default(), path, secret, box))
    except LearnGraphError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    finally:
        if ours:
            shutil.rmtree(path.parent, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
