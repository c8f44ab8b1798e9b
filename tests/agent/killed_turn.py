"""What is killed in test_kill.py and benchmarks/turn_kills.py: a runtime that answers, with an effect that is counted.

argv: home, workspace, session ("" for a new one). Prints the session's id, then `done STATUS` when its turn has ended.
Run again after a kill with the session's id it does what a person would: resume, and approve what is asked.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.agent.runtime import Runtime
from learngraph_kernel.agent.values import Decision, Question
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.builtin.schemas import closed, text
from learngraph_kernel.tools.errors import ApprovalError
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

ANA = "user:ana"


def counted(file: Path) -> Tool:
    """A tool whose effect is a line in a file, on disk at once."""

    async def send(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        await asyncio.sleep(0.02)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{arguments['what']}\n".encode())
        os.close(descriptor)
        await asyncio.sleep(0.02)
        return ToolResult("ok", {"sent": arguments["what"]})

    schema = closed({"what": text("what to send")}, required=["what"])
    effects = frozenset({Effect.OUTSIDE_WRITE})
    return Tool(ToolSpec("send", {"en": "Send"}, "Sends a letter.", schema, effects), send)


async def main(home: Path, workspace: Path, session_id: str) -> None:
    runtime = Runtime(Home(home), isolation="host")
    runtime.registry.add(counted(workspace / "sent"))
    await runtime.start()
    if not session_id:
        session_id = (await runtime.log.create(ANA, workspace, settings={})).id
        print(session_id, flush=True)
        await runtime.ask(session_id, ANA, Question("Send them all"))
    else:
        print(session_id, flush=True)
    for _ in range(200):
        await runtime.settled(session_id)
        branch = await runtime.log.branch(session_id)
        if not branch:
            await runtime.ask(session_id, ANA, Question("Send them all"))
            continue
        if branch[-1].role == "user":  # it was killed before the turn began
            await runtime.ask(session_id, ANA, Question("Send them all", parent=branch[-1].parent or ""))
            continue
        status = branch[-1].status
        if status == "interrupted":
            await runtime.resume(session_id, ANA)
        elif status == "waiting":
            for approval in await runtime.approvals(ANA):
                try:
                    await runtime.decide(ANA, Decision(approval["id"], "approve", approval["arguments_hash"]))
                except ApprovalError:
                    continue  # decided before the kill
        elif status != "streaming":
            print("done", status, flush=True)
            break
    await runtime.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
