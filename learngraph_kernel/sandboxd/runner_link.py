"""sandboxd's end of the stream to a container's resident runner.

One task reads, one command runs at a time. Whatever goes wrong on the stream (the runner died, the engine restarted, a
frame that makes no sense) ends the link: `lost` is set with the reason, the command that was running gets it as
`LinkLost`, and the owner of the link discards the container.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.inside.runner import PROTOCOL
from learngraph_kernel.sandboxd.frames import BrokenStream, FrameReader, encode_frame

_log = logging.getLogger(__name__)
_CHUNK = 256 * 1024


class LinkLost(LearnGraphError):
    """The runner, its container or the engine went away."""

    code = "container_lost"


class CommandNotStarted(LearnGraphError):
    """The runner could not start the program (no such file, not executable)."""

    code = "not_started"


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended.

    Attributes:
        exit_code: 128 + n when signal n ended it.
        truncated: output beyond the cap was thrown away.
        dirty: processes of it could not be ended; the container must go.
    """

    exit_code: int
    truncated: bool
    dirty: bool


Sink = Callable[[str, bytes], None]
"""Takes a stream's name (`stdout`, `stderr`) and a piece of output."""


class RunnerLink:
    """A connection to one runner.

    Args:
        stream: the attached, non-blocking socket; the link owns it.
        on_lost: called once, when the stream ends before `close`.
    """

    def __init__(self, stream: socket.socket, on_lost: Callable[[str], None]) -> None:
        self._socket = stream
        self._on_lost = on_lost
        self._reader = FrameReader()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[CommandEnd] | None = None
        self._running: str | None = None
        self._sink: Sink | None = None
        self._truncated = False
        self._sending = asyncio.Lock()
        self._closing = False
        self.lost: str | None = None
        self._task = asyncio.create_task(self._read(), name="runner link")

    @property
    def truncated(self) -> bool:
        """Whether output of the present or last command was thrown away."""
        return self._truncated

    async def hello(self, patience: float, *, sweep: bool = True) -> None:
        """Waits until the runner answers. Raises LinkLost."""
        await self._send({"kind": "hello", "protocol": PROTOCOL, "sweep": sweep})
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), patience)
        except TimeoutError as error:
            raise LinkLost(f"the runner did not answer within {patience:.0f} s") from error

    async def run(
        self, identity: str, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, cap: int, sink: Sink
    ) -> CommandEnd:
        """Runs one command to its end; cancelling this call leaves the command running (see `cancel`).

        Raises:
            LinkLost: the container is to be discarded.
            CommandNotStarted: there is no such program in the container.
        """
        if self._running is not None:
            raise RuntimeError("a runner runs one command at a time")
        self._running, self._sink, self._truncated = identity, sink, False
        self._end = asyncio.get_running_loop().create_future()
        try:
            await self._send(
                {
                    "kind": "start",
                    "id": identity,
                    "argv": list(argv),
                    "env": dict(environment),
                    "cwd": cwd,
                    "cap": cap,
                }
            )
            return await self._end
        finally:
            self._running = self._sink = None
            self._end = None

    async def cancel(self, identity: str) -> None:
        """Kills the command's process group; its `run` returns soon after."""
        if self._running == identity:
            await self._send({"kind": "cancel", "id": identity})

    async def close(self) -> None:
        """Ends the stream, and with it the runner; safe to call twice."""
        self._closing = True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._socket.close()
        self._fail("the container was stopped")

    async def _send(self, frame: dict[str, Any]) -> None:
        if self.lost is not None:
            raise LinkLost(self.lost)
        async with self._sending:
            try:
                await asyncio.get_running_loop().sock_sendall(self._socket, encode_frame(frame))
            except OSError as error:
                self._fail("the container's stream broke")
                raise LinkLost("the container's stream broke") from error

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while chunk := await loop.sock_recv(self._socket, _CHUNK):
                for frame in self._reader.feed(chunk):
                    self._handle(frame)
            reason = "the container's runner ended"
        except OSError:
            reason = "the container's stream broke"
        except (BrokenStream, KeyError, TypeError, ValueError) as error:
            _log.warning("runner: %s: %s", type(error).__name__, error)
            reason = "the container's stream made no sense"
        if self._reader.stderr:
            _log.info("runner's standard error: %s", self._reader.stderr.decode("utf-8", "replace"))
        self._fail(reason)

    def _handle(self, frame: dict[str, Any]) -> None:
        kind = frame["kind"]
        if kind == "ready":
            if frame["protocol"] != PROTOCOL:
                raise ValueError(f"the runner speaks protocol {frame['protocol']!r}")
            if not self._ready.done():
                self._ready.set_result(None)
        elif frame.get("id") != self._running or self._end is None or self._end.done():
            return  # the rest of a command nobody waits for
        elif kind == "output":
            self._output(str(frame["stream"]), frame["data"])
        elif kind == "truncated":
            self._truncated = True
        elif kind == "refused":
            self._end.set_exception(CommandNotStarted(str(frame["reason"])[:200]))
        elif kind == "exit":
            self._end.set_result(CommandEnd(int(frame["code"]), self._truncated, bool(frame["dirty"])))

    def _output(self, stream: str, data: str) -> None:
        if stream not in ("stdout", "stderr"):
            raise ValueError("output of an unknown stream")
        try:
            piece = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError("output that is not base64") from error
        if self._sink is not None:
            self._sink(stream, piece)

    def _fail(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        for waiting in (self._ready, self._end):
            if waiting is not None and not waiting.done():
                waiting.set_exception(LinkLost(reason))
                waiting.exception()  # it may be that nobody waits
        if not self._closing:
            self._on_lost(reason)
