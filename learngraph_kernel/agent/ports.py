"""The seams of the agent: what the turn needs of a session log, and what a server (or `learngraph ask`) needs of all.

`agent/sessions/` is the log, `agent/runtime.py` the runtime; tests may hand in their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

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


class SessionLog(Protocol):
    """Sessions, messages and the stream of events, durable. A foreign session is told as unknown (UnknownSession)."""

    async def create(self, owner: str, workspace: Path, *, title: str = "", settings: Mapping[str, Any]) -> Session: ...

    async def session(self, session_id: str, owner: str) -> Session: ...

    async def sessions(self, owner: str, *, search: str = "", limit: int = 50) -> Sequence[Session]:
        """Newest first; `search` looks in titles and texts."""

    async def change(
        self,
        session_id: str,
        owner: str,
        *,
        title: str | None = None,
        leaf: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Session: ...

    async def delete(self, session_id: str, owner: str) -> None: ...

    async def add_message(
        self,
        session_id: str,
        role: Literal["user", "assistant"],
        parts: Sequence[Part],
        *,
        parent: str | None,
        turn_id: str | None,
        status: MessageStatus,
    ) -> ChatMessage: ...

    async def update_message(
        self, message_id: str, *, parts: Sequence[Part] | None = None, status: MessageStatus | None = None
    ) -> None: ...

    async def branch(self, session_id: str, leaf: str | None = None) -> Sequence[ChatMessage]:
        """From the first message to a leaf (the session's own when None)."""

    async def versions(self, message_id: str) -> Sequence[ChatMessage]:
        """The siblings of a message, itself included."""

    async def append(
        self,
        session_id: str,
        type: EventType,
        data: Mapping[str, Any],
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> SessionEvent:
        """Records an anchor: on disk when this returns, after every delta that came before it."""

    def delta(
        self,
        session_id: str,
        type: EventType,
        data: Mapping[str, Any],
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> None:
        """Records a delta: shown at once, on disk with the next batch. Never waits for the disk."""

    async def events(self, session_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SessionEvent]: ...

    def follow(self, session_id: str, *, after: int = 0) -> AsyncIterator[SessionEvent | None]:
        """Every event after `after`, once, in order, and on; None is a heartbeat (nothing came for a while)."""


class AgentRuntime(Protocol):
    """Everything a person can do with the agent, as values; the server adds HTTP and nothing else."""

    log: SessionLog

    async def start(self) -> None:
        """Opens stores, and shows turns of a dead process as interrupted. Imports nothing heavy."""

    async def ask(self, session_id: str, owner: str, question: Question) -> ChatMessage:
        """Persists the message, begins its turn in the background, returns the user's message.

        Raises:
            TurnRunning: one is under way in this session (send it again when it ended, or stop it).
            NotReady: the readiness checks refuse the turn; the details list each with its remedy.
        """

    async def regenerate(self, session_id: str, owner: str, message_id: str) -> ChatMessage:
        """A new version of an assistant's message. Returns the user's message it answers."""

    async def stop(self, session_id: str, owner: str) -> bool:
        """Ends the running turn within a second: graph, kernel and processes. False when none was running."""

    async def resume(self, session_id: str, owner: str) -> bool:
        """Goes on with an interrupted turn from its checkpoint. False when there is none."""

    async def approvals(self, owner: str, *, state: str | None = "pending") -> Sequence[Mapping[str, Any]]:
        """Approvals this owner may decide, newest first."""

    async def decide(self, owner: str, decision: Decision) -> Mapping[str, Any]:
        """Records a decision and lets its turn go on.

        Raises:
            ApprovalError: unknown, consumed, expired, foreign or edited; nothing happens then.
        """

    async def readiness(self) -> Sequence[Mapping[str, Any]]:
        """Each check: `{"name", "state", "reason", "remedy"}`."""

    async def close(self) -> None:
        """Stops turns (they can be resumed) and closes everything."""
