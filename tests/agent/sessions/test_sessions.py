"""Conversations on disk: owners, branches, versions, search, and a stream that gives every event once, in order."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from learngraph_kernel.agent.sessions import SessionStore, SessionTooLarge, UnknownMessage, UnknownSession
from learngraph_kernel.agent.values import EventType, Part, Session, SessionEvent
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

ANA, BO = "user:ana", "user:bo"


def play(folder: Path, act: Callable[[SessionStore], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        with Store.open(Home(folder)) as store:
            log = SessionStore(store, **options)
            try:
                await act(log)
            finally:
                await log.close()

    asyncio.run(whole())


def text(words: str) -> list[Part]:
    return [Part("text", {"text": words})]


async def say(log: SessionStore, session: Session, words: str, parent: str | None, role: Any = "user") -> str:
    message = await log.add_message(session.id, role, text(words), parent=parent, turn_id=None, status="completed")
    return message.id


async def take(stream: AsyncIterator[SessionEvent | None], count: int) -> list[SessionEvent]:
    """The next events; heartbeats are passed over."""
    got: list[SessionEvent] = []
    while len(got) < count:
        event = await asyncio.wait_for(anext(stream), 20)
        if event is not None:
            got.append(event)
    return got


def test_a_session_of_another_owner_does_not_exist(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, title="A  title\nof two lines", settings={"model": "m"})
        assert (await log.session(session.id, ANA)).title == "A title of two lines"
        for act in (
            lambda: log.session(session.id, BO),
            lambda: log.change(session.id, BO, title="x"),
            lambda: log.delete(session.id, BO),
            lambda: log.session("s_none", ANA),
        ):
            with pytest.raises(UnknownSession):
                await act()
        assert await log.sessions(BO) == [] and len(await log.sessions(ANA)) == 1

    play(tmp_path, act)


def test_an_edited_message_begins_a_branch_and_the_old_one_stays(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        first = await say(log, session, "one", None)
        answer = await say(log, session, "two", first, "assistant")
        third = await say(log, session, "three", answer)
        edited = await say(log, session, "three, edited", answer)
        assert [message.parts[0].data["text"] for message in await log.branch(session.id)] == [
            "one",
            "two",
            "three, edited",
        ]
        assert [(version.id, version.version) for version in await log.versions(edited)] == [(third, 1), (edited, 2)]
        await log.change(session.id, ANA, leaf=third)
        assert (await log.branch(session.id))[-1].id == third
        anew = await say(log, session, "one, anew", None)
        assert [version.version for version in await log.versions(anew)] == [1, 2]
        assert [message.id for message in await log.branch(session.id)] == [anew]
        with pytest.raises(UnknownMessage):
            await say(log, session, "x", "m_none")
        with pytest.raises(UnknownMessage):
            await log.change(session.id, ANA, leaf="m_none")

    play(tmp_path, act)


@pytest.mark.parametrize(
    ("search", "found"), [("REVENUE", 1), ("上周", 1), ("100%", 1), ("_", 0), ("nothing", 0), ("", 3)]
)
def test_the_search_looks_in_titles_and_texts(tmp_path: Path, search: str, found: int) -> None:
    async def act(log: SessionStore) -> None:
        for words in ("The revenue of May", "上周的销售额", "about 100% of it"):
            session = await log.create(ANA, tmp_path, settings={})
            await say(log, session, words, None)
        assert len(await log.sessions(ANA, search=search)) == found
        assert await log.sessions(BO, search=search) == []

    play(tmp_path, act)


def test_what_is_too_large_is_refused_with_its_limit(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        with pytest.raises(SessionTooLarge):
            await log.change(session.id, ANA, title="x" * 301)
        with pytest.raises(SessionTooLarge):
            await log.create(ANA, tmp_path, settings={"x": "y" * 70_000})
        with pytest.raises(SessionTooLarge):
            await say(log, session, "x" * 5_000_000, None)
        with pytest.raises(SessionTooLarge):
            await log.append(session.id, EventType.CARD, {"x": "y" * 1_100_000})
        assert (await log.append(session.id, EventType.CARD, {"x": 1})).seq == 1

    play(tmp_path, act)


def test_a_deleted_session_ends_its_followers_and_takes_no_event(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        await log.append(session.id, EventType.CARD, {"n": 1})
        stream = log.follow(session.id)
        assert [event.seq for event in await take(stream, 1)] == [1]
        waiting = asyncio.ensure_future(anext(stream, "end"))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await log.delete(session.id, ANA)
        assert await asyncio.wait_for(waiting, 10) == "end"
        with pytest.raises(UnknownSession):
            await log.append(session.id, EventType.CARD, {})

    play(tmp_path, act)


# The stream


def test_deltas_are_on_disk_before_anybody_sees_them_and_before_the_anchor_after_them(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        for piece in ("a", "b", "c"):
            log.delta(session.id, EventType.TEXT_DELTA, {"step": 1, "text": piece})
        log.delta(session.id, EventType.TEXT_DELTA, {"step": 2, "text": "d"})
        anchor = await log.append(session.id, EventType.COMPLETED, {})
        stored = await log.events(session.id)
        assert [(event.seq, event.type.value, event.data.get("text")) for event in stored] == [
            (1, "text_delta", "abc"),
            (2, "text_delta", "d"),
            (anchor.seq, "completed", None),
        ]

    play(tmp_path, act)


def test_deltas_of_two_sessions_never_mix(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        one, two = [await log.create(ANA, tmp_path, settings={}) for _ in range(2)]
        for piece in "abc":
            for session in (one, two):
                log.delta(session.id, EventType.TEXT_DELTA, {"step": 1, "text": f"{session.id[-4:]}{piece}"})
        for session in (one, two):
            await log.append(session.id, EventType.COMPLETED, {})
            (text, _) = await log.events(session.id)
            assert text.data["text"] == "".join(f"{session.id[-4:]}{piece}" for piece in "abc")

    play(tmp_path, act)


def test_a_delta_alone_is_shown_within_a_moment(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        stream = log.follow(session.id)
        waiting = asyncio.ensure_future(take(stream, 1))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        log.delta(session.id, EventType.TEXT_DELTA, {"text": "x"})
        assert (await waiting)[0].data == {"text": "x"}
        assert time.monotonic() - began < 1

    play(tmp_path, act)


def test_silence_is_told(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        stream = log.follow(session.id)
        assert await asyncio.wait_for(anext(stream), 10) is None
        await log.append(session.id, EventType.CARD, {})
        assert [event.seq for event in await take(stream, 1)] == [1]

    play(tmp_path, act, heartbeat=0.05)


def test_a_slow_follower_misses_nothing(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        stream = log.follow(session.id)
        await log.append(session.id, EventType.CARD, {"n": 0})
        await take(stream, 1)
        for number in range(1, 2_500):  # more than a follower is kept in memory
            log.delta(session.id, EventType.TOOL_PROGRESS, {"n": number})
        await log.append(session.id, EventType.COMPLETED, {})
        got = await take(stream, 2_500)
        assert [event.seq for event in got] == list(range(2, 2_502))

    play(tmp_path, act)


def test_another_process_is_followed_too(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        stream = log.follow(session.id)
        with Store.open(Home(tmp_path)) as other:
            writer = SessionStore(other)
            await writer.append(session.id, EventType.CARD, {"from": "elsewhere"})
            await writer.close()
        assert (await take(stream, 1))[0].data == {"from": "elsewhere"}

    play(tmp_path, act, heartbeat=0.05)


STEPS = st.lists(st.sampled_from(["delta", "other", "append", "follow", "read", "yield"]), min_size=1, max_size=40)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_whatever_the_order_every_follower_gets_every_event_once(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, Path("/"), settings={})
        streams: list[tuple[int, AsyncIterator[SessionEvent | None], list[SessionEvent]]] = []
        sent = ""
        for number, step in enumerate(steps):
            if step == "delta":
                log.delta(session.id, EventType.TEXT_DELTA, {"text": f"<{number}>"})
                sent += f"<{number}>"
            elif step == "other":
                log.delta(session.id, EventType.TOOL_PROGRESS, {"n": number})
            elif step == "append":
                await log.append(session.id, EventType.CARD, {"n": number})
            elif step == "follow":
                after = len(await log.events(session.id)) // 2
                streams.append((after, log.follow(session.id, after=after), []))
            elif step == "yield":
                await asyncio.sleep(0.001)
            elif streams:
                _, stream, got = streams[-1]
                stored = await log.events(session.id)
                if stored and stored[-1].seq > (got[-1].seq if got else streams[-1][0]):
                    got += await take(stream, 1)
        last = await log.append(session.id, EventType.COMPLETED, {})
        stored = list(await log.events(session.id))
        assert [event.seq for event in stored] == list(range(1, last.seq + 1))
        assert "".join(event.data["text"] for event in stored if event.type is EventType.TEXT_DELTA) == sent
        for after, stream, got in streams:
            got += await take(stream, last.seq - after - len(got))
            assert got == stored[after:]

    play(tmp_path_factory.mktemp("h"), act)


def test_two_processes_that_write_one_session_leave_no_gap(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        with Store.open(Home(tmp_path)) as other:
            second = SessionStore(other)
            both = [writer.append(session.id, EventType.CARD, {"n": n}) for n in range(30) for writer in (log, second)]
            await asyncio.gather(*both)
            await second.close()
        assert [event.seq for event in await log.events(session.id)] == list(range(1, 61))

    play(tmp_path, act)


# After a crash


CHILD = """
import asyncio, sys
from pathlib import Path
from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.values import EventType
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

async def main():
    store = Store.open(Home(Path(sys.argv[1])))
    log = SessionStore(store)
    session = await log.create("user:ana", Path("/"), settings={})
    await log.add_message(session.id, "assistant", [], parent=None, turn_id="n_1", status="streaming")
    await log.add_message(session.id, "assistant", [], parent=None, turn_id="n_2", status="waiting")
    print(session.id, flush=True)
    async def show():
        async for event in log.follow(session.id):
            if event is not None:
                print(event.seq, flush=True)
    task = asyncio.ensure_future(show())
    number = 0
    while True:
        number += 1
        log.delta(session.id, EventType.TOOL_PROGRESS, {"n": number})
        if number % 50 == 0:
            await log.append(session.id, EventType.CARD, {"n": number})
        await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", [0.2, 0.5, 0.9])
def test_what_was_seen_before_a_kill_is_there_after_it(tmp_path: Path, moment: float) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    session_id = child.stdout.readline().strip()
    child.stdout.readline()
    time.sleep(moment)
    child.kill()
    seen = [int(line) for line in child.stdout.read().split()]
    child.wait()

    async def act(log: SessionStore) -> None:
        stored = [event.seq for event in await log.events(session_id)]
        assert stored == list(range(1, len(stored) + 1))
        assert not seen or stored[-1] >= max(seen)
        assert (await log.append(session_id, EventType.CARD, {})).seq == len(stored) + 1
        assert {message.status for message in await log.abandoned()} == {"streaming", "waiting"}
        running = await log.running(session_id)
        assert [message.status for message in running] == ["waiting"]  # nobody streams, somebody may still decide

    play(tmp_path, act)


def test_a_message_has_one_process_that_writes_it(tmp_path: Path) -> None:
    async def act(log: SessionStore) -> None:
        session = await log.create(ANA, tmp_path, settings={})
        message = await log.add_message(session.id, "assistant", [], parent=None, turn_id="n_1", status="streaming")
        assert await log.take_over(message.id)  # it is ours already
        program = (
            "import asyncio, sys\nfrom pathlib import Path\n"
            "from learngraph_kernel.agent.sessions import SessionStore\n"
            "from learngraph_kernel.store.database import Store\nfrom learngraph_kernel.store.home import Home\n"
            "log = SessionStore(Store.open(Home(Path(sys.argv[1]))))\n"
            "print(asyncio.run(log.take_over(sys.argv[2])))"
        )
        words = [sys.executable, "-c", program, str(tmp_path), message.id]
        done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"

    play(tmp_path, act)
