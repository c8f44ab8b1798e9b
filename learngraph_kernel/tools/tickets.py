"""Tickets: permission for one call, good for a minute, used once.

A ticket is only the name of a row; what it says about itself is compared with the row, every field, in the transaction
that uses it. So a ticket that a model wrote, or that was altered on the way, opens nothing.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import insert, select, update

from learngraph_kernel.store.clock import from_text, to_text
from learngraph_kernel.store.schema import tool_tickets as table
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools.approval_record import effects_from, effects_text
from learngraph_kernel.tools.call_key import CallKey
from learngraph_kernel.tools.errors import ToolTicketRefused
from learngraph_kernel.tools.values import ToolScope, ToolSpec, ToolTicket

GOOD_FOR = dt.timedelta(seconds=60)


def issue(
    batch: Batch,
    scope: ToolScope,
    call_id: str,
    spec: ToolSpec,
    *,
    arguments_hash: str,
    authorisation_hash: str,
    approval_id: str | None,
    good_for: dt.timedelta = GOOD_FOR,
) -> ToolTicket:
    """A ticket for one call: the one that is there, while half of its time is left, else a new one.

    Other tickets of the call that were not used are void then, so a call never has two.
    """
    now, key = batch.clock(), CallKey.of_call(scope, call_id)
    bound = {
        "owner": scope.owner,
        "workspace": str(scope.workspace),
        **key.columns(),
        "tool": spec.name,
        "version": spec.version,
        "arguments_hash": arguments_hash,
        "authorisation_hash": authorisation_hash,
        "effects": effects_text(spec.effects),
        "approval_id": approval_id,
    }
    unused = (*key.of(table), table.c.used_at.is_(None), table.c.void_at.is_(None))
    for row in map(dict, batch.connection.execute(select(table).where(*unused)).mappings()):
        fresh = row["expires_at"] > to_text(now + good_for / 2)
        if fresh and all(row[name] == value for name, value in bound.items()):
            return ticket_of(row)
    batch.connection.execute(update(table).where(*unused).values(void_at=to_text(now)))
    new = {
        "id": f"t_{secrets.token_hex(16)}",
        **bound,
        "issued_at": to_text(now),
        "expires_at": to_text(now + good_for),
    }
    batch.connection.execute(insert(table).values(new))
    return ticket_of(new)


def ticket_of(row: Mapping[str, Any]) -> ToolTicket:
    """The ticket that a row stands for."""
    return ToolTicket(
        id=row["id"],
        call_id=row["call_id"],
        tool=row["tool"],
        version=row["version"],
        arguments_hash=row["arguments_hash"],
        effects=effects_from(row["effects"]),
        approval_id=row["approval_id"],
        expires_at=from_text(row["expires_at"]).timestamp(),
    )


def checked(batch: Batch, scope: ToolScope, ticket: ToolTicket, arguments_hash: str | None) -> Mapping[str, Any]:
    """The row of a ticket that is what it says, for this scope and these arguments; used or not.

    Raises:
        ToolTicketRefused: naming what differs, never what it should have been.
    """
    found = batch.connection.execute(select(table).where(table.c.id == ticket.id)).mappings().one_or_none()
    if found is None:
        raise _refused("it was not issued here", ticket)
    row = dict(found)
    differs = _differences(row, scope, ticket, arguments_hash)
    if differs:
        raise _refused(f"it differs from what was issued: {', '.join(differs)}", ticket)
    if row["void_at"] is not None:
        raise _refused("another one took its place, or its turn was stopped", ticket)
    return row


def use(batch: Batch, row: Mapping[str, Any], ticket: ToolTicket, authorisation_hash: str | None) -> None:
    """Uses up a checked ticket. Raises ToolTicketRefused: used before, too late, or the tool has changed since."""
    if row["authorisation_hash"] != authorisation_hash:
        raise _refused("the tool has changed since it was issued", ticket)
    now = to_text(batch.clock())
    free = update(table).where(
        table.c.id == row["id"], table.c.used_at.is_(None), table.c.void_at.is_(None), table.c.expires_at > now
    )
    if batch.connection.execute(free.values(used_at=now)).rowcount != 1:
        raise _refused("it was used before" if row["used_at"] else "it is too late for it", ticket)


def void_unused(batch: Batch, session_id: str, turn_id: str | None) -> None:
    """Voids what was issued and not used, of a turn or a whole conversation."""
    change = update(table).where(table.c.session_id == session_id, table.c.used_at.is_(None), table.c.void_at.is_(None))
    if turn_id is not None:
        change = change.where(table.c.turn_id == turn_id)
    batch.connection.execute(change.values(void_at=to_text(batch.clock())))


def _differences(row: Mapping[str, Any], scope: ToolScope, ticket: ToolTicket, arguments_hash: str | None) -> list[str]:
    issued = ticket_of(row)
    names = ("call_id", "tool", "version", "arguments_hash", "effects", "approval_id", "expires_at")
    differs = [name for name in names if getattr(issued, name) != getattr(ticket, name)]
    theirs = {
        "owner": scope.owner,
        "workspace": str(scope.workspace),
        "session_id": scope.session_id,
        "turn_id": scope.turn_id,
        "agent": scope.agent,
    }
    differs += [name for name, value in theirs.items() if row[name] != value]
    return differs if row["arguments_hash"] == arguments_hash else [*differs, "arguments"]


def _refused(why: str, ticket: ToolTicket) -> ToolTicketRefused:
    return ToolTicketRefused(
        f"the ticket is refused: {why}", where=ticket.id[:80], remedy="let the desk consider the call again"
    )
