"""The resident runner and the daemon's end of its stream, without a container: a real process on a socket pair."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.inside import runner
from learngraph_kernel.sandboxd.frames import BrokenStream, FrameReader, encode_frame
from learngraph_kernel.sandboxd.runner_link import CommandEnd, CommandNotStarted, LinkLost, RunnerLink

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def started(engine: socket.socket) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-B", runner.__file__]
    return subprocess.Popen(command, stdin=engine, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def owner_of_descriptors(pid: int) -> int:
    return Path(f"/proc/{pid}/fd").stat().st_uid


def multiplexed(data: bytes, stream: int = 1) -> bytes:
    return struct.pack(">BxxxI", stream, len(data)) + data


@asynccontextmanager
async def linked(tmp_path: Path) -> AsyncIterator[tuple[RunnerLink, subprocess.Popen[bytes], list[str]]]:
    """A runner as a plain process; what it writes is wrapped as Docker wraps an attached stream."""
    ours, engine = socket.socketpair()
    process = started(engine)

    def wrap() -> None:
        assert process.stdout is not None
        while chunk := process.stdout.read1(65536):
            engine.sendall(multiplexed(chunk))
        engine.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=wrap, daemon=True)
    thread.start()
    ours.setblocking(False)
    lost: list[str] = []
    link = RunnerLink(ours, lost.append)
    try:
        await link.hello(20, sweep=False)
        yield link, process, lost
    finally:
        process.kill()
        process.wait()
        await asyncio.to_thread(thread.join)
        await link.close()
        engine.close()


async def run(link: RunnerLink, *argv: str, cwd: Path, cap: int = 1 << 20) -> tuple[CommandEnd, dict[str, bytes]]:
    seen = {"stdout": b"", "stderr": b""}

    def sink(stream: str, piece: bytes) -> None:
        seen[stream] += piece

    end = await link.run("x_1", argv, environment=ENVIRONMENT, cwd=str(cwd), cap=cap, sink=sink)
    return end, seen


def test_output_of_both_streams_and_the_exit_code_come_back(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, _, _):
            end, seen = await run(link, "sh", "-c", "echo out; echo err >&2; exit 3", cwd=tmp_path)
            assert end == CommandEnd(3, truncated=False, dirty=False)
            assert seen == {"stdout": b"out\n", "stderr": b"err\n"}

    asyncio.run(case())


def test_output_beyond_the_cap_is_thrown_away_and_said_to_be(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, _, _):
            end, seen = await run(link, "sh", "-c", "head -c 300000 /dev/zero", cwd=tmp_path, cap=1000)
            assert end.truncated and end.exit_code == 0
            assert len(seen["stdout"]) == 1000

    asyncio.run(case())


def test_what_a_command_left_in_its_group_ends_with_it(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, _, _):
            end, seen = await run(link, "sh", "-c", "sleep 60 & echo $!", cwd=tmp_path)
            assert end.exit_code == 0
            pid = int(seen["stdout"])
            for _ in range(200):
                if ended(pid):
                    return
                await asyncio.sleep(0.01)
            raise AssertionError("the background process still runs")

    asyncio.run(case())


def test_cancel_kills_and_the_next_command_runs(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, _, _):
            running = asyncio.create_task(run(link, "sleep", "60", cwd=tmp_path))
            await asyncio.sleep(0.2)
            await link.cancel("x_1")
            end, _ = await asyncio.wait_for(running, 10)
            assert end.exit_code == 128 + 9
            assert (await run(link, "true", cwd=tmp_path))[0].exit_code == 0

    asyncio.run(case())


def test_a_program_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, _, _):
            with pytest.raises(CommandNotStarted):
                await run(link, "no-such-program", cwd=tmp_path)
            assert (await run(link, "true", cwd=tmp_path))[0].exit_code == 0

    asyncio.run(case())


def test_a_dead_runner_fails_the_command_and_tells_the_owner(tmp_path: Path) -> None:
    async def case() -> None:
        async with linked(tmp_path) as (link, process, lost):
            running = asyncio.create_task(run(link, "sleep", "60", cwd=tmp_path))
            await asyncio.sleep(0.2)
            process.kill()
            with pytest.raises(LinkLost):
                await asyncio.wait_for(running, 10)
            assert lost == ["the container's runner ended"]
            with pytest.raises(LinkLost):
                await run(link, "true", cwd=tmp_path)

    asyncio.run(case())


def test_the_runner_ends_when_its_input_ends(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-B", runner.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.communicate(b"", timeout=20)
    assert process.returncode == 0


def test_a_command_cannot_write_frames_through_the_runners_descriptors(tmp_path: Path) -> None:
    """The runner is not dumpable, so /proc/<runner>/fd belongs to root; as root we can only see that it is."""

    async def case() -> None:
        async with linked(tmp_path) as (link, process, _):
            assert (await run(link, "true", cwd=tmp_path))[0].exit_code == 0
            assert owner_of_descriptors(process.pid) == 0

    asyncio.run(case())


def frames(*chunks: bytes) -> list[dict[str, object]]:
    reader = FrameReader()
    return [frame for chunk in chunks for frame in reader.feed(chunk)]


def test_frames_are_found_however_the_bytes_are_cut() -> None:
    wanted = [{"kind": "a", "n": n} for n in range(3)]
    data = b"".join(multiplexed(encode_frame(frame)) for frame in wanted)
    for size in (1, 2, 7, 4096):
        assert frames(*(data[at : at + size] for at in range(0, len(data), size))) == wanted


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        multiplexed(struct.pack(">I", 1 << 30)),
        multiplexed(struct.pack(">I", 3) + b"abc"),
        multiplexed(struct.pack(">I", 2) + b"[]"),
        multiplexed(struct.pack(">I", 2) + b"{}"),
        struct.pack(">BxxxI", 1, 1 << 31),
        multiplexed(b"x", stream=9),
    ],
)
def test_a_stream_that_makes_no_sense_is_refused_before_it_is_kept(data: bytes) -> None:
    with pytest.raises(BrokenStream):
        frames(data)


def test_standard_error_of_the_runner_is_kept_short() -> None:
    reader = FrameReader()
    assert list(reader.feed(multiplexed(b"e" * 100_000, stream=2))) == []
    assert len(reader.stderr) == 4096
