"""What a turn begins with: the layers of its prompt, the conversation before it, its model, and for whom it acts.

All of it is fixed when the turn starts, and read from its record when it is resumed.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from learngraph_kernel.accounts.budgets import Bound, Budgets, ModelCall, Standing, home_bounds, parse_budget
from learngraph_kernel.accounts.opening import open_declared
from learngraph_kernel.accounts.snapshots import Snapshots
from learngraph_kernel.agent.endings import Turn
from learngraph_kernel.agent.sessions import SessionStore
from learngraph_kernel.agent.turn import history
from learngraph_kernel.agent.turn.answer import language_of
from learngraph_kernel.agent.turn.prompt import Layer, context_layer, core_layer, messages_of, style_layer
from learngraph_kernel.agent.turn.spending import Spending
from learngraph_kernel.agent.turn.state import TurnState, first_state
from learngraph_kernel.agent.turn.steps import Surroundings
from learngraph_kernel.agent.values import ChatMessage, EventType, Session
from learngraph_kernel.data.workspace import load_workspace
from learngraph_kernel.models.config import DEFAULT, choose_model, parse_models
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.builtin.data import workspace_overview
from learngraph_kernel.tools.desk import Desk
from learngraph_kernel.tools.values import ToolScope


class Preparing:
    """Prepares turns of one runtime. `today` is the date, for prompts."""

    def __init__(self, store: Store, home: Home, log: SessionStore, desk: Desk, today: Callable[[], dt.date]) -> None:
        self._store, self._home, self._log, self._desk, self._today = store, home, log, desk, today
        self._models: dict[tuple[Path, str], tuple[Any, ModelAdapter]] = {}

    async def first(self, turn: Turn, layers: Sequence[Layer]) -> TurnState:
        """The state a turn begins with: everything the model is told, stored as one artifact."""
        branch = list(await self._log.branch(turn.session.id, turn.question.id))
        earlier = branch[:-1]
        text = "\n".join(str(part.data["text"]) for part in turn.question.parts if part.kind == "text")
        attachments = await asyncio.to_thread(self._attached, turn.question)
        layers = layers or await asyncio.to_thread(self.layers, turn.session.workspace, turn.session.settings)
        messages = [*messages_of(layers), *history.conversation(earlier), history.question(text, attachments)]
        base = await asyncio.to_thread(self._store.artifacts.put_json, [message.as_json() for message in messages])
        run_id, notebook = history.last_run(earlier)
        return first_state(base, run_id=run_id, notebook=notebook)

    def _attached(self, question: ChatMessage) -> list[tuple[str, str]]:
        """(name, text) of what was attached and is text."""
        found = []
        for part in question.parts:
            if part.kind == "attachment":
                data = self._store.artifacts.read(str(part.data["sha256"]))
                found.append((str(part.data.get("name", "file")), data.decode("utf-8", "replace")))
        return found

    async def surroundings(self, turn: Turn) -> Surroundings:
        """What the steps of a turn work with, from its record. Raises ModelMisconfigured, Unavailable."""
        session = turn.session
        text = " ".join(str(part.data.get("text", "")) for part in turn.question.parts)
        earlier = await self._log.turn_events(session.id, turn.id)
        started = next(event.data for event in earlier if event.type is EventType.TURN_STARTED)
        scope = ToolScope(
            owner=session.owner,
            session_id=session.id,
            turn_id=turn.id,
            message_id=turn.message.id,
            workspace=session.workspace,
            unattended=started["unattended"],
        )
        adapter = await asyncio.to_thread(self._model, session.workspace, started["model"])
        bounds = await asyncio.to_thread(self._bounds, session.workspace)
        return Surroundings(
            self._log,
            self._desk,
            self._store,
            self._home,
            adapter,
            scope,
            turn.limits,
            language_of(text),
            self._desk.shown,
            Spending(Budgets(self._store), bounds, scope, adapter.model),
            tuple(earlier),
        )

    def _model(self, workspace: Path, name: str | None) -> ModelAdapter:
        """The adapter of a declared model, one for as long as it is declared so: a script counts what it played."""
        config = choose_model(parse_models(load_workspace(workspace).models, root=workspace), name or DEFAULT)
        declared = (config, _changed(config.script), Snapshots(self._store).of(config))
        known = self._models.get((workspace, config.name))
        if known is None or known[0] != declared:
            adapter = open_declared(config, self._store, self._home, redact=self._desk.redactor.register)
            known = self._models[workspace, config.name] = (declared, adapter)
        return known[1]

    def _bounds(self, workspace: Path) -> list[Bound]:
        """The budgets that hold in a workspace: its own, and the home's. Raises BadBudget."""
        declared = parse_budget(load_workspace(workspace).budget, where="learngraph.toml [budget]")
        return [*declared, *home_bounds(self._home)]

    def standings(self, session: Session) -> list[Standing]:
        """How the budgets of a conversation stand; a turn's own are not among them. Raises BadBudget. Blocks."""
        bounds = [bound for bound in self._bounds(session.workspace) if bound.span != "turn"]
        call = ModelCall("", "", 0, session.id, session.owner, "")
        return Budgets(self._store).standing(call, bounds, self._store.clock())

    def layers(self, workspace: Path, settings: Mapping[str, Any]) -> list[Layer]:
        """The layers of the prompt. Blocks. Raises BadStyle, BadWorkspace."""
        sources, metrics = workspace_overview(workspace, self._home)
        return [core_layer(), style_layer(settings), context_layer(self._today(), sources, metrics)]


def _changed(path: Path | None) -> int | None:
    """When a script was changed."""
    return None if path is None else path.stat().st_mtime_ns
