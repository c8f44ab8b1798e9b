"""Hosts the turns of a home: persists a question, begins its turn, stops it, resumes it, passes decisions on.

Everything a person can do is a method here; the server adds HTTP and nothing else. A turn is a task of this process;
what it has done is in the session's log, so an answer goes on when nobody looks, and a process that dies leaves turns
that say so and can be resumed. LangGraph is imported when the first turn begins.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.accounts.vault import Vault
from learngraph_kernel.agent.endings import Endings, Turn
from learngraph_kernel.agent.preparing import Preparing
from learngraph_kernel.agent.readiness import NotReady, checks_of
from learngraph_kernel.agent.records import OwnersRecords
from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.turn.limits import Limits
from learngraph_kernel.agent.turn.prompt import Layer, style_layer
from learngraph_kernel.agent.values import (
    ChatMessage,
    Decision,
    EventType,
    Part,
    Question,
    Session,
)
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.models.config import DEFAULT
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.builtin import Bench, builtin_tools
from learngraph_kernel.tools.builtin.bench import Isolation
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.mcp.toolbox import Toolbox
from learngraph_kernel.tools.registry import Registry

if TYPE_CHECKING:
    from learngraph_kernel.agent.turn.graph import Checkpoints

_log = logging.getLogger(__name__)
STOP_SECONDS = 0.8
"""How long `stop` waits for what it stopped; the rest is cleared away behind it."""
ROOT = ""
"""`Question.parent` of a first message that is asked anew."""


class TurnRunning(BadInput):
    """A turn of this session is under way."""

    code = "turn_running"


class Runtime:
    """The agent of one home; `ports.AgentRuntime`.

    Args:
        home: where everything is kept.
        isolation: `docker`, or `host` for tests of everything but the box.
        heartbeat: seconds of silence before a follower of events hears of it.
        today: the date, for prompts.
    """

    def __init__(
        self,
        home: Home,
        *,
        isolation: Isolation = "docker",
        heartbeat: float = 15.0,
        today: Callable[[], dt.date] = lambda: dt.datetime.now().astimezone().date(),
    ) -> None:
        home.ensure()
        self._home, self._isolation = home, isolation
        self._store = Store.open(home)
        self.log = SessionStore(self._store, heartbeat=heartbeat)
        self.records = OwnersRecords(self._store, home)
        self.registry = Registry()
        self.desk = Desk(self._store, self.registry, isolated=isolation == "docker")
        self._vault = Vault(self._store, home)
        self._toolbox = Toolbox(self.registry)
        self._preparing = Preparing(self._store, home, self.log, self.desk, today)
        self._endings = Endings(self._store, self.log, self.desk)
        for tool in builtin_tools(Bench(self._store, home, isolation), self.desk.owns_result):
            self.registry.add(tool)
        self._turns: dict[str, Turn] = {}
        self._checkpoints: Checkpoints | None = None
        self._opening = asyncio.Lock()
        self._behind: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """See AgentRuntime."""
        for message in await self.log.abandoned():
            if message.turn_id is None:
                continue
            if message.status == "streaming":
                await self._endings.interrupted(message, "the process that ran it ended")
            elif not await self._endings.asks(message):
                await self._endings.interrupted(message, "it was decided, and the process ended before it went on")

    # What a person does

    async def ask(self, session_id: str, owner: str, question: Question) -> ChatMessage:
        """See AgentRuntime. Raises UnknownSession, UnknownMessage, TurnRunning, NotReady, BadLimits, BadStyle."""
        session = await self.log.session(session_id, owner)
        settings = {**session.settings, **question.settings}
        await asyncio.to_thread(self.records.check_attachments, owner, question.attachments)
        limits, _ = Limits.from_json(settings.get("limits", {})), style_layer(settings)
        await self._make_way(session)
        await self._check_ready(session.workspace, question.model or settings.get("model"))
        parent = session.leaf if question.parent is None else (question.parent or None)
        parts = [Part("text", {"text": question.text})]
        parts += [Part("attachment", dict(attachment)) for attachment in question.attachments]
        chosen = {**settings, "model": question.model or settings.get("model")}
        return await self._begin(session, parts, parent, limits, chosen)

    async def regenerate(self, session_id: str, owner: str, message_id: str) -> ChatMessage:
        """See AgentRuntime. Raises UnknownSession, UnknownMessage, TurnRunning, NotReady."""
        session = await self.log.session(session_id, owner)
        answer = await self.log.message(message_id, session_id)
        if answer.role != "assistant" or answer.parent is None:
            raise BadInput("only an answer can be made anew", where=message_id, remedy="edit your message instead")
        asked = await self.log.message(answer.parent, session_id)
        limits = Limits.from_json(session.settings.get("limits", {}))
        await self._make_way(session)
        await self._check_ready(session.workspace, session.settings.get("model"))
        return await self._begin(session, asked.id, None, limits, session.settings)

    async def stop(self, session_id: str, owner: str) -> bool:
        """See AgentRuntime. Raises UnknownSession."""
        session = await self.log.session(session_id, owner)
        turn = self._turns.get(session_id)
        if turn is None:
            waiting = [message for message in await self.log.running(session_id) if message.status == "waiting"]
            for message in waiting:
                await self._end_waiting(session, message)
            return bool(waiting)
        await self._stop(turn)
        return True

    async def delete(self, session_id: str, owner: str) -> None:
        """Stops a conversation and removes it; its runs stay. Raises UnknownSession."""
        await self.stop(session_id, owner)
        await self.log.delete(session_id, owner)
        turn = self._turns.get(session_id)
        if turn is not None and turn.task is not None:  # it began between the two: there is nowhere to write its end
            turn.ended = True
            turn.task.cancel()
            await self.desk.withdraw(session_id, turn.id, by=owner)

    async def resume(self, session_id: str, owner: str) -> bool:
        """See AgentRuntime. Raises UnknownSession, TurnRunning, NotReady."""
        session = await self.log.session(session_id, owner)
        if session_id in self._turns:
            raise _running()
        branch = await self.log.branch(session_id)
        message = branch[-1] if branch else None
        if message is None or message.role != "assistant" or message.status != "interrupted":
            return False
        await self._check_ready(session.workspace, session.settings.get("model"))
        if not await self.log.take_over(message.id):
            raise _running()
        await self.log.update_message(message.id, status="streaming")
        turn = await self._endings.known_turn(session, message)
        self._run(turn, resumed=True)
        return True

    async def approvals(self, owner: str, *, state: str | None = "pending") -> Sequence[Mapping[str, Any]]:
        """See AgentRuntime."""
        return [approval.as_json() for approval in await self.desk.approvals.listed(owner, state)]

    async def decide(self, owner: str, decision: Decision) -> Mapping[str, Any]:
        """See AgentRuntime. Raises ApprovalError, BadArguments (of an edit)."""
        now = await self.desk.approvals.decide(
            owner,
            decision.approval_id,
            decision.choice,
            decision.arguments_hash,
            decision.grant,
            decision.arguments,
            decision.text,
        )
        data = {"approval_id": decision.approval_id, "choice": decision.choice, "by": owner, "grant": now.grant}
        if decision.choice == "edit":
            data["replaced_by"] = now.id
        session = await self.log.session(now.session_id, now.owner)
        message = await self._message_of(now.session_id, now.turn_id)
        await self.log.append(
            now.session_id,
            EventType.APPROVAL_DECIDED,
            data,
            turn_id=now.turn_id,
            message_id=None if message is None else message.id,
        )
        if message is not None and message.status == "waiting":
            await self._wake(session, message)
        return now.as_json()

    async def budget(self, session_id: str, owner: str) -> Sequence[Mapping[str, Any]]:
        """How the budgets that hold in a conversation stand. Raises UnknownSession, BadBudget."""
        session = await self.log.session(session_id, owner)
        found = await asyncio.to_thread(self._preparing.standings, session)
        return [standing.as_json() for standing in found]

    async def grants(self, owner: str) -> Sequence[Mapping[str, Any]]:
        """The standing grants of an owner."""
        return [grant.as_json() for grant in await self.desk.grants.listed(owner)]

    async def revoke_grant(self, owner: str, grant_id: str) -> None:
        """Takes a standing grant back. Raises ApprovalError when there is none of theirs."""
        await self.desk.grants.revoke(owner, grant_id)

    async def readiness(self, workspace: Path | None = None) -> Sequence[Mapping[str, Any]]:
        """See AgentRuntime; for a workspace, by default the current folder."""
        return await asyncio.to_thread(self._checks, workspace or Path.cwd(), None)

    async def close(self) -> None:
        """See AgentRuntime."""
        for turn in list(self._turns.values()):
            await self._pause(turn)
        for task in list(self._behind):
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)
        await self.desk.close()
        await self._toolbox.close()
        if self._checkpoints is not None:
            await self._checkpoints.close()
        await self.log.close()
        await asyncio.to_thread(self._store.close)

    async def settled(self, session_id: str) -> None:
        """Waits until no turn of a session runs in this process (it ended, or waits for a person)."""
        while (turn := self._turns.get(session_id)) is not None and turn.task is not None:
            await asyncio.wait([turn.task])

    # Turns

    async def _begin(
        self,
        session: Session,
        question: str | Sequence[Part],
        parent: str | None,
        limits: Limits,
        settings: Mapping[str, Any],
    ) -> ChatMessage:
        """Puts a turn on record and begins it; its question."""
        layers = await asyncio.to_thread(self._preparing.layers, session.workspace, settings)
        started = {
            "model": settings.get("model") or DEFAULT,
            "limits": limits.as_json(),
            "unattended": bool(settings.get("unattended")),
            "layers": [layer.as_json() for layer in layers],
        }
        asked, answer = await self.log.begin_turn(session.id, _new_turn_id(), question, parent, started)
        self._run(Turn(session, answer, asked, limits), layers=layers)
        return asked

    def _run(self, turn: Turn, *, layers: Sequence[Layer] = (), resumed: bool = False) -> None:
        self._turns[turn.session.id] = turn
        turn.task = asyncio.ensure_future(self._carry_out(turn, layers, resumed=resumed))
        turn.task.add_done_callback(lambda task: self._gone(turn))

    def _gone(self, turn: Turn) -> None:
        """A turn's task has ended: nobody runs in its session any more."""
        if self._turns.get(turn.session.id) is turn:
            del self._turns[turn.session.id]

    async def _carry_out(self, turn: Turn, layers: Sequence[Layer], *, resumed: bool) -> None:
        """Runs a turn until it ends or waits, and writes which it was."""
        from learngraph_kernel.agent.turn.graph import TurnGraph, waits

        try:
            checkpoints = await self._open_checkpoints()
            for problem in await self._toolbox.ready(turn.session.workspace):
                data = {"code": problem.code, "text": problem.what, "remedy": problem.remedy}
                await self.log.append(
                    turn.session.id, EventType.WARNING, data, turn_id=turn.id, message_id=turn.message.id
                )
            surroundings = await self._preparing.surroundings(turn)
            graph = TurnGraph(
                surroundings,
                checkpoints,
                on_wait=lambda approval: self._endings.waiting(turn, approval),
                undecided=self._endings.undecided,
            )
            if resumed and await graph.state() is not None:
                state = await graph.go_on()
            else:
                state = await graph.begin(await self._preparing.first(turn, layers))
            if waits(state):
                return
            await self._endings.completed(turn, state, surroundings.language)
            await checkpoints.forget(turn.id)
        except asyncio.CancelledError:
            raise
        except LearnGraphError as error:
            await self._endings.failed(turn, error.as_json() | {"retryable": getattr(error, "retryable", False)})
        except Exception:  # noqa: BLE001  told as internal; the trace is for the log
            incident = secrets.token_hex(6)
            _log.exception("turn %s failed (incident %s)", turn.id, incident)
            reason = {"code": "internal", "reason": f"the turn failed for a reason of ours (incident {incident})"}
            await self._endings.failed(
                turn, reason | {"remedy": "the server's log has the trace; report it", "retryable": True}
            )

    # How a turn ends, pauses and goes on

    async def _wake(self, session: Session, message: ChatMessage) -> None:
        """Goes on with a turn that waited, in whichever process it had begun."""
        current = self._turns.get(session.id)
        if current is not None and current.task is not None and not current.task.done():
            await asyncio.wait([current.task])  # it is just pausing
        if not await self.log.take_over(message.id):
            return  # another process has it, and reads the decision from the record
        await self.log.update_message(message.id, status="streaming")
        self._run(await self._endings.known_turn(session, message), resumed=True)

    async def _stop(self, turn: Turn) -> None:
        turn.ended = True  # first: whatever the task still does, it writes no other end
        if turn.task is not None:
            turn.task.cancel()
        await self.desk.withdraw(turn.session.id, turn.id, by=turn.session.owner)
        if turn.task is not None:
            await asyncio.wait([turn.task], timeout=STOP_SECONDS)
            if not turn.task.done():
                self._behind.add(turn.task)
                turn.task.add_done_callback(self._behind.discard)
        turn.ended = False
        self._gone(turn)
        await self._endings.end(turn, "stopped", EventType.STOPPED, {})

    async def _pause(self, turn: Turn) -> None:
        """At the end of the process: the turn can be resumed."""
        turn.ended = True
        if turn.task is not None:
            turn.task.cancel()
            await asyncio.wait([turn.task], timeout=5)
        if turn.message.turn_id is not None:
            await self._endings.interrupted(turn.message, "the server was stopped")

    async def _end_waiting(self, session: Session, message: ChatMessage) -> None:
        """Ends a turn that waits for a person."""
        assert message.turn_id is not None
        await self.desk.withdraw(session.id, message.turn_id, by=session.owner)
        turn = await self._endings.known_turn(session, message)
        await self._endings.end(turn, "stopped", EventType.STOPPED, {})
        if self._checkpoints is not None:
            await self._checkpoints.forget(turn.id)

    # Before a turn

    async def _make_way(self, session: Session) -> None:
        """A new message while a person is asked withdraws the question. Raises TurnRunning."""
        turn = self._turns.get(session.id)
        if turn is not None and turn.task is not None and not turn.task.done():
            raise _running()
        for message in await self.log.running(session.id):
            if message.status != "waiting":
                raise _running()
            await self._end_waiting(session, message)

    async def _check_ready(self, workspace: Path, model: str | None) -> None:
        checks = await asyncio.to_thread(self._checks, workspace, model)
        if any(check["state"] == "failed" for check in checks):
            raise NotReady(checks)

    def _checks(self, workspace: Path, model: str | None) -> Sequence[Mapping[str, Any]]:
        secrets = {row["name"] for row in self._vault.listed()}
        return checks_of(workspace, model, boxed=self._isolation == "docker", secrets=secrets)

    async def _message_of(self, session_id: str, turn_id: str) -> ChatMessage | None:
        for message in await self.log.running(session_id):
            if message.turn_id == turn_id:
                return message
        return None

    async def _open_checkpoints(self) -> Checkpoints:
        async with self._opening:
            if self._checkpoints is None:
                graph = await asyncio.to_thread(_import_graph)
                self._checkpoints = await graph.Checkpoints.open(self._home.root)
        assert self._checkpoints is not None
        return self._checkpoints


async def open_runtime(home: Path, root: Path, *, heartbeat: float = 15.0) -> Runtime:
    """The runtime of a home folder, started; workspaces of its conversations lie below `root`."""
    runtime = Runtime(Home(home), heartbeat=heartbeat)
    await runtime.start()
    return runtime


def _import_graph() -> Any:
    from learngraph_kernel.agent.turn import graph

    return graph


def _new_turn_id() -> str:
    return f"n_{secrets.token_hex(12)}"


def _running() -> TurnRunning:
    return TurnRunning("a turn of this session is under way", remedy="wait for its end, or stop it")
