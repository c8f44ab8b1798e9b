"""Starting, reaching and ending the kernel of a run.

The kernel talks ZMQ over `ipc` sockets in a folder only its owner may enter: faster than TCP, and nobody else on the
host can connect. Starting is split in two, because a kernel boots while its parent is still importing what it needs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager

from learngraph_kernel.errors import BadInput, Unavailable

READY_SECONDS = 60.0
POLL_SECONDS = 0.005


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
    """

    def __init__(self, name: str, *, cwd: Path) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="lg-"))
        self._cwd = cwd
        self._environment: dict[str, str] = {}
        self.manager: Any = AsyncKernelManager(
            kernel_name=name,
            transport="ipc",
            ip=str(self.folder / "k"),
            connection_file=str(self.folder / "kernel.json"),
        )
        self.client: Any = None

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
            await self.manager.start_kernel(
                cwd=str(self._cwd),
                env={**os.environ, **self._environment},
                extra_arguments=["--HistoryManager.hist_file=:memory:"] if self._is_ipython() else [],
            )
        except NoSuchKernel as error:
            installed = ", ".join(sorted(KernelSpecManager().find_kernel_specs())) or "none"
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
        try:
            await self.client.wait_for_ready(timeout=READY_SECONDS)
        except RuntimeError as error:
            raise self._not_started(str(error)) from error

    async def _still_starting(self, deadline: float) -> None:
        if not await self.manager.is_alive():
            raise self._not_started("it exited")
        if time.monotonic() > deadline:
            raise self._not_started(f"no answer in {READY_SECONDS:.0f} s")

    def _not_started(self, reason: str) -> Unavailable:
        return Unavailable(
            f"the kernel {self.name!r} did not start: {reason}", remedy="run `learngraph doctor --deep` to try it alone"
        )

    async def stop(self) -> None:
        """Kills the kernel with all its descendants in its process group, and removes the sockets."""
        provisioner = self.manager.provisioner
        group = None if provisioner is None else provisioner.pgid
        if self.client is not None:
            self.client.stop_channels()
        if self.manager.has_kernel:
            await self.manager.shutdown_kernel(now=True)
        if group is not None and group != os.getpgrp():
            _kill_group(group)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def __aenter__(self) -> KernelProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


def _kill_group(group: int) -> None:
    """A kernel that forked leaves children in its group; they must not outlive the run."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
