"""Starting, reaching and ending the kernel of a run.

The kernel talks ZMQ over `ipc` sockets in a folder only its owner may enter: faster than TCP, and nobody else on the
host can connect. Starting is split in two, because a kernel boots while its parent is still importing what it needs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path
from queue import Empty
from types import TracebackType
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_path

from learngraph_kernel.broker.folders import make_folder
from learngraph_kernel.errors import BadInput, Unavailable

READY_SECONDS = 60.0
POLL_SECONDS = 0.005
ANSWER_SECONDS = 1.0
"""How long one question whether the kernel is there may go unanswered before it is asked again."""
LEAVE_SECONDS = 2.0
"""How long a dismissed kernel has to run its exit handlers and flush its files before it is killed."""

_LAUNCHER = ["-m", "ipykernel_launcher"]
_WITHOUT_DEBUGGER = """
import sys
if sys.path[0] == "":
    del sys.path[0]  # as ipykernel_launcher does: files beside the notebook must not shadow what the kernel imports
sys.modules["debugpy"] = None
try:
    import ipykernel.debugger
except ImportError:
    pass  # an ipykernel from before it had one
del sys.modules["debugpy"]
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""
"""What `ipykernel_launcher` does, with an ipykernel that finds no debugpy (cells may still import it).

Nobody attaches a debugger to the kernel of a run, and importing one is a third of what starting the kernel costs. A
None in `sys.modules` is Python's documented way to make an import fail; ipykernel treats debugpy as optional.
"""


class NoKernel(BadInput):
    """The notebook names a kernel that is not installed."""

    code = "no_kernel"


class KernelProcess:
    """One kernel for one run; an async context manager that leaves no process behind.

    Args:
        name: kernelspec name.
        cwd: folder the kernel runs in.

    Attributes:
        folder: private folder (0700) with the kernel's sockets; the broker's socket belongs there as well.
        manager, client: as nbclient wants them; the client is there after `connect`.
        info: content of the kernel's `kernel_info_reply`, after `connect`.
    """

    def __init__(self, name: str, *, cwd: Path) -> None:
        self.name = name
        self.folder = make_folder()
        self._cwd = cwd
        self._environment: dict[str, str] = {}
        self.manager: Any = AsyncKernelManager(
            kernel_name=name,
            transport="ipc",
            ip=str(self.folder / "k"),
            connection_file=str(self.folder / "kernel.json"),
            kernel_spec_manager=KernelSpecManager(kernel_dirs=_kernel_dirs()),
        )
        self.client: Any = None
        self.info: dict[str, Any] = {}
        self._leaves_by: float | None = None

    def add_environment(self, variables: dict[str, str]) -> None:
        """Adds variables to what the kernel inherits; only before `start`."""
        self._environment.update(variables)

    async def start(self) -> None:
        """Starts the process and returns at once; `connect` waits for it.

        Raises:
            NoKernel: no kernelspec by that name.
            Unavailable: its command cannot be run.
        """
        try:
            self.manager.kernel_spec.argv = _without_debugger(self.manager.kernel_spec.argv)
            await self.manager.start_kernel(
                cwd=str(self._cwd),
                env={**os.environ, **self._environment},
                extra_arguments=["--HistoryManager.hist_file=:memory:"] if self._is_ipython() else [],
            )
        except NoSuchKernel as error:
            installed = ", ".join(sorted(self.manager.kernel_spec_manager.find_kernel_specs())) or "none"
            raise NoKernel(
                f"there is no kernel named {self.name!r} (installed: {installed})",
                remedy="choose one with --kernel, or install it with `python -m ipykernel install --user`",
            ) from error
        except OSError as error:
            raise Unavailable(
                f"the kernel {self.name!r} cannot be started: {error}", remedy="run `learngraph doctor --deep`"
            ) from error

    def _is_ipython(self) -> bool:
        return bool(self.manager.ipykernel)

    async def connect(self) -> None:
        """Waits until the kernel answers. Raises Unavailable when it dies or takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        sockets = [Path(f"{self.folder / 'k'}-{port}") for port in self.manager.ports]
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
        if not await self.manager.is_alive():
            raise self._not_started("it exited")
        if time.monotonic() > deadline:
            raise self._not_started(f"no answer in {READY_SECONDS:.0f} s")

    def _not_started(self, reason: str) -> Unavailable:
        return Unavailable(
            f"the kernel {self.name!r} did not start: {reason}", remedy="run `learngraph doctor --deep` to try it alone"
        )

    def dismiss(self) -> None:
        """Asks the kernel to leave, without waiting: it runs its exit handlers and flushes what cells left open.

        The caller goes on with other work meanwhile; `stop` waits for what is left of the kernel's time.
        """
        self.client.shutdown()
        self._leaves_by = time.monotonic() + LEAVE_SECONDS

    async def stop(self) -> None:
        """Ends the kernel with all its descendants in its process group, and removes the sockets.

        A kernel that was not dismissed is killed at once.
        """
        provisioner = self.manager.provisioner
        group = None if provisioner is None else provisioner.pgid
        if self._leaves_by is not None:
            await self._gone(self._leaves_by)
        if self.client is not None:
            self.client.stop_channels()
        if group is not None and group != os.getpgrp():
            # Before jupyter_client does it, which looks only every 0.1 s whether the kernel has gone.
            _kill_group(group)
            await self._gone(time.monotonic() + LEAVE_SECONDS)
        if self.manager.has_kernel:
            await self.manager.shutdown_kernel(now=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _gone(self, deadline: float) -> None:
        while await self.manager.is_alive():
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def __aenter__(self) -> KernelProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _without_debugger(argv: list[str]) -> list[str]:
    """A kernelspec's command; if it is ipykernel's usual one, without the debugger."""
    for at in range(len(argv) - 1):
        if argv[at : at + 2] == _LAUNCHER:
            return [*argv[:at], "-c", _WITHOUT_DEBUGGER, *argv[at + 2 :]]
    return argv


def _kernel_dirs() -> list[str]:
    """Where kernelspecs lie: jupyter_client's own list, without importing IPython to learn the last one."""
    ipython = Path(os.environ.get("IPYTHONDIR") or "~/.ipython").expanduser()
    return [*jupyter_path("kernels"), str(ipython / "kernels")]


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


def _kill_group(group: int) -> None:
    """A kernel that forked leaves children in its group; they must not outlive the run."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
