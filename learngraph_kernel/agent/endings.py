"""How a turn pauses and ends on record: the message, what it shows, and the event that says so, in one transaction.

Whatever of a turn is needed to go on with it is read back from there as well: its question, its limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.turn.answer import Checked
from learngraph_kernel.agent.turn.limits import Limits
from learngraph_kernel.agent.turn.parts import parts_of
from learngraph_kernel.agent.turn.state import TurnState
from learngraph_kernel.agent.values import ChatMessage, EventType, MessageStatus, Session, SessionEvent
from learngraph_kernel.evidence.document import ReportDocument
from learngraph_kernel.store.database import Store
from learngraph_kernel.tools.desk import Desk


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


class Endings:
    """Writes ends and pauses of turns; each turn has one end."""

    def __init__(self, store: Store, log: SessionStore, desk: Desk) -> None:
        self._store, self._log, self._desk = store, log, desk

    async def known_turn(self, session: Session, message: ChatMessage) -> Turn:
        """A turn from its record: its limits are those it began with."""
        assert message.turn_id is not None and message.parent is not None
        events = await self._log.turn_events(session.id, message.turn_id)
        started = next(event.data for event in events if event.type is EventType.TURN_STARTED)
        asked = await self._log.message(message.parent, session.id)
        return Turn(session, message, asked, Limits.from_json(started["limits"]))

    async def waiting(self, turn: Turn, approval_id: str) -> None:
        """A person is asked; the turn pauses."""
        approval = await self._desk.approvals.find(approval_id)
        await self._event(turn, EventType.APPROVAL_REQUESTED, approval.as_json())
        await self._close(turn.message, "waiting", EventType.INTERRUPT, {"approval_id": approval_id})

    async def undecided(self, approval_id: str) -> bool:
        """Whether a person still has to decide an approval."""
        return (await self._desk.approvals.find(approval_id)).state == "pending"

    async def asks(self, message: ChatMessage) -> bool:
        """Whether a message that waits has a question that is still open."""
        pending = await self._desk.approvals.of_turn(message.session_id, message.turn_id or "")
        return any(approval.state == "pending" for approval in pending)

    async def completed(self, turn: Turn, state: TurnState, language: str) -> None:
        """An answer was checked: it is what the message shows, and the run's record names it."""
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
            "language": language,
            "violations": violations,
            "usage": state["usage"],
            "cost": state["cost"],
        }
        await self.end(turn, "completed", EventType.COMPLETED, data)
        if state["run_id"] is not None:
            await asyncio.to_thread(self._note_answer, state["run_id"], turn, document)

    def _note_answer(self, run_id: str, turn: Turn, document: str) -> None:
        """The run's record says which answers were issued from it."""
        facts = {"session": turn.session.id, "message": turn.message.id, "report": document}
        with self._store.unit_of_work(turn.session.owner) as work:
            if self._store.run(run_id).seal is not None:
                work.append(run_id, "answer.issued", facts, after_seal=True)
            work.audit("answer.issued", run_id, facts)

    async def failed(self, turn: Turn, error: Mapping[str, Any]) -> None:
        """It could not go on; `error` as `LearnGraphError.as_json`, with `retryable`."""
        await self.end(turn, "failed", EventType.FAILED, {"error": dict(error)})

    async def interrupted(self, message: ChatMessage, reason: str) -> None:
        """Its process ended, or is about to; it can be resumed."""
        await self._close(message, "interrupted", EventType.INTERRUPT, {"reason": reason, "resumable": True})

    async def end(self, turn: Turn, status: MessageStatus, type: EventType, data: Mapping[str, Any]) -> None:
        """Writes how a turn ended, unless that was written already."""
        if turn.ended:
            return
        turn.ended = True
        await self._close(turn.message, status, type, data)

    async def _close(
        self, message: ChatMessage, status: MessageStatus, type: EventType, data: Mapping[str, Any]
    ) -> None:
        """Ends or pauses a message: what it shows is folded from its events, this last one included."""
        assert message.turn_id is not None
        events = await self._log.turn_events(message.session_id, message.turn_id)
        last = SessionEvent(0, message.session_id, type, "", message.turn_id, message.id, data)
        await self._log.close_message(message, parts_of([*events, last]), status, type, data)

    async def _event(self, turn: Turn, type: EventType, data: Mapping[str, Any]) -> None:
        await self._log.append(turn.session.id, type, data, turn_id=turn.id, message_id=turn.message.id)
