"""`learngraph ask`: a question in natural language, answered by a notebook that ran in the closed box."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.cli.running import quick_imports

if TYPE_CHECKING:
    from learngraph_kernel.agent.runtime import Runtime
    from learngraph_kernel.agent.values import SessionEvent


@click.command("ask")
@click.argument("question")
@click.option("--session", default=None, help="Go on with this conversation (s_…); without it a new one begins.")
@click.option("--model", default=None, help="A model of learngraph.toml (default: default).")
@click.option("--attach", "files", type=click.Path(path_type=Path, exists=True, dir_okay=False), multiple=True)
@click.option("--max-steps", type=click.IntRange(min=1), default=None, help="Model calls at most.")
@workspace_option
@json_option
def command(
    question: str,
    session: str | None,
    model: str | None,
    files: tuple[Path, ...],
    max_steps: int | None,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Ask a question about the declared sources.

    The agent writes a notebook, runs it in the closed box and answers with what it recorded; every number of the answer
    opens. When a person has to decide, you are asked here; without a terminal such a call is refused.
    """
    import asyncio

    quick_imports()
    from learngraph_kernel.agent.runtime import Runtime
    from learngraph_kernel.data.workspace import find_workspace
    from learngraph_kernel.store.home import Home

    root = find_workspace(workspace).root
    settings: dict[str, Any] = {"limits": {"steps": max_steps}} if max_steps else {}
    if not sys.stdin.isatty():
        settings["unattended"] = True

    async def whole() -> int:
        runtime = Runtime(Home.default())
        await runtime.start()
        try:
            asking = _Asking(runtime, root, as_json)
            return await asking.ask(question, session, model, files, settings)
        finally:
            await runtime.close()

    return asyncio.run(whole())


class _Asking:
    """One question, shown as it is answered."""

    def __init__(self, runtime: Runtime, root: Path, as_json: bool) -> None:
        self._runtime, self._root, self._quiet = runtime, root, as_json

    async def ask(
        self, text: str, session_id: str | None, model: str | None, files: tuple[Path, ...], settings: dict[str, Any]
    ) -> int:
        from learngraph_kernel.actor import current_actor
        from learngraph_kernel.agent.values import Question

        owner, log = current_actor(), self._runtime.log
        if session_id is None:
            session = await log.create(owner, self._root, title=text[:80], settings={})
        else:
            session = await log.session(session_id, owner)
        after = (await log.events(session.id))[-1].seq if session_id else 0
        attachments = tuple(self._runtime.records.attach(owner, path.name, path.read_bytes()) for path in files)
        asked = await self._runtime.ask(session.id, owner, Question(text, attachments, model=model, settings=settings))
        end: SessionEvent | None = None
        async for event in log.follow(session.id, after=after):
            if event is not None and event.turn_id == asked.turn_id:
                await self._show(event, owner)
                if event.type.value in ("completed", "stopped", "failed"):
                    end = event
                    break
        await self._runtime.settled(session.id)
        assert end is not None  # the stream ends only with the session
        return self._told(session.id, end)

    async def _show(self, event: SessionEvent, owner: str) -> None:
        data = event.data
        match event.type.value:
            case "tool_call" if not self._quiet:
                click.echo(f"· {data['tool']} {_short(data['arguments'])}", err=True)
            case "tool_result" if not self._quiet and data["status"] != "ok":
                click.echo(f"  {data['status']}: {_reason(data['data'])}", err=True)
            case "warning" if not self._quiet:
                click.echo(f"! {data['text']}", err=True)
            case "approval_requested":
                await self._decide(dict(data), owner)

    async def _decide(self, approval: dict[str, Any], owner: str) -> None:
        """Asks whoever sits at the terminal; only a plain yes lets it happen."""
        import asyncio

        from learngraph_kernel.agent.values import Decision

        click.echo(f"\nThe agent wants to call {approval['tool']} ({', '.join(approval['effects'])}):", err=True)
        click.echo(f"  {_short(approval['arguments'], 2_000)}", err=True)
        if approval["tool"] == "ask_user":
            text = await asyncio.to_thread(click.prompt, "Your answer", default="", err=True)
            decision = Decision(approval["id"], "respond", approval["arguments_hash"], text=text)
        else:
            yes = await asyncio.to_thread(click.confirm, "Allow exactly this, once?", default=False, err=True)
            decision = Decision(approval["id"], "approve" if yes else "reject", approval["arguments_hash"])
        # Only once the turn waits can it be woken.
        await self._runtime.settled(approval["session_id"])
        await self._runtime.decide(owner, decision)

    def _told(self, session_id: str, end: SessionEvent) -> int:
        data = dict(end.data)
        if self._quiet:
            print_json({"session_id": session_id, "status": end.type.value, **data})
        elif end.type.value == "completed":
            click.echo(data["shown"])
            for name in ("run_id", "notebook"):
                if data[name]:
                    click.echo(f"{name:<10} {data[name]}", err=True)
            click.echo(f"{'session':<10} {session_id}", err=True)
        elif end.type.value == "failed":
            error = data["error"]
            click.echo(
                f"learngraph: {error['reason']}" + (f" — {error['remedy']}" if error.get("remedy") else ""), err=True
            )
        return 0 if end.type.value == "completed" else 1


def _short(value: Any, length: int = 120) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= length else text[: length - 1] + "…"


def _reason(data: Any) -> str:
    return str(data.get("reason", data)) if isinstance(data, dict) else str(data)
