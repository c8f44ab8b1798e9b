"""Time-outs, roll-back, capacity and recovery, in this process: a clock we turn, an engine that does as we say."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.answers import Conflict, NotReady, OverCapacity
from learngraph_kernel.sandboxd.auth import EFFECTS, Caller, Peer
from learngraph_kernel.sandboxd.daemon import AlreadyRunning, Daemon
from learngraph_kernel.sandboxd.engine_port import ContainerEvent, ContainerFacts, EngineFailed, unreachable
from learngraph_kernel.sandboxd.frames import FrameReader, encode_frame
from learngraph_kernel.sandboxd.records import Row
from learngraph_kernel.sandboxd.sandboxes import boxes
from learngraph_kernel.sandboxd.settings import GIB, Settings

ANA, BOB = (Caller(f"user:{name}", Peer(0, 0, 0), frozenset(EFFECTS)) for name in ("ana", "bob"))
IMAGE = "sha256:" + "0" * 64


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def multiplexed(data: bytes) -> bytes:
    return b"\x01\0\0\0" + len(data).to_bytes(4, "big") + data


class FakeRunner(threading.Thread):
    """The inside of a container: says `ready`, and to every command nothing at all."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(daemon=True)
        self.end = end

    def run(self) -> None:
        reader = FrameReader()
        with self.end:
            while data := self.end.recv(65536):
                for frame in reader.feed(multiplexed(data)):
                    if frame["kind"] == "hello":
                        self.end.sendall(multiplexed(encode_frame({"kind": "ready", "protocol": 1})))


class FakeEngine:
    """Containers in memory. `broken` is raised by create; `down` by everything."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.broken: Exception | None = None
        self.down = False
        self.seen_at_create: list[Any] = []
        self.on_create: Callable[[], Any] = lambda: None

    def _up(self) -> None:
        if self.down:
            raise unreachable()

    def version(self) -> dict[str, Any]:
        return {"Components": [], "Version": "0", "ApiVersion": "1"}

    def runtimes(self) -> frozenset[str]:
        return frozenset({"runc", "runsc"})

    def host(self) -> tuple[int, int]:
        return 64 * GIB, 8

    def image(self, reference: str) -> dict[str, Any] | None:
        self._up()
        return {"Id": reference}

    def image_with_label(self, label: str, value: str) -> str | None:
        return IMAGE

    def create(self, name: str, config: Any) -> str:
        self._up()
        self.seen_at_create.append(self.on_create())
        if self.broken is not None:
            raise self.broken
        self.there[name] = dict(config)
        return name

    def attach(self, container: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        FakeRunner(theirs).start()
        ours.setblocking(False)
        return ours

    def start(self, container: str) -> None:
        self._up()

    def signal(self, container: str, name: str) -> None:
        self._up()

    def remove(self, container: str) -> None:
        self._up()
        self.there.pop(container, None)

    def facts(self, container: str) -> ContainerFacts | None:
        return ContainerFacts(container, {}, True) if container in self.there else None

    def inspect(self, container: str) -> dict[str, Any]:
        return {"State": {"Pid": 0}}

    def containers(self, instance: str) -> list[ContainerFacts]:
        self._up()
        return [ContainerFacts(name, config["Labels"], True) for name, config in self.there.items()]

    def logs(self, container: str, lines: int) -> str:
        return ""

    def events(self, instance: str) -> FakeEvents:
        self._up()
        return FakeEvents()

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        return iter(())


class FakeEvents:
    def __init__(self) -> None:
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[ContainerEvent]:
        self._closed.wait(60)
        return iter(())

    def close(self) -> None:
        self._closed.set()


class World:
    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock, self.engine = Clock(), FakeEngine()
        changes = {"image": IMAGE, "warm_kernels": 0, "disk_kept": 0, "sweep_every": 1e6, "reconcile_every": 1e6}
        self.settings = Settings.under(folder, **{**changes, **settings})
        self.daemon = self.new()

    def new(self) -> Daemon:
        return Daemon(self.settings, self.engine, clock=self.clock)

    async def box(self, session: str = "s", caller: Caller = ANA) -> Row:
        return await self.daemon.sandboxes.create(caller, session, "sandbox-agent-v1", f"key-{caller.owner}-{session}")

    async def state(self, row: Row) -> str:
        found = self.daemon.core.records.get
        return str((await self.daemon.core.workers.record(found, boxes, row["id"]) or {})["state"])


def play(folder: Path, act: Callable[[World], Awaitable[None]], **settings: Any) -> World:
    """Runs an act on a fresh world, and closes it."""

    async def scene() -> World:
        world = World(folder, **settings)
        await world.daemon.start()
        try:
            await act(world)
        finally:
            await world.daemon.close()
        return world

    return asyncio.run(scene())


def test_idle_container_goes_cold_and_the_workspace_later(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        await world.daemon.core.workers.run(world.daemon.files.put, row, "work/a.txt", io.BytesIO(b"a"))
        await world.daemon.sandboxes.start(row)
        folder = world.settings.workspaces / row["folder"]
        for advance, state in ((179, "warm_idle"), (1, "cold"), (1_619, "cold"), (1, "expired")):
            world.clock.now += advance
            await world.daemon.sandboxes.sweep()
            assert await world.state(row) == state
            assert len(world.engine.there) == (1 if state == "warm_idle" else 0)
            assert folder.exists() == (state != "expired")
        assert [file["path"] for file in world.daemon.files.listing(row, None)] == ["work/a.txt"]

    play(tmp_path, act)


def test_activity_extends_idle_times_but_not_the_absolute_ones(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        await world.daemon.sandboxes.start(row)
        for _ in range(10):
            world.clock.now += 170
            await world.daemon.sandboxes.touch(row["id"])
            await world.daemon.sandboxes.sweep()
            assert await world.state(row) == "warm_idle"
        world.clock.now += 101
        await world.daemon.sandboxes.sweep()
        assert await world.state(row) == "cold"
        while world.clock.now < 1_000_000 + 86_400 - 1_000:
            world.clock.now += 1_000
            await world.daemon.sandboxes.touch(row["id"])
            await world.daemon.sandboxes.sweep()
            assert await world.state(row) == "cold"
        world.clock.now = 1_000_000 + 86_400
        await world.daemon.sandboxes.sweep()
        assert await world.state(row) == "expired"

    play(tmp_path, act)


def test_starting_is_committed_and_counted_before_the_engine_is_asked_and_rolled_back(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        database = f"file:{world.settings.database}?mode=ro"

        def state_on_disk() -> str:
            connection = sqlite3.connect(database, uri=True)
            try:
                return str(connection.execute("select state from sandboxes").fetchone()[0])
            finally:
                connection.close()

        world.engine.on_create = state_on_disk
        world.engine.broken = EngineFailed("/host/path is in the way")
        with pytest.raises(NotReady) as caught:
            await world.daemon.sandboxes.start(row)
        assert "/host/path" not in str(caught.value.as_json())
        assert world.engine.seen_at_create == ["starting"]
        assert await world.state(row) == "cold"
        assert world.daemon.core.load("user:ana").total == 0
        world.engine.broken = None
        await world.daemon.sandboxes.start(row)
        assert await world.state(row) == "warm_idle"

    assert play(tmp_path, act).engine.there == {}


def test_many_starts_at_once_never_pass_the_guard_rails(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        rows = [await world.box(f"s{n}", caller) for n in range(4) for caller in (ANA, BOB)]
        results = await asyncio.gather(*(world.daemon.sandboxes.start(row) for row in rows), return_exceptions=True)
        refused = [result for result in results if isinstance(result, OverCapacity)]
        assert len(world.engine.there) == 3 and len(refused) == 5
        assert {error.code for error in refused} <= {"user_containers", "total_containers"}

    play(tmp_path, act, active_total=3)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"memory_share": 1e-9}, "host_memory"),
        ({"disk_kept": 1 << 60}, "host_disk"),
        ({"active_total": 0}, "total_containers"),
    ],
)
def test_each_guard_rail_says_which_it_is(tmp_path: Path, settings: dict[str, Any], code: str) -> None:
    async def act(world: World) -> None:
        with pytest.raises(OverCapacity) as caught:
            await world.daemon.sandboxes.start(await world.box())
        assert caught.value.code == code and caught.value.remedy and caught.value.details["zh"]["remedy"]

    play(tmp_path, act, **settings)


def test_a_dead_engine_is_a_clear_state_and_files_still_work(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        await world.daemon.core.workers.run(world.daemon.files.put, row, "inputs/a", io.BytesIO(b"a"))
        world.engine.down = True
        with pytest.raises(NotReady) as caught:
            await world.daemon.sandboxes.start(row)
        assert caught.value.code == "engine_unreachable" and caught.value.details["zh"]
        assert await world.state(row) == "cold"
        assert world.daemon.files.listing(row, None)[0]["path"] == "inputs/a"
        assert (await world.daemon.images.status())["code"] == "engine_unreachable"
        assert not (await world.daemon.health.readiness())["ready"]
        world.engine.down = False
        await world.daemon.sandboxes.start(row)

    play(tmp_path, act)


def test_a_daemon_that_died_leaves_rows_that_the_next_one_puts_right(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        await world.daemon.sandboxes.start(row)
        begun = await world.daemon.commands.begin(
            ANA, row_with_script(world, row), {"argv": ["python", "work/a.py"]}, "key-12345"
        )
        await asyncio.sleep(0.2)
        # As `kill -9` leaves it: rows and container stay, nothing is closed but the lock.
        os.close(world.daemon._lock)
        second = world.new()
        await second.start()
        assert world.engine.there == {}
        known = await second.commands.show(begun["exec"], {"stdout": 0, "stderr": 0}, 0)
        assert known["state"] == "lost" and known["reason"]
        again = await second.commands.begin(ANA, row, {"argv": ["python", "work/a.py"]}, "key-12345")
        assert again == begun
        assert (await second.sandboxes.get(ANA, row["id"]))["state"] == "cold"
        assert [file["path"] for file in second.files.listing(row, None)] == ["work/a.py"]
        await second.close()
        world.daemon._lock = os.open("/dev/null", os.O_RDONLY)

    play(tmp_path, act)


def row_with_script(world: World, row: Row) -> Row:
    world.daemon.files.put(row, "work/a.py", io.BytesIO(b"pass"))
    return row


def test_two_daemons_never_share_a_state(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        with pytest.raises(AlreadyRunning):
            world.new()

    play(tmp_path, act)


def test_an_expired_session_may_be_created_again_but_not_under_another_policy(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        row = await world.box()
        await world.daemon.sandboxes.delete(row)
        with pytest.raises(Conflict):
            await world.daemon.sandboxes.start(row)
        with pytest.raises(Conflict):
            await world.daemon.sandboxes.create(ANA, "s", "sandbox-policy-v1", "another-key")
        again = await world.daemon.sandboxes.create(ANA, "s", "sandbox-agent-v1", "third-key")
        assert (again["id"], again["state"]) == (row["id"], "created")

    play(tmp_path, act)


def test_a_container_that_is_still_being_made_when_the_daemon_ends_is_not_left_behind(tmp_path: Path) -> None:
    asked, made = threading.Event(), threading.Event()

    def slowly() -> None:
        asked.set()
        assert made.wait(30)

    async def scene() -> World:
        world = World(tmp_path, warm_kernels=1)
        world.engine.on_create = slowly
        await world.daemon.start()  # its sweep begins a warm kernel
        await asyncio.to_thread(asked.wait, 30)
        asyncio.get_running_loop().call_later(0.3, made.set)  # the engine answers when its caller has gone
        await world.daemon.close()
        return world

    world = asyncio.run(scene())
    assert world.engine.seen_at_create and world.engine.there == {}
