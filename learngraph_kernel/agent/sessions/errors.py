"""What can be wrong with a request about a conversation."""

from __future__ import annotations

from learngraph_kernel.errors import BadInput


class UnknownSession(BadInput):
    """There is no such session of this owner; a foreign one is told the same."""

    code = "unknown_session"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"there is no session {session_id[:60]!r}", remedy="list your sessions, or begin a new one")


class UnknownMessage(BadInput):
    """The session has no such message."""

    code = "unknown_message"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"there is no message {message_id[:60]!r} in this session", remedy="load the session again")


class SessionTooLarge(BadInput):
    """A title, a message, settings or an event are larger than they may be."""

    code = "session_too_large"
