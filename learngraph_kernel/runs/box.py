"""The kernel of a run in the closed box: a container of sandboxd's, reached as any kernel is.

jupyter_client's manager and our provisioner do what they do for JupyterLab. What a run adds: the broker's socket and
the ticket in the kernel's folder, artifacts granted one by one, and an end that waits for nothing, since whatever the
kernel would still flush is discarded with its container.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from learngraph_kernel.broker.box import Isolation, link_into
from learngraph_kernel.broker.folders import make_folder
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.runs.run_kernel import RunKernel
from learngraph_kernel.sandbox.answers import BadRequest, NotReady
from learngraph_kernel.sandbox.companion import write_ticket
from learngraph_kernel.sandbox.provisioner import NAME, SandboxProvisioner, kernelspec
from learngraph_kernel.sandbox.transport import unavailable


class BoxKernel(RunKernel):
    """A kernel container for one run.

    Args:
        run_id: the run; sandboxd's ticket is for it alone.
        image: the only image it may run in (a rerun); None: the present one.
    """

    name = NAME
    broker_private = False

    def __init__(self, run_id: str, *, image: str | None = None) -> None:
        self.isolation = Isolation("docker", image)
        self.client: Any = None
        self.info: dict[str, Any] = {}
        self._folder = make_folder()  # of jupyter_client's copy of the connection file
        self.manager: Any = AsyncKernelManager(
            kernel_name=NAME,
            connection_file=str(self._folder / "kernel.json"),
            kernel_spec_manager=_OurSpec(),
        )
        self._provisioner = SandboxProvisioner(
            parent=self.manager,
            kernel_id=run_id,
            kernel_spec=self.manager.kernel_spec,
            run=run_id,
            image=image or "",
            patient=False,
        )
        self.manager.provisioner = self._provisioner
        self._granted: Path | None = None
        self._leaving: asyncio.Task[None] | None = None

    async def start(self, ticket: str) -> None:
        """Takes a warm kernel, or starts one.

        Raises:
            Unavailable: sandboxd, Docker or the image is missing. Refusal: a guard rail (OverCapacity).
        """
        try:
            await self.manager.start_kernel()
        except (NotReady, BadRequest) as error:
            raise unavailable(error) from error
        kernel = self._provisioner.kernel
        assert kernel is not None
        write_ticket(kernel.ticket_file, ticket)
        self.broker, self._granted = kernel.broker_socket, kernel.granted
        self.isolation = Isolation("docker", kernel.image)

    def dismiss(self) -> None:
        """The container goes while the caller issues and seals the run."""
        if self._leaving is None:
            self._leaving = asyncio.ensure_future(self._leave())

    async def stop(self) -> None:
        self.dismiss()
        assert self._leaving is not None
        await self._leaving

    async def _leave(self) -> None:
        if self.client is not None:
            self.client.stop_channels()
        await self._provisioner.cleanup()
        await self.manager.cleanup_resources()
        shutil.rmtree(self._folder, ignore_errors=True)

    def grant(self, path: Path) -> Path:
        """Puts a file into the folder that the container sees read-only; a link where both are on one file system."""
        assert self._granted is not None, "grant comes after start"
        return link_into(self._granted, path)

    async def why_dead(self) -> str | None:
        try:
            return await self._provisioner.reason()
        except LearnGraphError:  # sandboxd is gone as well; that the kernel died is what counts
            return None


class _OurSpec(KernelSpecManager):
    """One kernelspec, from the package, whether or not it is installed where Jupyter looks."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(**kernelspec())
