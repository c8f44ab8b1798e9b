"""The kernel of a run as a process on the host: starting and ending it.

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
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.paths import jupyter_path

from learngraph_kernel.broker.box import HOST
from learngraph_kernel.broker.folders import make_folder
from learngraph_kernel.broker.protocol import BROKER_VARIABLE, TICKET_VARIABLE
from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.runs.run_kernel import POLL_SECONDS, RunKernel

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


class KernelProcess(RunKernel):
    """A process of this machine's, from an installed kernelspec.

    Args:
        name: kernelspec name.
        cwd: folder the kernel runs in.

    Attributes:
        folder: private folder (0700) with the kernel's sockets and the broker's.
    """

    isolation = HOST
    broker_private = True

    def __init__(self, name: str, *, cwd: Path) -> None:
        self.name = name
        self.folder = make_folder()
        self.broker = self.folder / "broker"
        self._cwd = cwd
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

    async def start(self, ticket: str) -> None:
        environment = {
            BROKER_VARIABLE: str(self.broker),
            TICKET_VARIABLE: ticket,
            # Sets and dicts of strings come out in the same order in every run.
            "PYTHONHASHSEED": "0",
        }
        try:
            self.manager.kernel_spec.argv = _without_debugger(self.manager.kernel_spec.argv)
            await self.manager.start_kernel(
                cwd=str(self._cwd),
                env={**os.environ, **environment},
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

    def grant(self, path: Path) -> Path:
        """The kernel is the same user's: it reads the file itself."""
        return path

    async def why_dead(self) -> str | None:
        return None


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


def _kill_group(group: int) -> None:
    """A kernel that forked leaves children in its group; they must not outlive the run."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
