"""A kernel in the closed box, for whatever speaks jupyter_client: JupyterLab, nbclient, papermill, a script.

jupyter_client asks a provisioner to start, signal and end "the process" and to say where its sockets are. Here the
process is a container that sandboxd starts (warm, when one waits), and the sockets are in the folder that it names:
`ipc`, because the container has no network. What the client's own connection file said is replaced by that. A restart
keeps folder and sockets, so that clients that are connected stay connected.

A kernel that belongs to no run gets a runtime of its own beside it (`companion`), so that `lg` works in it as in any
notebook.
"""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Bool, Float, Unicode

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.sandbox.answers import Conflict, NotFound, NotReady
from learngraph_kernel.sandbox.client import Kernel, SandboxClient
from learngraph_kernel.sandbox.companion import Companion
from learngraph_kernel.sandbox.on_demand import running_client
from learngraph_kernel.sandbox.transport import SandboxUnavailable, unavailable

NAME = "learngraph-sandbox"
"""Of the provisioner and of the kernelspec."""

CHANNELS = 5
"""Shell, iopub, stdin, control and heartbeat; sandboxd numbers their sockets from 1."""
READY_SECONDS = 60.0
SOCKET_POLL = 0.005
EXIT_POLL = 0.05
LOST_SECONDS = 60.0
"""How long sandboxd may be silent before its kernel counts as dead; a kernel outlives a restart of sandboxd."""
UNKNOWN_EXIT = 1
T = TypeVar("T")


def kernelspec() -> dict[str, Any]:
    """The content of kernel.json, as it is installed under share/jupyter/kernels."""
    text = resources.files("learngraph_kernel.sandbox").joinpath("kernelspec/kernel.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


class SandboxProvisioner(KernelProvisionerBase):
    """One kernel container of sandboxd's.

    Traits (in a kernelspec: `metadata.kernel_provisioner.config`):
        run: the run it belongs to; empty: none, a companion answers `lg`.
        image: only this image id; empty: the present one.
        patient: `start_kernel` returns once the kernel's sockets are there.
    """

    run = Unicode("", help="The run the kernel belongs to; empty for none.")
    image = Unicode("", help="Image id to insist on (sha256:…); empty for the present one.")
    patient = Bool(True, help="Wait at the start until the kernel's sockets exist.")
    ready_seconds = Float(READY_SECONDS, help="How long the sockets may take.").tag(config=True)

    kernel: Kernel | None = None

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._client: SandboxClient | None = None
        self._companion: Companion | None = None
        self._alive = False
        self._exit_code: int | None = None
        self._silent_since: float | None = None
        # One thread: sandboxd's connection belongs to a thread, and calls of one kernel have an order.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="sandbox-kernel")

    # Start

    @property
    def has_process(self) -> bool:
        return self._alive

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Nothing of the host's environment goes in, and the command is the image's own."""
        return {"cmd": list(self.kernel_spec.argv), "cwd": kwargs.get("cwd")}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Starts the container, or a fresh one in the same folders.

        Raises:
            Unavailable: sandboxd, Docker or the image is missing; OverCapacity: a guard rail.
        """
        try:
            if self.kernel is None:
                self.kernel = await self._call(self._start)
            else:
                again = self.kernel
                self.kernel = await self._call(lambda: self._require().restart_kernel(again))
        except LearnGraphError as error:
            raise unavailable(error) if isinstance(error, NotReady) else error from None
        self._alive, self._exit_code, self._silent_since = True, None, None
        if not self.run:
            cwd = Path(kwargs.get("cwd") or Path.cwd())
            self._companion = await self._call(functools.partial(Companion.beside, self.kernel, cwd))
        if not self.connection_info:
            # Before any cell ran: later the file is whatever the notebook made of it.
            self.connection_info = await self._call(functools.partial(_connection_info, self.kernel.connection_file))
        if self.patient:
            await self._until_listening()
        return self.connection_info

    def _start(self) -> Kernel:
        self._client = running_client()
        run = self.run or f"kernel:{self.kernel_id}"
        return self._client.start_kernel(run, image=self.image or None)

    async def _until_listening(self) -> None:
        """A client that connects before the sockets exist takes the kernel for dead."""
        assert self.kernel is not None
        deadline = time.monotonic() + self.ready_seconds
        sockets = [self.kernel.folder / f"k-{number}" for number in range(1, CHANNELS + 1)]
        asked = time.monotonic()
        while not all(path.exists() for path in sockets):
            now = time.monotonic()
            if now - asked > 0.5:
                asked = now
                if await self.poll() is not None:
                    raise Unavailable(
                        "the kernel ended before it listened", remedy=f"its log: {await self._last_words()}"
                    )
            if now > deadline:
                raise Unavailable("the kernel does not listen", remedy="look into `learngraph sandbox ls` and the log")
            await asyncio.sleep(SOCKET_POLL)

    async def _last_words(self) -> str:
        assert self.kernel is not None
        log = await self._call(functools.partial(self._require().kernel_logs, self.kernel))
        return log.strip().rpartition("\n")[2] or "(empty)"

    # While it runs

    async def poll(self) -> int | None:
        """None while it runs, else its exit code. A sandboxd that is restarted says nothing for a while."""
        if not self._alive or self.kernel is None:
            return self._exit_code if self._exit_code is not None else UNKNOWN_EXIT
        try:
            self.kernel = await self._call(functools.partial(self._require().kernel, self.kernel))
        except NotFound:
            return self._ended(UNKNOWN_EXIT)
        except (SandboxUnavailable, NotReady) as error:
            return await self._poll_silent(error)
        self._silent_since = None
        if self.kernel.state == "running":
            return None
        return self._ended(UNKNOWN_EXIT if self.kernel.exit_code is None else self.kernel.exit_code)

    async def _poll_silent(self, error: LearnGraphError) -> int | None:
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            self.log.warning("sandboxd does not say how the kernel is: %s", error)
        if now - self._silent_since < LOST_SECONDS:
            return None
        return self._ended(UNKNOWN_EXIT)

    def _ended(self, code: int) -> int:
        self._exit_code = code
        return code

    async def wait(self) -> int | None:
        """Until it has ended; its exit code."""
        while True:
            code = await self.poll()
            if code is not None:
                self._alive = False
                return code
            await asyncio.sleep(EXIT_POLL)

    async def send_signal(self, signum: int) -> None:
        """Signals that a kernel of ours takes; 0 asks whether it is there (kill(2))."""
        if signum == 0 or self.kernel is None or not self._alive:
            return
        if signum == signal.SIGINT:
            await self._tell(self._require().interrupt_kernel, self.kernel)
        else:
            await self._tell(self._require().signal_kernel, self.kernel, signal.Signals(signum).name)

    async def kill(self, restart: bool = False) -> None:
        """SIGKILL."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """SIGTERM."""
        await self.send_signal(signal.SIGTERM)

    async def cleanup(self, restart: bool = False) -> None:
        """Ends the companion and, unless a restart follows, destroys container and folders."""
        companion, self._companion = self._companion, None
        if companion is not None:
            await self._call(companion.close)
        if restart or self.kernel is None:
            return
        self._alive = False
        await self._tell(self._require().stop_kernel, self.kernel)
        self.kernel = None
        self._worker.shutdown(wait=False)

    async def reason(self) -> str | None:
        """Why it ended, in sandboxd's words; None while it runs or when nothing is known."""
        return None if await self.poll() is None or self.kernel is None else self.kernel.reason

    # Provisioner's odds and ends

    async def get_provisioner_info(self) -> dict[str, Any]:
        """What another process needs to find the kernel again."""
        base: dict[str, Any] = await super().get_provisioner_info()
        return {**base, "kernel": None if self.kernel is None else self.kernel.id, "run": self.run}

    def resolve_path(self, path: str) -> str | None:
        """Files in the box are not files of the host's."""
        return None

    def _require(self) -> SandboxClient:
        assert self._client is not None, "launch_kernel comes first"
        return self._client

    async def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        """For what is pointless once the kernel has gone."""
        try:
            await self._call(functools.partial(call, *arguments))
        except (NotFound, Conflict):
            return
        except (SandboxUnavailable, NotReady) as error:
            # It ends by itself: sandboxd destroys kernels whose client is gone.
            self.log.warning("sandboxd was not told: %s", error)

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)


def _connection_info(path: Path) -> KernelConnectionInfo:
    info: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    # jupyter_client's type says text, and its code compares bytes.
    return cast(KernelConnectionInfo, {**info, "key": info["key"].encode()})
