"""The session log on the store: what the turn writes and the server reads.

Whoever asks names the owner; a session of somebody else is told as one that does not exist. Times come from the store's
clock; nothing here blocks the event loop.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from sqlalchemy import delete, func, insert, or_, select, update

from learngraph_kernel.agent.sessions.errors import UnknownMessage, UnknownSession
from learngraph_kernel.agent.sessions.rows import (
    MAX_SETTINGS,
    json_text,
    message_of,
    parts_text,
    session_of,
    title_text,
    words_of,
)
from learngraph_kernel.agent.sessions.stream import Anchor, EventStream
from learngraph_kernel.agent.values import ChatMessage, EventType, MessageStatus, Part, Session, SessionEvent
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.process import ProcessIdentity
from learngraph_kernel.store.schema import session_events, session_messages, sessions
from learngraph_kernel.store.writer import Batch

T = TypeVar("T")
BUSY = ("streaming", "waiting")


def new_id(prefix: str) -> str:
    """`s_…`, `m_…`, `n_…`: 96 random bits."""
    return f"{prefix}_{secrets.token_hex(12)}"


class SessionStore:
    """Sessions of all owners; `ports.SessionLog`. `close` it before the store."""

    def __init__(self, store: Store, *, heartbeat: float = 15.0) -> None:
        self._store = store
        self._stream = EventStream(store, heartbeat=heartbeat)

    # Sessions

    async def create(self, owner: str, workspace: Path, *, title: str = "", settings: Mapping[str, Any]) -> Session:
        """See SessionLog. Raises SessionTooLarge."""
        identity, line = new_id("s"), title_text(title)
        text = json_text(settings, MAX_SETTINGS, "the settings")

        def work(batch: Batch) -> None:
            now = to_text(batch.clock())
            row = {"id": identity, "owner": owner, "title": line, "workspace": str(workspace), "leaf": None}
            batch.connection.execute(
                insert(sessions).values(**row, settings=text, head=0, created_at=now, updated_at=now)
            )

        await self._change(owner, work)
        return await self.session(identity, owner)

    async def session(self, session_id: str, owner: str) -> Session:
        """See SessionLog. Raises UnknownSession."""
        query = select(sessions).where(sessions.c.id == session_id, sessions.c.owner == owner)
        rows = await self._rows(query)
        if not rows:
            raise UnknownSession(session_id)
        return session_of(rows[0])

    async def sessions(self, owner: str, *, search: str = "", limit: int = 50) -> Sequence[Session]:
        """See SessionLog."""
        query = select(sessions).where(sessions.c.owner == owner)
        wanted = search.strip().casefold()
        if wanted:
            within = select(session_messages.c.session_id).where(
                session_messages.c.words.contains(wanted, autoescape=True)
            )
            query = query.where(
                or_(func.lower(sessions.c.title).contains(wanted, autoescape=True), sessions.c.id.in_(within))
            )
        query = query.order_by(sessions.c.updated_at.desc(), sessions.c.id).limit(limit)
        return [session_of(row) for row in await self._rows(query)]

    async def change(
        self,
        session_id: str,
        owner: str,
        *,
        title: str | None = None,
        leaf: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Session:
        """See SessionLog. Raises UnknownSession, UnknownMessage (the leaf), SessionTooLarge."""
        await self.session(session_id, owner)
        changes: dict[str, Any] = {}
        if title is not None:
            changes["title"] = title_text(title)
        if settings is not None:
            changes["settings"] = json_text(settings, MAX_SETTINGS, "the settings")
        if leaf is not None:
            await self._message(leaf, session_id)
            changes["leaf"] = leaf

        def work(batch: Batch) -> None:
            values = {**changes, "updated_at": to_text(batch.clock())}
            batch.connection.execute(update(sessions).where(sessions.c.id == session_id).values(**values))

        await self._change(owner, work)
        await self.append(
            session_id, EventType.SESSION_CHANGED, {key: changes[key] for key in changes if key != "settings"}
        )
        return await self.session(session_id, owner)

    async def delete(self, session_id: str, owner: str) -> None:
        """See SessionLog. Raises UnknownSession."""
        await self.session(session_id, owner)

        def work(batch: Batch) -> None:
            for table in (session_events, session_messages):
                batch.connection.execute(delete(table).where(table.c.session_id == session_id))
            batch.connection.execute(delete(sessions).where(sessions.c.id == session_id))

        await self._change(owner, work)
        self._stream.gone(session_id)

    # Messages

    async def add_message(
        self,
        session_id: str,
        role: Literal["user", "assistant"],
        parts: Sequence[Part],
        *,
        parent: str | None,
        turn_id: str | None,
        status: MessageStatus,
    ) -> ChatMessage:
        """See SessionLog. It becomes the leaf. Raises UnknownSession, UnknownMessage (the parent), SessionTooLarge."""
        identity = new_id("m")
        if parent is not None:
            await self._message(parent, session_id)
        work = self._adding(identity, session_id, role, parts, parent=parent, turn_id=turn_id, status=status)
        await self._change("platform", work)
        return await self._message(identity, session_id)

    async def begin_turn(
        self,
        session_id: str,
        turn_id: str,
        question: str | Sequence[Part],
        parent: str | None,
        started: Mapping[str, Any],
    ) -> tuple[ChatMessage, ChatMessage]:
        """Puts a question and the answer that is to come on record, with their events, in one transaction.

        Args:
            question: the parts of a new question, or the id of one that is answered anew.
            parent: the message that a new question follows.
            started: data of `turn_started`; the ids of the two messages are added.

        Returns: the question and the answer.

        Raises:
            UnknownSession, UnknownMessage, SessionTooLarge.
        """
        asked, answer = question if isinstance(question, str) else new_id("m"), new_id("m")
        anchors: list[Anchor] = []
        if not isinstance(question, str):
            if parent is not None:
                await self._message(parent, session_id)
            add = self._adding(asked, session_id, "user", question, parent=parent, turn_id=turn_id, status="completed")
            parts = [{"kind": part.kind, "data": dict(part.data)} for part in question]
            data = {"message": asked, "parts": parts}
            anchors.append(Anchor(session_id, EventType.USER_MESSAGE, data, turn_id, asked, add))
        begin = self._adding(answer, session_id, "assistant", [], parent=asked, turn_id=turn_id, status="streaming")
        data = {**started, "message": answer, "answers": asked}
        anchors.append(Anchor(session_id, EventType.TURN_STARTED, data, turn_id, answer, begin))
        await self._stream.append_all(anchors)
        return await self._message(asked, session_id), await self._message(answer, session_id)

    def _adding(
        self,
        identity: str,
        session_id: str,
        role: str,
        parts: Sequence[Part],
        *,
        parent: str | None,
        turn_id: str | None,
        status: MessageStatus,
    ) -> Callable[[Batch], None]:
        """The change that adds a message and makes it the leaf. Raises SessionTooLarge now, UnknownSession later."""
        text = parts_text(parts)

        def work(batch: Batch) -> None:
            now, connection = to_text(batch.clock()), batch.connection
            if connection.scalar(select(sessions.c.id).where(sessions.c.id == session_id)) is None:
                raise UnknownSession(session_id)
            same = session_messages.c.parent.is_(None) if parent is None else session_messages.c.parent == parent
            siblings = select(func.count()).where(session_messages.c.session_id == session_id, same)
            row = {
                "id": identity,
                "session_id": session_id,
                "parent": parent,
                "version": 1 + int(connection.scalar(siblings) or 0),
                "role": role,
                "status": status,
                "parts": text,
                "words": words_of(parts),
                "turn_id": turn_id,
                "process": _process() if status in BUSY else None,
                "created_at": now,
            }
            connection.execute(insert(session_messages).values(**row))
            change = update(sessions).where(sessions.c.id == session_id)
            connection.execute(change.values(leaf=identity, updated_at=now))

        return work

    async def update_message(
        self, message_id: str, *, parts: Sequence[Part] | None = None, status: MessageStatus | None = None
    ) -> None:
        """See SessionLog. Raises SessionTooLarge."""
        changes: dict[str, Any] = {}
        if parts is not None:
            changes |= {"parts": parts_text(parts), "words": words_of(parts)}
        if status is not None:
            changes |= {"status": status, "process": _process() if status in BUSY else None}
        if changes:
            one = session_messages.c.id == message_id
            await self._change(
                "platform",
                lambda batch: batch.connection.execute(update(session_messages).where(one).values(**changes)),
            )

    async def message(self, message_id: str, session_id: str) -> ChatMessage:
        """One message of a session. Raises UnknownMessage."""
        return await self._message(message_id, session_id)

    async def branch(self, session_id: str, leaf: str | None = None) -> Sequence[ChatMessage]:
        """See SessionLog. Raises UnknownMessage (the leaf)."""
        if leaf is None:
            found = await self._rows(select(sessions.c.leaf).where(sessions.c.id == session_id))
            leaf = found[0]["leaf"] if found else None
            if leaf is None:
                return []
        return await asyncio.to_thread(self._walk, session_id, leaf)

    def _walk(self, session_id: str, leaf: str) -> list[ChatMessage]:
        parents = select(session_messages.c.id, session_messages.c.parent)
        tree = {row["id"]: row["parent"] for row in self._store.rows(parents.where(_of(session_id)))}
        if leaf not in tree:
            raise UnknownMessage(leaf)
        path: list[str] = []
        here: str | None = leaf
        while here is not None:
            path.append(here)
            here = tree[here]
        wanted = set(path)
        rows = {row["id"]: row for row in self._store.rows(select(session_messages).where(_of(session_id)))}
        return [message_of(rows[name]) for name in reversed(path) if name in wanted]

    async def versions(self, message_id: str) -> Sequence[ChatMessage]:
        """See SessionLog. Raises UnknownMessage."""
        one = await self._rows(select(session_messages).where(session_messages.c.id == message_id))
        if not one:
            raise UnknownMessage(message_id)
        parent = one[0]["parent"]
        same = session_messages.c.parent.is_(None) if parent is None else session_messages.c.parent == parent
        query = select(session_messages).where(_of(one[0]["session_id"]), same).order_by(session_messages.c.version)
        return [message_of(row) for row in await self._rows(query)]

    # Events

    async def append(
        self,
        session_id: str,
        type: EventType,
        data: Mapping[str, Any],
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> SessionEvent:
        """See SessionLog. Raises UnknownSession, SessionTooLarge."""
        return await self._stream.append(session_id, type, data, turn_id, message_id)

    async def close_message(
        self,
        message: ChatMessage,
        parts: Sequence[Part],
        status: MessageStatus,
        type: EventType,
        data: Mapping[str, Any],
    ) -> SessionEvent:
        """Ends, or pauses, the message of a turn: the message and the event that says so in one transaction.

        Who hears of it therefore finds the message as it says. Raises UnknownSession, SessionTooLarge.
        """
        values = {
            "parts": parts_text(parts),
            "words": words_of(parts),
            "status": status,
            "process": _process() if status in BUSY else None,
        }
        change = update(session_messages).where(session_messages.c.id == message.id).values(**values)
        return await self._stream.append(
            message.session_id,
            type,
            data,
            message.turn_id,
            message.id,
            also=lambda batch: batch.connection.execute(change),
        )

    def delta(
        self,
        session_id: str,
        type: EventType,
        data: Mapping[str, Any],
        *,
        turn_id: str | None = None,
        message_id: str | None = None,
    ) -> None:
        """See SessionLog."""
        self._stream.delta(session_id, type, data, turn_id, message_id)

    async def events(self, session_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SessionEvent]:
        """See SessionLog."""
        return await asyncio.to_thread(self._stream.read, session_id, after, limit)

    def follow(self, session_id: str, *, after: int = 0) -> AsyncIterator[SessionEvent | None]:
        """See SessionLog."""
        there = select(sessions.c.id).where(sessions.c.id == session_id)
        return self._stream.follow(session_id, after, lambda: bool(self._store.rows(there)))

    async def turn_events(self, session_id: str, turn_id: str) -> Sequence[SessionEvent]:
        """The events of one turn."""
        from learngraph_kernel.agent.sessions.rows import event_of

        query = select(session_events).where(
            session_events.c.session_id == session_id, session_events.c.turn_id == turn_id
        )
        return [event_of(row) for row in await self._rows(query.order_by(session_events.c.seq))]

    # After a crash

    async def abandoned(self) -> Sequence[ChatMessage]:
        """Messages that a process which is gone was writing, or was waiting with."""
        query = select(session_messages).where(session_messages.c.status.in_(BUSY))
        rows = await self._rows(query)
        return [message_of(row) for row in rows if not _alive(row["process"])]

    async def take_over(self, message_id: str) -> bool:
        """Makes this process the one that writes a message; False when another one that lives does."""
        one = select(session_messages).where(session_messages.c.id == message_id)

        def work(batch: Batch) -> bool:
            row = batch.connection.execute(one).mappings().first()
            if row is None or (row["process"] != _process() and _alive(row["process"])):
                return False
            batch.connection.execute(
                update(session_messages).where(session_messages.c.id == message_id).values(process=_process())
            )
            return True

        return await self._change("platform", work)

    async def running(self, session_id: str) -> Sequence[ChatMessage]:
        """Messages of a session that a living process is writing, or that wait for a person."""
        query = select(session_messages).where(_of(session_id), session_messages.c.status.in_(BUSY))
        rows = await self._rows(query)
        return [message_of(row) for row in rows if row["status"] == "waiting" or _alive(row["process"])]

    async def close(self) -> None:
        """Writes what is waiting."""
        await self._stream.close()

    # Plumbing

    async def _message(self, message_id: str, session_id: str) -> ChatMessage:
        rows = await self._rows(select(session_messages).where(session_messages.c.id == message_id, _of(session_id)))
        if not rows:
            raise UnknownMessage(message_id)
        return message_of(rows[0])

    async def _rows(self, query: Any) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._store.rows, query)

    async def _change(self, actor: str, work: Callable[[Batch], T]) -> T:
        made: list[T] = []

        def step(batch: Batch) -> None:
            made.clear()
            made.append(work(batch))

        def go() -> None:
            with self._store.unit_of_work(actor) as unit:
                unit.change(step)

        await asyncio.to_thread(go)
        return made[0]


def _of(session_id: str) -> Any:
    return session_messages.c.session_id == session_id


def _process() -> str:
    return json.dumps(ProcessIdentity.current().as_json(), sort_keys=True)


def _alive(process: str | None) -> bool:
    return process is not None and ProcessIdentity.from_json(json.loads(process)).alive()
