"""The kernel of a run, wherever it runs: the port that the engine works through, and how a kernel is reached.

Starting is split in two, because a kernel boots while its parent is still importing what it needs.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from pathlib import Path
from queue import Empty
from types import TracebackType
from typing import Any, Self

from learngraph_kernel.broker.box import Isolation
from learngraph_kernel.errors import Unavailable

READY_SECONDS = 60.0
POLL_SECONDS = 0.005
LOOK_SECONDS = 0.1
"""How often a kernel that is starting is asked whether it still lives."""
ANSWER_SECONDS = 1.0
"""How long one question whether the kernel is there may go unanswered before it is asked again."""


class RunKernel(ABC):
    """What a run needs of its kernel, on the host or in the box; an async context manager that leaves nothing behind.

    Attributes:
        name: of the kernel, for messages.
        manager, client: as nbclient wants them; the client is there after `connect`.
        info: content of the kernel's `kernel_info_reply`, after `connect`.
        isolation: where it runs; known after `start`.
        broker: where the broker's socket belongs, after `start`.
        broker_private: whether the socket is for this user's processes alone.
    """

    name: str
    manager: Any
    client: Any
    info: dict[str, Any]
    isolation: Isolation
    broker: Path
    broker_private: bool
    _look_again = 0.0

    @abstractmethod
    async def start(self, ticket: str) -> None:
        """Starts it and returns at once; `connect` waits for it. Raises NoKernel, Unavailable."""

    async def connect(self) -> None:
        """Waits until the kernel answers. Raises Unavailable when it dies or takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        sockets = [Path(f"{self.manager.ip}-{port}") for port in self.manager.ports]
        while not all(path.exists() for path in sockets):
            await self._still_starting(deadline)
            await asyncio.sleep(POLL_SECONDS)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.allow_stdin = False  # starting the channels switches it on
        while not await self._answers():
            await self._still_starting(deadline)

    async def _answers(self) -> bool:
        """Asks once; True when both the answer and the end of its work have arrived, so that no output can be missed.

        jupyter_client's `wait_for_ready` listens for 0.2 s of silence instead, which every run would pay.
        """
        request = self.client.kernel_info()
        reply = await _message(self.client.shell_channel, request, "kernel_info_reply")
        if reply is None or await _message(self.client.iopub_channel, request, "status", "idle") is None:
            return False
        self.info = reply["content"]
        return True

    async def _still_starting(self, deadline: float) -> None:
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + LOOK_SECONDS
            if not await self.manager.is_alive():
                raise self._not_started(await self.why_dead() or "it exited")
        if now > deadline:
            raise self._not_started(f"no answer in {READY_SECONDS:.0f} s")

    def _not_started(self, reason: str) -> Unavailable:
        return Unavailable(
            f"the kernel {self.name!r} did not start: {reason}", remedy="run `learngraph doctor --deep` to try it alone"
        )

    @abstractmethod
    def dismiss(self) -> None:
        """Nothing more will be asked of it; does not wait."""

    @abstractmethod
    async def stop(self) -> None:
        """Ends it, with all its processes and folders."""

    @abstractmethod
    def grant(self, path: Path) -> Path:
        """Lets the kernel read a file of the runtime's; returns the path it has for the kernel."""

    @abstractmethod
    async def why_dead(self) -> str | None:
        """The reason it ended, where one is known."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def _message(channel: Any, request: str, kind: str, state: str | None = None) -> dict[str, Any] | None:
    """The message of that kind (and execution state) that answers a request; None when it does not come in time."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            message: dict[str, Any] = await channel.get_msg(timeout=left)
        except Empty:
            return None
        answers = message["parent_header"].get("msg_id") == request and message["msg_type"] == kind
        if answers and (state is None or message["content"].get("execution_state") == state):
            return message
    return None
