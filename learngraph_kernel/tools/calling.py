"""Making calls: a ticket is used, the handler runs, and what came of it is recorded before anybody is told.

A call is a task of its own, so that whoever waits for it can be cancelled without losing the record of what happened.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from learngraph_kernel.canonical import NotCanonical, canonical_json, sha256_hex
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.store.database import Store
from learngraph_kernel.tools import calls, tickets
from learngraph_kernel.tools.call_key import CallKey
from learngraph_kernel.tools.errors import ToolTicketRefused
from learngraph_kernel.tools.execution import Execution, Outcome, internal, told
from learngraph_kernel.tools.redaction import Redactor
from learngraph_kernel.tools.registry import Entry
from learngraph_kernel.tools.results import presentable
from learngraph_kernel.tools.settings import ToolSettings
from learngraph_kernel.tools.transactions import transact
from learngraph_kernel.tools.values import CallContext, Origin, ToolResult, ToolSpec

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """One call to make.

    Attributes:
        context: scope, ticket and where progress goes.
        text: canonical JSON of the arguments as they were handed in; None when they have none.
        entry: the tool as it is now; None when this scope may not have it any more.
        authorisation_hash: of that tool.
        settings: of the workspace.
    """

    context: CallContext
    text: str | None
    entry: Entry | None
    authorisation_hash: str | None
    settings: ToolSettings

    @property
    def key(self) -> CallKey:
        return CallKey.of_call(self.context.scope, self.context.ticket.call_id)

    @property
    def arguments_hash(self) -> str | None:
        return None if self.text is None else sha256_hex(self.text.encode())


def canonical_text(arguments: Mapping[str, Any]) -> str | None:
    """The canonical text of arguments; None when they have none."""
    try:
        return canonical_json(dict(arguments)).decode()
    except (NotCanonical, UnicodeEncodeError, RecursionError):
        return None


@dataclass(slots=True)
class _Running:
    stopped: asyncio.Event
    task: asyncio.Task[ToolResult]


class Caller:
    """The calls that this process makes."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor
        self._running: dict[CallKey, _Running] = {}
        self._abandoned: set[asyncio.Task[Outcome]] = set()

    async def call(self, order: Order) -> ToolResult:
        """Makes the call, or says what became of it. Raises as `ToolDesk.execute`."""
        if order.key in self._running:
            await asyncio.to_thread(self._check, order)
        under_way = self._running.get(order.key)
        if under_way is not None:
            result = await asyncio.shield(under_way.task)
            return dataclasses.replace(result, meta={**result.meta, "replayed": True})
        stopped = asyncio.Event()
        task = asyncio.create_task(self._made(order, stopped), name=f"call {order.context.ticket.call_id}")
        self._running[order.key] = _Running(stopped, task)
        task.add_done_callback(lambda _: self._running.pop(order.key, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await self._end(stopped, task)
            raise

    def stop(self, session_id: str, turn_id: str | None) -> int:
        """Asks the running calls of a turn (or a conversation) to end; returns how many there are."""
        chosen = [
            running
            for key, running in self._running.items()
            if key.session_id == session_id and turn_id in (None, key.turn_id)
        ]
        for running in chosen:
            running.stopped.set()
        return len(chosen)

    async def close(self) -> None:
        """Stops every call and waits until what is known of each is recorded."""
        for running in tuple(self._running.values()):
            await self._end(running.stopped, running.task)

    async def _end(self, stopped: asyncio.Event, task: asyncio.Task[ToolResult]) -> None:
        stopped.set()
        await asyncio.wait({task})
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.error("a stopped call could not be recorded", exc_info=error)

    def _check(self, order: Order) -> None:
        context = order.context
        transact(
            self._store,
            f"agent:{context.scope.agent}",
            lambda batch: tickets.checked(batch, context.scope, context.ticket, order.arguments_hash),
        )

    async def _made(self, order: Order, stopped: asyncio.Event) -> ToolResult:
        context, text = order.context, order.text
        begun = await asyncio.to_thread(self._begin, order)
        if isinstance(begun, calls.Known):
            return begun.result
        # A call that begins has an entry and arguments: the hash of either would not have matched the ticket.
        assert order.entry is not None and text is not None
        seconds = order.entry.seconds or order.settings.seconds
        execution = Execution(order.entry.tool, seconds, self._abandoned, stopped)
        started = time.monotonic()
        outcome = await execution.outcome(json.loads(text), context)
        took = time.monotonic() - started
        return await asyncio.to_thread(self._record, order, order.entry.tool.spec, outcome, took)

    def _begin(self, order: Order) -> calls.Begun | calls.Known:
        scope, ticket = order.context.scope, order.context.ticket
        actor = f"agent:{scope.agent}"
        try:
            return transact(
                self._store,
                actor,
                lambda batch: calls.begin(batch, scope, ticket, order.arguments_hash, order.authorisation_hash),
            )
        except ToolTicketRefused as error:
            with self._store.unit_of_work(actor) as unit:
                unit.audit("tool.ticket_refused", ticket.id[:80], {"reason": error.what, "owner": scope.owner})
            raise

    def _record(self, order: Order, spec: ToolSpec, outcome: Outcome, took: float) -> ToolResult:
        def shown(result: ToolResult, origin: Origin) -> ToolResult:
            return presentable(
                result,
                spec,
                origin=origin,
                redactor=self._redactor,
                artifacts=self._store.artifacts,
                characters=order.settings.characters,
            )

        context = order.context
        try:
            result = shown(outcome.result, spec.origin if outcome.by_handler else "platform")
        except LearnGraphError as error:  # the whole of a long result could not be stored; the call was made
            result = shown(told(error, context.scope), "platform")
        except (TypeError, ValueError, RecursionError) as error:
            result = shown(internal(spec.name, error), "platform")
        result = dataclasses.replace(result, meta={**result.meta, "duration_s": round(took, 3)})
        calls.Calls(self._store).finish(context.scope, context.ticket, result)
        return result
