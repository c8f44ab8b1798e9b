"""The durable record of a call: `begun` in the transaction that uses its ticket, `finished` with what came of it.

So a call whose process was killed in between is known to have begun and not known to have ended. With any effect beyond
reading it never runs again: it may have happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.process import ProcessIdentity
from learngraph_kernel.store.schema import tool_calls as table
from learngraph_kernel.store.schema import tool_tickets
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools import tickets
from learngraph_kernel.tools.call_key import CallKey
from learngraph_kernel.tools.results import failure
from learngraph_kernel.tools.transactions import note, tell, transact
from learngraph_kernel.tools.values import Effect, ToolResult, ToolScope, ToolTicket


@dataclass(frozen=True, slots=True)
class Begun:
    """The call is ours to make, now."""


@dataclass(frozen=True, slots=True)
class Known:
    """The call was made before; this is what is known of it."""

    result: ToolResult


def begin(
    batch: Batch, scope: ToolScope, ticket: ToolTicket, arguments_hash: str | None, authorisation_hash: str | None
) -> Begun | Known:
    """Uses the ticket and records the call as begun, or says what became of it earlier.

    Args:
        batch: the transaction.
        scope: who calls.
        ticket: as handed in.
        arguments_hash: of the arguments as handed in; None when they have none.
        authorisation_hash: of the tool as it is now; None when it is not offered any more.

    Raises:
        ToolTicketRefused: and nothing has changed.
    """
    row = tickets.checked(batch, scope, ticket, arguments_hash)
    key = CallKey.of_call(scope, ticket.call_id)
    call = batch.connection.execute(select(table).where(*key.of(table))).mappings().one_or_none()
    if call is not None:
        known = _known(batch, key, dict(call), ticket)
        if known is not None:
            return known
        batch.connection.execute(delete(table).where(*key.of(table)))  # only reads come here, and may run again
    again = call is not None and call["ticket_id"] == ticket.id and row["authorisation_hash"] == authorisation_hash
    if not again:
        tickets.use(batch, row, ticket, authorisation_hash)
    columns = {
        "ticket_id": ticket.id,
        "tool": ticket.tool,
        "arguments_hash": ticket.arguments_hash,
        "state": "begun",
        "process": canonical_json(ProcessIdentity.current().as_json()).decode(),
        "begun_at": to_text(batch.clock()),
    }
    batch.connection.execute(insert(table).values(**key.columns(), **columns))
    facts = {
        "tool": ticket.tool,
        "version": ticket.version,
        "effects": sorted(ticket.effects),
        "arguments_hash": ticket.arguments_hash,
        "approval": ticket.approval_id,
        "session": scope.session_id,
        "owner": scope.owner,
    }
    note(batch, f"agent:{scope.agent}", "tool.begun", ticket.call_id, facts)
    return Begun()


def finish(batch: Batch, scope: ToolScope, ticket: ToolTicket, result: ToolResult) -> None:
    """Records what came of a call that is begun; one that was given up meanwhile stays given up."""
    key = CallKey.of_call(scope, ticket.call_id)
    change = update(table).where(*key.of(table), table.c.state == "begun", table.c.ticket_id == ticket.id)
    values = {
        "state": "finished",
        "finished_at": to_text(batch.clock()),
        "status": result.status,
        "result": json.dumps(result.as_json(), ensure_ascii=False),
        "artifact": result.meta.get("artifact"),
    }
    if batch.connection.execute(change.values(values)).rowcount:
        _told(batch, key, ticket, result.status)


class Calls:
    """What is known of calls."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ticket(self, key: CallKey) -> ToolTicket | None:
        """The ticket of a call that has begun or ended. Blocks."""
        used = select(table.c.ticket_id).where(*key.of(table)).scalar_subquery()
        rows = self._store.rows(select(tool_tickets).where(tool_tickets.c.id == used))
        return tickets.ticket_of(rows[0]) if rows else None

    def owns(self, session_id: str, sha256: str) -> bool:
        """Whether a call of that conversation gave this artifact. Blocks."""
        query = select(table.c.call_id).where(table.c.session_id == session_id, table.c.artifact == sha256).limit(1)
        return bool(self._store.rows(query))

    def finish(self, scope: ToolScope, ticket: ToolTicket, result: ToolResult) -> None:
        """Records a result, in a unit of work of its own. Blocks."""
        transact(self._store, f"agent:{scope.agent}", lambda batch: finish(batch, scope, ticket, result))


def _known(batch: Batch, key: CallKey, call: Mapping[str, Any], ticket: ToolTicket) -> Known | None:
    """What is known of a call that was begun before; None when it only reads and may run again."""
    if call["state"] == "finished":
        body = json.loads(call["result"])
        return Known(ToolResult(body["status"], body["data"], {**body["meta"], "replayed": True}))
    process = ProcessIdentity.from_json(json.loads(call["process"]))
    if process != ProcessIdentity.current() and process.alive():
        return Known(failure("error", "call_running", "another process is making this call now", "wait for its result"))
    if ticket.effects <= {Effect.READ}:
        return None
    unknown = failure(
        "error",
        "outcome_unknown",
        "the process ended during this call, so it may or may not have happened; it is not made again",
        "look at what it should have changed before you decide what to do",
    )
    change = (
        update(table)
        .where(*key.of(table))
        .values(
            state="finished",
            finished_at=to_text(batch.clock()),
            status=unknown.status,
            result=json.dumps(unknown.as_json(), ensure_ascii=False),
        )
    )
    batch.connection.execute(change)
    _told(batch, key, ticket, "outcome_unknown")
    return Known(unknown)


def _told(batch: Batch, key: CallKey, ticket: ToolTicket, status: str) -> None:
    facts = {
        "tool": ticket.tool,
        "version": ticket.version,
        "effects": sorted(ticket.effects),
        "arguments_hash": ticket.arguments_hash,
        "approval": ticket.approval_id,
        "status": status,
        "session": key.session_id,
    }
    note(batch, f"agent:{key.agent}", "tool.called", key.call_id, facts)
    tell(batch, "tool.called", f"{key.session_id}/{key.turn_id}/{key.call_id}", facts)
