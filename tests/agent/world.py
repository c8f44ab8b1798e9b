"""A workspace, a scripted model and a runtime in this process: what conversations are tested with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from learngraph_kernel.agent.runtime import Runtime
from learngraph_kernel.agent.values import ChatMessage, Decision, EventType, Question, Session, SessionEvent
from learngraph_kernel.store.home import Home

ANA = "user:ana"
HOST_ALLOWED = '\n[tools]\nrun-code-on-host = "always"\n'
"""For conversations that are not about approvals: on a machine without the box, code runs on the host."""

NOTEBOOK = (
    "import learngraph_kernel as lg\n"
    "total = lg.query('shop', 'select sum(amount) as amount, count(*) as n from orders')"
)


def say(text: str) -> dict[str, Any]:
    return {"text": text}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_call": {"name": name, "arguments": arguments}}


def cell(source: str, id: str = "q") -> dict[str, str]:
    return {"id": id, "type": "code", "source": source}


def write(path: str = "answers/a.ipynb", *sources: str) -> dict[str, Any]:
    cells = [cell(source, f"c{number}") for number, source in enumerate(sources or (NOTEBOOK,))]
    return call("write_notebook", path=path, title="Answer", cells=cells)


def run(path: str = "answers/a.ipynb") -> dict[str, Any]:
    return call("run_notebook", path=path)


def turns(*answers: Sequence[Mapping[str, Any]] | Mapping[str, Any], when: str | None = None) -> list[dict[str, Any]]:
    """Rules: the first answer, the second, … of a conversation; `when`: only when the last question contains it."""
    rules = []
    for number, steps in enumerate(answers, start=1):
        match: dict[str, Any] = {"turn": number} | ({"conversation": when} if when else {})
        rules.append({"match": match, "steps": list(steps) if isinstance(steps, Sequence) else [steps]})
    return rules


@dataclass
class World:
    """One conversation of ana's."""

    runtime: Runtime
    workspace: Path
    session: Session

    async def ask(self, text: str, **question: Any) -> ChatMessage:
        """Asks and waits until the turn ended or waits; the answer's message."""
        await self.runtime.ask(self.session.id, ANA, Question(text, **question))
        return await self.settled()

    async def settled(self) -> ChatMessage:
        await asyncio.wait_for(self.runtime.settled(self.session.id), 60)
        return (await self.runtime.log.branch(self.session.id))[-1]

    async def events(self, *types: EventType) -> list[SessionEvent]:
        events = await self.runtime.log.events(self.session.id)
        return [event for event in events if not types or event.type in types]

    async def results(self) -> dict[str, tuple[str, Any]]:
        """Tool → (status, data) of its last result."""
        found = await self.events(EventType.TOOL_RESULT)
        return {
            event.data["tool"]: (event.data["status"], event.data["data"]) for event in found if "tool" in event.data
        }

    async def end(self) -> Mapping[str, Any]:
        """The data of the last event that ended a turn."""
        ends = await self.events(EventType.COMPLETED, EventType.STOPPED, EventType.FAILED)
        return ends[-1].data

    async def pending(self) -> Mapping[str, Any]:
        (approval,) = await self.runtime.approvals(ANA)
        return approval

    async def decide(self, choice: Any, **more: Any) -> ChatMessage:
        approval = await self.pending()
        decision = Decision(approval["id"], choice, approval["arguments_hash"], **more)
        await self.runtime.decide(ANA, decision)
        return await self.settled()


def script(workspace: Path, rules: Sequence[Mapping[str, Any]], *, settings: str = HOST_ALLOWED, **top: Any) -> None:
    """Writes the model's script and declares it."""
    (workspace / "model.yaml").write_text(yaml.safe_dump({"rules": list(rules), **top}, allow_unicode=True))
    toml = workspace / "learngraph.toml"
    text = toml.read_text()
    if "[models.default]" not in text:
        toml.write_text(text + '\n[models.default]\nadapter = "scripted"\nscript = "model.yaml"\n' + settings)


def play(home: Path, workspace: Path, act: Callable[[World], Awaitable[None]], **options: Any) -> None:
    """An act with a fresh runtime and one conversation."""

    async def whole() -> None:
        runtime = Runtime(Home(home), **{"isolation": "host", **options})
        await runtime.start()
        try:
            session = await runtime.log.create(ANA, workspace, settings={})
            await act(World(runtime, workspace, session))
        finally:
            await runtime.close()

    asyncio.run(whole())
