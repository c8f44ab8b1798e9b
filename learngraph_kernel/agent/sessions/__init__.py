"""Conversations on disk: sessions, messages with versions and branches, and the log of events that SSE carries.

`store.SessionStore` is the `SessionLog` of the ports. `stream` is how events get onto the disk in batches and from
there to whoever follows; `rows` turns rows into values; `export` writes a conversation out. Imports the store.
"""

from __future__ import annotations

from learngraph_kernel.agent.sessions.errors import SessionTooLarge, UnknownMessage, UnknownSession
from learngraph_kernel.agent.sessions.store import SessionStore

__all__ = ["SessionStore", "SessionTooLarge", "UnknownMessage", "UnknownSession"]
