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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.agent.readiness import NotReady, checks_of
from learngraph_kernel.agent.records import OwnersRecords
from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.turn import history
from learngraph_kernel.agent.turn.answer import Checked, language_of
from learngraph_kernel.agent.turn.limits import Limits
from learngraph_kernel.agent.turn.parts import parts_of
from learngraph_kernel.agent.turn.prompt import Layer, context_layer, core_layer, messages_of, style_layer
from learngraph_kernel.agent.turn.state import TurnState, first_state
from learngraph_kernel.agent.turn.steps import Surroundings
from learngraph_kernel.agent.values import (
    ChatMessage,
    Decision,
    EventType,
    MessageStatus,
    Part,
    Question,
    Session,
    SessionEvent,
)
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.evidence.document import ReportDocument
from learngraph_kernel.models.config import DEFAULT, choose_model, open_model, parse_models
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.builtin import Bench, builtin_tools
from learngraph_kernel.tools.builtin.bench import Isolation
from learngraph_kernel.tools.builtin.data import workspace_overview
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.registry import Registry
from learngraph_kernel.tools.values import ToolScope

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


@dataclass
class Turn:
    """A turn of this process.

    Attributes:
        task: what runs it; None while it waits for a person.
        ended: somebody has written how it ended; nothing else may.
    """

    session: Session
    message: ChatMessage
    question: ChatMessage
    limits: Limits
    task: asyncio.Task[None] | None = None
    ended: bool = False

    @property
    def id(self) -> str:
        assert self.message.turn_id is not None
        return self.message.turn_id


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
        self._home, self._isolation, self._today = home, isolation, today
        self._store = Store.open(home)
        self.log = SessionStore(self._store, heartbeat=heartbeat)
        self.records = OwnersRecords(self._store, home)
        self.registry = Registry()
        self.desk = Desk(self._store, self.registry, isolated=isolation == "docker")
        for tool in builtin_tools(Bench(self._store, home, isolation), self.desk.owns_result):
            self.registry.add(tool)
        self._turns: dict[str, Turn] = {}
        self._models: dict[tuple[Path, str], tuple[Any, ModelAdapter]] = {}
        self._checkpoints: Checkpoints | None = None
        self._opening = asyncio.Lock()
        self._behind: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """See AgentRuntime."""
        for message in await self.log.abandoned():
            if message.status == "streaming" and message.turn_id is not None:
                await self._interrupted(message, "the process that ran it ended")

    # What a person does

    async def ask(self, session_id: str, owner: str, question: Question) -> ChatMessage:
        """See AgentRuntime. Raises UnknownSession, UnknownMessage, TurnRunning, NotReady, BadLimits, BadStyle."""
        session = await self.log.session(session_id, owner)
        settings = {**session.settings, **question.settings}
        limits, _ = Limits.from_json(settings.get("limits", {})), style_layer(settings)
        await self._make_way(session)
        await self._check_ready(session.workspace, question.model or settings.get("model"))
        parent = session.leaf if question.parent is None else (question.parent or None)
        turn_id = _new_turn_id()
        parts = [Part("text", {"text": question.text})]
        parts += [Part("attachment", dict(attachment)) for attachment in question.attachments]
        asked = await self.log.add_message(
            session_id, "user", parts, parent=parent, turn_id=turn_id, status="completed"
        )
        await self._begin(
            session, asked, turn_id, limits, {**settings, "model": question.model or settings.get("model")}
        )
        return asked

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
        await self._begin(session, asked, _new_turn_id(), limits, session.settings)
        return asked

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
        turn = await self._known_turn(session, message)
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

    async def grants(self, owner: str) -> Sequence[Mapping[str, Any]]:
        """The standing grants of an owner."""
        return [grant.as_json() for grant in await self.desk.grants.listed(owner)]

    async def revoke_grant(self, owner: str, grant_id: str) -> None:
        """Takes a standing grant back. Raises ApprovalError when there is none of theirs."""
        await self.desk.grants.revoke(owner, grant_id)

    async def readiness(self, workspace: Path | None = None) -> Sequence[Mapping[str, Any]]:
        """See AgentRuntime; for a workspace, by default the current folder."""
        boxed = self._isolation == "docker"
        return await asyncio.to_thread(checks_of, workspace or Path.cwd(), None, boxed=boxed)

    async def close(self) -> None:
        """See AgentRuntime."""
        for turn in list(self._turns.values()):
            await self._pause(turn)
        for task in list(self._behind):
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)
        await self.desk.close()
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
        self, session: Session, asked: ChatMessage, turn_id: str, limits: Limits, settings: Mapping[str, Any]
    ) -> None:
        data = {"message": asked.id, "parts": [{"kind": part.kind, "data": dict(part.data)} for part in asked.parts]}
        await self.log.append(session.id, EventType.USER_MESSAGE, data, turn_id=turn_id, message_id=asked.id)
        answer = await self.log.add_message(
            session.id, "assistant", [], parent=asked.id, turn_id=turn_id, status="streaming"
        )
        turn = Turn(session, answer, asked, limits)
        layers = await asyncio.to_thread(self._layers, session.workspace, settings)
        model = settings.get("model") or DEFAULT
        started = {
            "model": model,
            "limits": limits.as_json(),
            "layers": [layer.as_json() for layer in layers],
            "message": answer.id,
            "answers": asked.id,
        }
        await self.log.append(session.id, EventType.TURN_STARTED, started, turn_id=turn_id, message_id=answer.id)
        self._run(turn, layers=layers)

    def _run(self, turn: Turn, *, layers: Sequence[Layer] = (), resumed: bool = False) -> None:
        self._turns[turn.session.id] = turn
        turn.task = asyncio.ensure_future(self._carry_out(turn, layers, resumed=resumed))

    async def _carry_out(self, turn: Turn, layers: Sequence[Layer], *, resumed: bool) -> None:
        """Runs a turn until it ends or waits, and writes which it was."""
        from learngraph_kernel.agent.turn.graph import TurnGraph, waits

        try:
            checkpoints = await self._open_checkpoints()
            surroundings = await self._surroundings(turn)
            graph = TurnGraph(surroundings, checkpoints, on_wait=lambda approval: self._waiting(turn, approval))
            if resumed and await graph.state() is not None:
                state = await graph.go_on()
            else:
                state = await graph.begin(await self._first(turn, layers))
            if waits(state):
                self._turns.pop(turn.session.id, None)
                return
            await self._completed(turn, surroundings, state)
            await checkpoints.forget(turn.id)
        except asyncio.CancelledError:
            raise
        except LearnGraphError as error:
            await self._failed(turn, error.as_json() | {"retryable": getattr(error, "retryable", False)})
        except Exception:  # noqa: BLE001  told as internal; the trace is for the log
            incident = secrets.token_hex(6)
            _log.exception("turn %s failed (incident %s)", turn.id, incident)
            reason = {"code": "internal", "reason": f"the turn failed for a reason of ours (incident {incident})"}
            await self._failed(
                turn, reason | {"remedy": "the server's log has the trace; report it", "retryable": True}
            )

    async def _first(self, turn: Turn, layers: Sequence[Layer]) -> TurnState:
        branch = list(await self.log.branch(turn.session.id, turn.question.id))
        earlier = branch[:-1]
        text = "\n".join(str(part.data["text"]) for part in turn.question.parts if part.kind == "text")
        attachments = await asyncio.to_thread(self._attached, turn.question)
        layers = layers or await asyncio.to_thread(self._layers, turn.session.workspace, turn.session.settings)
        messages = [*messages_of(layers), *history.conversation(earlier), history.question(text, attachments)]
        base = await asyncio.to_thread(self._store.artifacts.put_json, [message.as_json() for message in messages])
        run_id, notebook = history.last_run(earlier)
        return first_state(base, run_id=run_id, notebook=notebook)

    def _attached(self, question: ChatMessage) -> list[tuple[str, str]]:
        """(name, text) of what was attached and is text."""
        found = []
        for part in question.parts:
            if part.kind == "attachment":
                data = self._store.artifacts.read(str(part.data["sha256"]))
                found.append((str(part.data.get("name", "file")), data.decode("utf-8", "replace")))
        return found

    async def _surroundings(self, turn: Turn) -> Surroundings:
        session = turn.session
        text = " ".join(str(part.data.get("text", "")) for part in turn.question.parts)
        scope = ToolScope(
            owner=session.owner,
            session_id=session.id,
            turn_id=turn.id,
            message_id=turn.message.id,
            workspace=session.workspace,
            unattended=bool(session.settings.get("unattended")),
        )
        earlier = await self.log.turn_events(session.id, turn.id)
        model = next((event.data["model"] for event in earlier if event.type is EventType.TURN_STARTED), None)
        adapter = await asyncio.to_thread(self._model, session.workspace, model)
        return Surroundings(
            self.log,
            self.desk,
            self._store,
            self._home,
            adapter,
            scope,
            turn.limits,
            language_of(text),
            self.desk.shown,
            tuple(earlier),
        )

    def _model(self, workspace: Path, name: str | None) -> ModelAdapter:
        """The adapter of a declared model, one for as long as it is declared so: a script counts what it played."""
        config = choose_model(parse_models(_models_of(workspace), root=workspace), name or DEFAULT)
        declared = (config, None if config.script is None else config.script.stat().st_mtime_ns)
        known = self._models.get((workspace, config.name))
        if known is None or known[0] != declared:
            known = self._models[workspace, config.name] = (declared, open_model(config))
        return known[1]

    def _layers(self, workspace: Path, settings: Mapping[str, Any]) -> list[Layer]:
        sources, metrics = workspace_overview(workspace, self._home)
        return [core_layer(), style_layer(settings), context_layer(self._today(), sources, metrics)]

    # How a turn ends, pauses and goes on

    async def _waiting(self, turn: Turn, approval_id: str) -> None:
        approval = await self.desk.approvals.find(approval_id)
        await self._event(turn, EventType.APPROVAL_REQUESTED, approval.as_json())
        await self._close(turn.message, "waiting", EventType.INTERRUPT, {"approval_id": approval_id})

    async def _wake(self, session: Session, message: ChatMessage) -> None:
        """Goes on with a turn that waited, in whichever process it had begun."""
        current = self._turns.get(session.id)
        if current is not None and current.task is not None and not current.task.done():
            await asyncio.wait([current.task])  # it is just pausing
        if not await self.log.take_over(message.id):
            return  # another process has it, and reads the decision from the record
        await self.log.update_message(message.id, status="streaming")
        self._run(await self._known_turn(session, message), resumed=True)

    async def _known_turn(self, session: Session, message: ChatMessage) -> Turn:
        """A turn from its record: its limits are those it began with."""
        assert message.turn_id is not None and message.parent is not None
        events = await self.log.turn_events(session.id, message.turn_id)
        started = next(event.data for event in events if event.type is EventType.TURN_STARTED)
        asked = await self.log.message(message.parent, session.id)
        return Turn(session, message, asked, Limits.from_json(started["limits"]))

    async def _completed(self, turn: Turn, surroundings: Surroundings, state: TurnState) -> None:
        document = state["document"]
        assert document is not None
        body = await asyncio.to_thread(self._store.artifacts.read_json, document)
        checked = Checked(ReportDocument.from_json(body), ())
        violations = [item.as_json() for item in checked.document.violations if item.blocking]
        data = {
            "text": state["text"],
            "shown": checked.shown,
            "report": document,
            "run_id": state["run_id"],
            "notebook": state["notebook"],
            "language": surroundings.language,
            "violations": violations,
            "usage": state["usage"],
            "cost": state["cost"],
        }
        await self._end(turn, "completed", EventType.COMPLETED, data)
        if state["run_id"] is not None:
            await asyncio.to_thread(self._note_answer, state["run_id"], turn, document)

    def _note_answer(self, run_id: str, turn: Turn, document: str) -> None:
        """The run's record says which answers were issued from it."""
        facts = {"session": turn.session.id, "message": turn.message.id, "report": document}
        with self._store.unit_of_work(turn.session.owner) as work:
            if self._store.run(run_id).seal is not None:
                work.append(run_id, "answer.issued", facts, after_seal=True)
            work.audit("answer.issued", run_id, facts)

    async def _failed(self, turn: Turn, error: Mapping[str, Any]) -> None:
        await self._end(turn, "failed", EventType.FAILED, {"error": dict(error)})

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
        await self._end(turn, "stopped", EventType.STOPPED, {})

    async def _pause(self, turn: Turn) -> None:
        """At the end of the process: the turn can be resumed."""
        turn.ended = True
        if turn.task is not None:
            turn.task.cancel()
            await asyncio.wait([turn.task], timeout=5)
        if turn.message.turn_id is not None:
            await self._interrupted(turn.message, "the server was stopped")

    async def _interrupted(self, message: ChatMessage, reason: str) -> None:
        await self._close(message, "interrupted", EventType.INTERRUPT, {"reason": reason, "resumable": True})

    async def _end_waiting(self, session: Session, message: ChatMessage) -> None:
        """Ends a turn that waits for a person."""
        assert message.turn_id is not None
        await self.desk.withdraw(session.id, message.turn_id, by=session.owner)
        turn = await self._known_turn(session, message)
        await self._end(turn, "stopped", EventType.STOPPED, {})
        if self._checkpoints is not None:
            await self._checkpoints.forget(turn.id)

    async def _end(self, turn: Turn, status: MessageStatus, type: EventType, data: Mapping[str, Any]) -> None:
        if turn.ended:
            return
        turn.ended = True
        await self._close(turn.message, status, type, data)
        if self._turns.get(turn.session.id) is turn:
            del self._turns[turn.session.id]

    async def _close(
        self, message: ChatMessage, status: MessageStatus, type: EventType, data: Mapping[str, Any]
    ) -> None:
        """Ends or pauses a message: what it shows is folded from its events, this last one included."""
        assert message.turn_id is not None
        events = await self.log.turn_events(message.session_id, message.turn_id)
        last = SessionEvent(0, message.session_id, type, "", message.turn_id, message.id, data)
        await self.log.close_message(message, parts_of([*events, last]), status, type, data)

    async def _event(self, turn: Turn, type: EventType, data: Mapping[str, Any]) -> None:
        await self.log.append(turn.session.id, type, data, turn_id=turn.id, message_id=turn.message.id)

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
        checks = await asyncio.to_thread(checks_of, workspace, model, boxed=self._isolation == "docker")
        if any(check["state"] == "failed" for check in checks):
            raise NotReady(checks)

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


def _models_of(workspace: Path) -> Mapping[str, Any]:
    from learngraph_kernel.data.workspace import load_workspace

    return load_workspace(workspace).models


def _new_turn_id() -> str:
    return f"n_{secrets.token_hex(12)}"


def _running() -> TurnRunning:
    return TurnRunning("a turn of this session is under way", remedy="wait for its end, or stop it")
