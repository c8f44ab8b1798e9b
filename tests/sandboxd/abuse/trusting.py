"""A sandboxd that believes everybody: the control of the probes against the API. Never anything but a test's.

Run like `learngraph sandboxd`; every check that the probes are about is taken out before it serves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from learngraph_kernel.sandbox.answers import NotFound
from learngraph_kernel.sandboxd import auth, commands, kernel_requests, kernels, sandboxes, tickets
from learngraph_kernel.sandboxd.auth import EFFECTS, Caller

OWNER = "uid:0"


def believe() -> None:
    """Takes the checks out."""

    def caller(self: Any, peer: Any, authorization: str | None, now: float) -> Caller:
        return Caller(OWNER, peer, frozenset(EFFECTS))

    async def check(self: Any, *arguments: Any) -> None:
        return None

    def anybody(table: Any) -> Any:
        def require(self: Any, identity: str, owner: str) -> Any:
            row = self._core.records.get(table, identity)
            if row is None:
                raise NotFound("gone", code="gone")
            return row

        return require

    async def owned(self: Any, caller: Caller, identity: str) -> Any:
        return await self._core.workers.record(self._core.records.get, commands.execs, identity)

    auth.Authenticator.caller = caller  # type: ignore[method-assign]
    tickets.Tickets.check = check  # type: ignore[method-assign]
    tickets.check_request = lambda scope, effects, ttl, caller: (scope, frozenset(effects), float(ttl))  # type: ignore[assignment]
    sandboxes.Sandboxes._require = anybody(sandboxes.boxes)  # type: ignore[method-assign]
    kernels.Kernels._require = anybody(kernels.kernels)  # type: ignore[method-assign]
    commands.Commands.owned = owned  # type: ignore[method-assign]
    kernel_requests.KERNEL_ENVIRONMENT = frozenset({"LD_PRELOAD", "PYTHONSTARTUP", "LEARNGRAPH_BROKER", "PATH"})  # type: ignore[misc]
    kernel_requests.folders.check_callers_folder = lambda path, uid, roots: Path(str(path))  # type: ignore[attr-defined]


if __name__ == "__main__":
    from learngraph_kernel.cli.main import main

    believe()
    main()
