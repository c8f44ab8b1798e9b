"""A conversation as values: sessions, messages with versions and parts, and the events of the stream.

The event log is the truth and SSE only carries it. A session's events are numbered from 1 without gaps; what a reader
shows is a fold over them, so a reader who resumes after any of them ends with the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeAlias

MessageStatus: TypeAlias = Literal["streaming", "waiting", "completed", "stopped", "failed", "interrupted"]
PartKind: TypeAlias = Literal[
    "text", "thinking", "tool_call", "sources", "card", "sandbox_status", "artifact", "approval", "notice", "attachment"
]


MAX_ATTACHMENT = 16 * 1024 * 1024
"""Bytes of a file that goes with a question."""


class EventType(StrEnum):
    """Types of session events; the data of each is in docs/agent.md."""

    USER_MESSAGE = "user_message"
    TURN_STARTED = "turn_started"
    STEP_STARTED = "step_started"
    REASONING_DELTA = "reasoning_delta"
    TEXT_DELTA = "text_delta"
    TOOL_CALL = "tool_call"
    TOOL_PROGRESS = "tool_progress"
    TOOL_RESULT = "tool_result"
    APPROVAL_REQUESTED = "approval_requested"
    APPROVAL_DECIDED = "approval_decided"
    CARD = "card"
    ARTIFACT = "artifact"
    SANDBOX_STATUS = "sandbox_status"
    TASK = "task"
    USAGE = "usage"
    WARNING = "warning"
    INTERRUPT = "interrupt"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    SESSION_CHANGED = "session_changed"


DELTAS = frozenset({EventType.REASONING_DELTA, EventType.TEXT_DELTA, EventType.TOOL_PROGRESS})
"""Stored in batches by count or time; every other event is an anchor, on disk before it is shown."""

FINAL = frozenset({EventType.COMPLETED, EventType.STOPPED, EventType.FAILED})


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of one owner.

    Attributes:
        id: `s_…`.
        owner: `user:ana`; others are told there is no such session.
        workspace: folder the conversation works in.
        leaf: the message whose branch is shown; None in a new session.
        settings: model, style, budgets, plan mode: JSON.
    """

    id: str
    owner: str
    title: str
    workspace: Path
    leaf: str | None
    settings: Mapping[str, Any]
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message: its kind and JSON data (`{"text": …}` for text and thinking)."""

    kind: PartKind
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. Siblings with the same parent are versions of each other (edit, regenerate).

    Attributes:
        id: `m_…`.
        parent: the message before it; None for the first.
        version: 1-based among its siblings.
        turn_id: the turn that made it (`n_…`); a user's message carries the turn that answers it.
    """

    id: str
    session_id: str
    parent: str | None
    version: int
    role: Literal["user", "assistant"]
    status: MessageStatus
    parts: tuple[Part, ...]
    turn_id: str | None
    created_at: str


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One event of a session's stream; `seq` is the SSE id."""

    seq: int
    session_id: str
    type: EventType
    at: str
    turn_id: str | None
    message_id: str | None
    data: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "session_id": self.session_id,
            "type": self.type.value,
            "at": self.at,
            "turn_id": self.turn_id,
            "message_id": self.message_id,
            "data": dict(self.data),
        }


@dataclass(frozen=True, slots=True)
class Question:
    """What a person sends.

    Attributes:
        text: as typed.
        attachments: `{"name", "sha256", "media_type", "bytes"}`, stored already.
        parent: the message it follows (edit: the parent of the edited one); None for the shown leaf.
        model: name of a model in learngraph.toml; None for the session's.
    """

    text: str
    attachments: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


Choice: TypeAlias = Literal["approve", "reject", "edit", "respond"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided on one approval.

    Attributes:
        approval_id: which; nothing is decided by position.
        choice: only `approve` lets the exact arguments happen; `edit` asks for a new approval of other arguments.
        arguments_hash: the sha256 the person saw; another one than the record's is an error.
        grant: `allow_once`, or `always` (bound to the authorisation's hash).
        arguments: of `edit`.
        text: the reason of a rejection, the answer of `respond`.
    """

    approval_id: str
    choice: Choice
    arguments_hash: str
    grant: Literal["allow_once", "always"] = "allow_once"
    arguments: Mapping[str, Any] | None = None
    text: str = ""
