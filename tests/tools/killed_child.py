"""What is killed in test_kill.py: makes calls until it is killed, each effect a line in a file.

argv: home, workspace, how. `before`: the handler waits before its effect; `after`: after it; `read`: a reading call
that waits; `many`: allowed calls c_0, c_1, … for ever, two at a time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.store.database import Home, Store
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.registry import Registry
from learngraph_kernel.tools.values import Allowed, CallContext, Effect, NeedsApproval, Tool, ToolResult, ToolScope
from tests.tools.world import context, spec

EFFECTS = {"before": {Effect.OUTSIDE_WRITE}, "after": {Effect.OUTSIDE_WRITE}, "read": {Effect.READ}}


def append(file: Path, line: str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def tool(file: Path, how: str, waits: bool) -> Tool:
    async def handler(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        if waits and how == "before":
            print("waiting", flush=True)
            await asyncio.Event().wait()
        append(file, arguments["what"])
        if waits and how != "many":
            print("waiting", flush=True)
            await asyncio.Event().wait()
        return ToolResult("ok", {"what": arguments["what"]})

    return Tool(spec("act", EFFECTS.get(how, {Effect.WRITE_WORKSPACE})), handler)


def scope_in(workspace: Path) -> ToolScope:
    return ToolScope("user:ana", "s_1", "n_1", "m_1", workspace)


def desk(home: Path, workspace: Path, how: str, *, waits: bool) -> tuple[Store, Desk]:
    store, registry = Store.open(Home(home)), Registry()
    registry.add(tool(workspace / "done", how, waits))
    return store, Desk(store, registry, isolated=True)


async def one(made: Desk, scope: ToolScope, call_id: str) -> ToolResult:
    verdict = await made.consider(scope, call_id, "act", {"what": call_id})
    if isinstance(verdict, NeedsApproval):
        approval = await made.approvals.find(verdict.approval_id)
        await made.approvals.decide("user:ana", approval.id, "approve", approval.exact.hash)
        verdict = await made.decided(scope, approval.id)
    assert isinstance(verdict, Allowed)
    return await made.execute(context(scope, verdict.ticket), verdict.arguments)


async def many(made: Desk, scope: ToolScope, worker: int) -> None:
    number = worker
    while True:
        result = await one(made, scope, f"c_{number}")
        assert result.status == "ok"
        append(scope.workspace / "told", f"c_{number}")
        number += 2


async def main() -> None:
    home, workspace, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    _, made = desk(home, workspace, how, waits=True)
    scope = scope_in(workspace)
    if how == "many":
        await asyncio.gather(many(made, scope, 0), many(made, scope, 1))
    await one(made, scope, "c_0")


if __name__ == "__main__":
    asyncio.run(main())
