"""How events get onto the disk in batches, and from there to whoever follows a session.

An event is shown once it is on disk, and not before: so no reader can have seen what a crash took away, and a number
once seen means the same for ever. Deltas wait for the next batch (a few hundredths of a second), an anchor makes the
batch go now. Deltas that follow each other in one batch become one event, so that a fast model costs few rows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert, select, update

from learngraph_kernel.agent.sessions.errors import UnknownSession
from learngraph_kernel.agent.sessions.rows import MAX_EVENT, event_of, json_text
from learngraph_kernel.agent.values import DELTAS, EventType, SessionEvent
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import session_events, sessions
from learngraph_kernel.store.writer import Batch

DELTA_SECONDS = 0.04
"""How long a delta waits for others before they are written together."""
MAX_PENDING = 20_000
"""Deltas that may wait; beyond it the disk is slower than the models, and `append` makes the callers wait."""
PAGE = 500
FOLLOWED = 1_000
"""Events a follower may lag behind in memory; one that is slower reads from the disk."""


@dataclass(frozen=True)
class Anchor:
    """An event that is to be on disk; `also` is done in its transaction."""

    session_id: str
    type: EventType
    data: Mapping[str, Any]
    turn_id: str | None
    message_id: str | None
    also: Callable[[Batch], object] | None = None


@dataclass
class _Draft:
    """An event before it has its number."""

    session_id: str
    type: EventType
    data: dict[str, Any]
    turn_id: str | None
    message_id: str | None
    stored: asyncio.Future[SessionEvent] | None
    also: Callable[[Batch], object] | None = None

    def takes_in(self, other: _Draft) -> bool:
        """Joins the text of a delta that follows this one, when both belong to the same block."""
        alike = self.type is other.type and self.type in DELTAS and self.stored is None and other.stored is None
        place = (other.session_id, other.turn_id, other.message_id)
        if not alike or (self.session_id, self.turn_id, self.message_id) != place:
            return False
        rest = {key: value for key, value in other.data.items() if key != "text"}
        if "text" not in other.data or rest != {key: value for key, value in self.data.items() if key != "text"}:
            return False
        self.data["text"] += other.data["text"]
        return True


@dataclass(eq=False)
class _Follower:
    queue: asyncio.Queue[SessionEvent | None] = field(default_factory=lambda: asyncio.Queue(FOLLOWED))
    lagging: bool = False


class EventStream:
    """The events of all sessions of one process.

    Args:
        heartbeat: seconds of silence after which a follower gets None.
    """

    def __init__(self, store: Store, *, heartbeat: float = 15.0, pause: float = DELTA_SECONDS) -> None:
        self._store, self._heartbeat, self._pause = store, heartbeat, pause
        self._pending: list[_Draft] = []
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._followers: dict[str, set[_Follower]] = {}
        self._closing = False

    async def append(
        self,
        session_id: str,
        type: EventType,
        data: Mapping[str, Any],
        turn_id: str | None,
        message_id: str | None,
        also: Callable[[Batch], object] | None = None,
    ) -> SessionEvent:
        """Writes an anchor, after every delta before it, and in the same transaction whatever `also` does.

        Raises:
            UnknownSession, SessionTooLarge, what the store raises.
        """
        (event,) = await self.append_all([Anchor(session_id, type, data, turn_id, message_id, also)])
        return event

    async def append_all(self, anchors: Sequence[Anchor]) -> list[SessionEvent]:
        """As `append`, several in one transaction."""
        drafts = []
        for anchor in anchors:
            json_text(anchor.data, MAX_EVENT, "the event")
            stored: asyncio.Future[SessionEvent] = asyncio.get_running_loop().create_future()
            data = dict(anchor.data)
            drafts.append(
                _Draft(anchor.session_id, anchor.type, data, anchor.turn_id, anchor.message_id, stored, anchor.also)
            )
        for draft in drafts:  # handed over together, so that they are in one batch, and a batch is one transaction
            self._put(draft)
        self._urgent.set()
        return [await draft.stored for draft in drafts if draft.stored is not None]

    def delta(
        self, session_id: str, type: EventType, data: Mapping[str, Any], turn_id: str | None, message_id: str | None
    ) -> None:
        """Hands a delta over. Never waits."""
        draft = _Draft(session_id, type, dict(data), turn_id, message_id, None)
        if self._pending and self._pending[-1].takes_in(draft):
            return
        self._put(draft)
        if len(self._pending) > MAX_PENDING:
            self._urgent.set()

    def _put(self, draft: _Draft) -> None:
        self._pending.append(draft)
        self._wake.set()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write_forever())

    async def _write_forever(self) -> None:
        while not self._closing or self._pending:
            await self._wake.wait()
            if not self._urgent.is_set() and not self._closing:
                with contextlib.suppress(TimeoutError):  # nobody is in a hurry: the batch is what came meanwhile
                    await asyncio.wait_for(self._urgent.wait(), self._pause)
            batch, self._pending = self._pending, []
            self._wake.clear()
            self._urgent.clear()
            if batch:
                await self._write(_joined(batch))

    async def _write(self, drafts: list[_Draft]) -> None:
        try:
            events = await asyncio.to_thread(self._commit, drafts)
        except Exception as error:  # noqa: BLE001  every caller that waits gets it
            for draft in drafts:
                if draft.stored is not None and not draft.stored.done():
                    draft.stored.set_exception(error)
            return
        for draft, event in zip(drafts, events, strict=True):
            if event is not None:
                self._show(event)
            if draft.stored is not None and not draft.stored.done():
                if event is None:
                    draft.stored.set_exception(UnknownSession(draft.session_id))
                else:
                    draft.stored.set_result(event)

    def _commit(self, drafts: list[_Draft]) -> list[SessionEvent | None]:
        """Numbers and stores events in one transaction; None for those whose session is gone."""
        made: list[SessionEvent | None] = []

        def step(batch: Batch) -> None:
            made.clear()
            heads: dict[str, int | None] = {}
            at, rows = to_text(batch.clock()), []
            for draft in drafts:
                name = draft.session_id
                if name not in heads:
                    heads[name] = batch.connection.scalar(select(sessions.c.head).where(sessions.c.id == name))
                head = heads[name]
                if head is None:
                    made.append(None)
                    continue
                heads[name] = head + 1
                if draft.also is not None:
                    draft.also(batch)
                event = SessionEvent(head + 1, name, draft.type, at, draft.turn_id, draft.message_id, draft.data)
                made.append(event)
                rows.append(
                    {
                        "session_id": name,
                        "seq": event.seq,
                        "type": event.type.value,
                        "at": at,
                        "turn_id": event.turn_id,
                        "message_id": event.message_id,
                        "data": json_text(event.data, 2 * MAX_EVENT, "the event"),
                    }
                )
            for name, head in heads.items():
                if head is not None:
                    batch.connection.execute(update(sessions).where(sessions.c.id == name).values(head=head))
            if rows:
                batch.connection.execute(insert(session_events), rows)

        with self._store.unit_of_work("platform") as work:
            work.change(step)
        return made

    # Reading

    def _show(self, event: SessionEvent) -> None:
        for follower in self._followers.get(event.session_id, ()):
            if follower.lagging:
                continue
            try:
                follower.queue.put_nowait(event)
            except asyncio.QueueFull:
                follower.lagging = True  # it catches up from the disk

    def gone(self, session_id: str) -> None:
        """A session was deleted: whoever follows it comes to an end."""
        for follower in self._followers.pop(session_id, set()):
            follower.lagging = False
            while not follower.queue.empty():
                follower.queue.get_nowait()
            follower.queue.put_nowait(None)

    def read(self, session_id: str, after: int, limit: int | None) -> list[SessionEvent]:
        """Stored events after a number. Blocks."""
        query = select(session_events).where(session_events.c.session_id == session_id, session_events.c.seq > after)
        query = query.order_by(session_events.c.seq)
        return [event_of(row) for row in self._store.rows(query if limit is None else query.limit(limit))]

    async def follow(
        self, session_id: str, after: int, exists: Callable[[], bool]
    ) -> AsyncIterator[SessionEvent | None]:
        """Every event after a number, once, in order, and on; None after a silence. Ends when the session is gone."""
        follower = _Follower()
        self._followers.setdefault(session_id, set()).add(follower)
        try:
            seen = after
            while True:
                # From the disk first, and again whenever memory was not enough; what is in both is shown once.
                follower.lagging = False
                while page := await asyncio.to_thread(self.read, session_id, seen, PAGE):
                    for event in page:
                        seen = event.seq
                        yield event
                while not (follower.lagging and follower.queue.empty()):
                    try:
                        next_one = await asyncio.wait_for(follower.queue.get(), self._heartbeat)
                    except TimeoutError:
                        yield None
                        break  # another process may have written: the disk knows
                    if next_one is None:
                        return
                    if next_one.seq > seen + 1:
                        break  # the disk has what lies between
                    if next_one.seq == seen + 1:
                        seen = next_one.seq
                        yield next_one
                if not await asyncio.to_thread(exists):
                    return
        finally:
            theirs = self._followers.get(session_id)
            if theirs is not None:
                theirs.discard(follower)
                if not theirs:
                    del self._followers[session_id]

    async def close(self) -> None:
        """Writes what is waiting."""
        self._closing = True
        self._wake.set()
        self._urgent.set()
        if self._task is not None:
            await self._task


def _joined(drafts: list[_Draft]) -> list[_Draft]:
    """The same events with neighbouring deltas of one session put together."""
    last: dict[str, _Draft] = {}
    kept: list[_Draft] = []
    for draft in drafts:
        before = last.get(draft.session_id)
        if before is not None and before.takes_in(draft):
            continue
        last[draft.session_id] = draft
        kept.append(draft)
    return kept
