"""Rows and values: how sessions, messages and events lie in the tables, and how large they may be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learngraph_kernel.agent.sessions.errors import SessionTooLarge
from learngraph_kernel.agent.values import ChatMessage, EventType, Part, Session, SessionEvent

MAX_TITLE = 300
MAX_SETTINGS = 64 * 1024
MAX_PARTS = 4 * 1024 * 1024
MAX_EVENT = 1024 * 1024
"""Characters of JSON; what is longer belongs into an artifact."""


def json_text(value: Any, longest: int, what: str) -> str:
    """JSON with its characters as they are, so that a search finds Chinese. Raises SessionTooLarge."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(text) > longest:
        raise SessionTooLarge(
            f"{what} has {len(text):,} characters", remedy=f"keep it under {longest:,}; attach the rest as a file"
        )
    return text


def title_text(title: str) -> str:
    """A title on one line. Raises SessionTooLarge."""
    line = " ".join(title.split())
    if len(line) > MAX_TITLE:
        raise SessionTooLarge(f"the title has {len(line)} characters", remedy=f"keep it under {MAX_TITLE}")
    return line


def words_of(parts: Sequence[Part]) -> str:
    """What a person can read in a message, case folded."""
    texts = [str(part.data.get("text", "")) for part in parts if part.kind in ("text", "notice")]
    return "\n".join(texts).casefold()


def parts_text(parts: Sequence[Part]) -> str:
    """Parts as JSON. Raises SessionTooLarge."""
    return json_text([{"kind": part.kind, "data": dict(part.data)} for part in parts], MAX_PARTS, "the message")


def session_of(row: Mapping[str, Any]) -> Session:
    return Session(
        row["id"],
        row["owner"],
        row["title"],
        Path(row["workspace"]),
        row["leaf"],
        json.loads(row["settings"]),
        row["created_at"],
        row["updated_at"],
    )


def message_of(row: Mapping[str, Any]) -> ChatMessage:
    return ChatMessage(
        id=row["id"],
        session_id=row["session_id"],
        parent=row["parent"],
        version=row["version"],
        role=row["role"],
        status=row["status"],
        parts=tuple(Part(part["kind"], part["data"]) for part in json.loads(row["parts"])),
        turn_id=row["turn_id"],
        created_at=row["created_at"],
    )


def event_of(row: Mapping[str, Any]) -> SessionEvent:
    return SessionEvent(
        row["seq"],
        row["session_id"],
        EventType(row["type"]),
        row["at"],
        row["turn_id"],
        row["message_id"],
        json.loads(row["data"]),
    )
