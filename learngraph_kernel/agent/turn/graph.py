"""The steps of a turn on LangGraph: which follows which, and a checkpoint after each. The only importer of langgraph.

A turn is a thread of the checkpointer, named by its id; when it has ended its checkpoints go, since what matters of it
is in the session's events. Waiting for a person is an interrupt in a node of its own that does nothing else: what
resumes it carries no decision, so resuming the wrong one, twice or late can let nothing through.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

# Strict before the library is imported: a checkpoint is data, and nothing in it may name code to be loaded.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

import aiosqlite
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from learngraph_kernel.agent.turn import steps
from learngraph_kernel.agent.turn.state import TurnState
from learngraph_kernel.agent.turn.steps import Surroundings

FILE = "checkpoints.db"


class Checkpoints:
    """The checkpoints of all turns of a home, on one connection: several to one file lock each other out."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self.saver = AsyncSqliteSaver(connection)

    @classmethod
    async def open(cls, root: Path) -> Checkpoints:
        """The file below a home folder, made when it is missing."""
        connection = await aiosqlite.connect(root / FILE)
        await connection.execute("PRAGMA busy_timeout = 10000")
        made = cls(connection)
        await made.saver.setup()
        return made

    async def forget(self, turn_id: str) -> None:
        """Drops the checkpoints of a turn that has ended."""
        await self.saver.adelete_thread(turn_id)

    async def close(self) -> None:
        await self._connection.close()


class TurnGraph:
    """One turn that can be run until it ends or waits, and again from there.

    Args:
        on_wait: told the approval that is waited for, once it is on record, before the turn pauses.
        undecided: whether a person still has to decide an approval.
    """

    def __init__(
        self,
        turn: Surroundings,
        checkpoints: Checkpoints,
        *,
        on_wait: Callable[[str], Awaitable[None]],
        undecided: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._turn, self._on_wait, self._undecided = turn, on_wait, undecided
        graph = StateGraph(TurnState)
        for name, step in (("think", steps.think), ("act", steps.act), ("check", steps.check)):
            graph.add_node(name, self._node(step))
        graph.add_node("ask", self._ask)
        graph.add_node("wait", self._wait)
        graph.add_node("decide", self._node(steps.decide))
        places = {"think": "think", "act": "act", "check": "check", "decide": "ask", "end": END}
        graph.add_conditional_edges(START, steps.next_step, places)  # type: ignore[arg-type]
        for name in ("think", "act", "check", "decide"):
            graph.add_conditional_edges(name, steps.next_step, places)  # type: ignore[arg-type]
        graph.add_edge("ask", "wait")
        graph.add_edge("wait", "decide")
        self._graph = graph.compile(checkpointer=checkpoints.saver)
        most = 6 * (turn.limits.steps + turn.limits.calls) + 50
        self._config: Any = {"configurable": {"thread_id": turn.scope.turn_id}, "recursion_limit": most}

    async def begin(self, state: TurnState) -> TurnState:
        """Runs a new turn until it ends or waits; its state then."""
        return await self._run(state)

    async def go_on(self) -> TurnState:
        """Runs a turn on from its last checkpoint, waiting or interrupted; its state then."""
        found = await self._graph.aget_state(self._config)
        return await self._run(Command(resume=True) if found.interrupts else None)

    async def state(self) -> TurnState | None:
        """The last checkpoint's; None when there is none."""
        found = await self._graph.aget_state(self._config)
        return cast(TurnState, found.values) if found.values else None

    async def _run(self, given: Any) -> TurnState:
        values: TurnState = cast(TurnState, await self._graph.ainvoke(given, self._config, durability="sync"))
        return values

    def _node(self, step: Callable[[Surroundings, TurnState], Awaitable[dict[str, Any]]]) -> Any:
        async def node(state: TurnState) -> dict[str, Any]:
            # A copy: what a step changes counts when it has ended.
            return await step(self._turn, cast(TurnState, dict(state)))

        return node

    async def _ask(self, state: TurnState) -> dict[str, Any]:
        assert state["waiting"] is not None
        await self._on_wait(state["waiting"])
        return {}

    async def _wait(self, state: TurnState) -> dict[str, Any]:
        # Decided meanwhile, perhaps before a crash: there is nothing to pause for.
        if state["waiting"] is not None and await self._undecided(state["waiting"]):
            interrupt({"approval": state["waiting"]})
        return {}


def waits(state: TurnState) -> bool:
    """Whether a turn that has paused waits for a person."""
    return state["document"] is None and state["waiting"] is not None


@asynccontextmanager
async def checkpoints_of(root: Path) -> AsyncIterator[Checkpoints]:
    """Open checkpoints, closed at the end."""
    opened = await Checkpoints.open(root)
    try:
        yield opened
    finally:
        await opened.close()
