"""The runtime of a server process: opened in the background by the first call that needs it, closed with the server."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Callable
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
        factory = await asyncio.to_thread(_load, self._factory)
        options: dict[str, Any] = {}
        if "heartbeat" in inspect.signature(factory).parameters:
            options["heartbeat"] = self._heartbeat
        runtime: Runtime = await factory(self._home or _default_home(), self.root, **options)
        return runtime

    async def note_refusal(self, owner: str, code: str, target: str) -> None:
        """Puts a refused call on record, if the runtime is open: before that there was nothing to reach for."""
        if self._opening is not None and self._opening.done() and self._opening.exception() is None:
            await asyncio.to_thread(self._opening.result().records.note_refusal, owner, code, target)

    async def close(self) -> None:
        """Closes it, if it was ever opened; one that is just opening is waited for."""
        if self._opening is None:
            return
        await asyncio.wait([self._opening])
        if not self._opening.cancelled() and self._opening.exception() is None:
            await self._opening.result().close()


def _load(factory: str) -> Callable[..., Awaitable[Runtime]]:
    """What `module:function` names. Raises Unavailable."""
    from learngraph_kernel.errors import Unavailable

    module, _, name = factory.partition(":")
    try:
        found: Callable[..., Awaitable[Runtime]] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"the agent needs the package {error.name!r}", remedy="pip install 'learngraph[agent,server]'"
        ) from error
    except (AttributeError, ValueError) as error:
        raise Unavailable(
            f"LearnGraphServer.runtime_factory names nothing: {factory!r}",
            remedy="set it to module:function, or leave it out",
        ) from error
    return found


def _default_home() -> Path:
    from learngraph_kernel.store.home import Home

    return Home.default().root
