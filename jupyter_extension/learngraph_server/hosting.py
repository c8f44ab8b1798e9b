"""The runtime of a server process: opened in the background by the first call that needs it, closed with the server."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from learngraph_kernel.agent.runtime import Runtime


class RuntimeHost:
    """Opens one runtime and hands it out.

    Args:
        factory: `module:function`, async, of the home and the root folder.
        home: None for the environment's.
        root: the server's root folder; workspaces lie below it.
    """

    def __init__(self, factory: str, home: Path | None, root: Path, *, heartbeat: float) -> None:
        self._factory, self._home, self.root, self._heartbeat = factory, home, root, heartbeat
        self._opening: asyncio.Task[Runtime] | None = None

    async def runtime(self) -> Runtime:
        """The runtime. Raises Unavailable with the reason when it cannot be opened; the next call tries again."""
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Runtime:
        from learngraph_kernel.errors import LearnGraphError, Unavailable

        module, _, name = self._factory.partition(":")
        try:
            factory = getattr(await asyncio.to_thread(importlib.import_module, module), name)
            options: dict[str, Any] = {}
            if "heartbeat" in inspect.signature(factory).parameters:
                options["heartbeat"] = self._heartbeat
            runtime: Runtime = await factory(self._home or _default_home(), self.root, **options)
        except LearnGraphError:
            raise
        except ModuleNotFoundError as error:
            raise Unavailable(
                f"the agent needs the package {error.name!r}", remedy="pip install 'learngraph[agent,server]'"
            ) from error
        return runtime

    async def close(self) -> None:
        """Closes it, if it was ever opened."""
        if self._opening is not None and self._opening.done() and self._opening.exception() is None:
            await self._opening.result().close()


def _default_home() -> Path:
    from learngraph_kernel.store.home import Home

    return Home.default().root
