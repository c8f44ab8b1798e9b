"""The changes to approval records, each one step of a transaction: insert, decide, replace, consume, close."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, insert, or_, select, update

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.schema import tool_approvals as table
from learngraph_kernel.store.schema import tool_approvers as who
from learngraph_kernel.store.schema import tool_tickets as tickets
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools import approval_refusals as refusals
from learngraph_kernel.tools.approval_record import DECIDED, Approval, Asking, Choice, Grant, from_row, row_of
from learngraph_kernel.tools.arguments import ExactArguments
from learngraph_kernel.tools.transactions import note, tell

OPEN = ("pending", "approved")


def new_id() -> str:
    """A new approval's id: 128 random bits."""
    return f"a_{secrets.token_hex(16)}"


def insert_asked(batch: Batch, asking: Asking, lasts: dt.timedelta) -> str:
    """A new, pending record of a call that was not asked before; returns its id."""
    now, approval_id = batch.clock(), new_id()
    batch.connection.execute(insert(table).values(row_of(asking, approval_id, to_text(now), to_text(now + lasts))))
    facts = {
        "tool": asking.spec.name,
        "effects": sorted(asking.spec.effects),
        "arguments_hash": asking.exact.hash,
        "session": asking.scope.session_id,
        "call": asking.call_id,
    }
    _asked(batch, f"agent:{asking.scope.agent}", approval_id, asking.approvers, facts)
    return approval_id


def replace(batch: Batch, seen: Approval, edited: ExactArguments, by: str, lasts: dt.timedelta) -> str:
    """The same question over other arguments, pending; returns its id."""
    now, approval_id = batch.clock(), new_id()
    old = batch.connection.execute(select(table).where(table.c.id == seen.id)).mappings().one()
    fresh = {
        "id": approval_id,
        "round": seen.round + 1,
        "arguments": edited.text,
        "arguments_hash": edited.hash,
        "shown": canonical_json(dict(edited.shown)).decode(),
        "state": "pending",
        "created_at": to_text(now),
        "expires_at": to_text(now + lasts),
        "decided_at": None,
        "decided_by": None,
        "text": "",
    }
    batch.connection.execute(insert(table).values({**old, **fresh}))
    batch.connection.execute(update(table).where(table.c.id == seen.id).values(replaced_by=approval_id))
    facts = {
        "tool": seen.tool,
        "effects": sorted(seen.effects),
        "arguments_hash": edited.hash,
        "session": seen.session_id,
        "call": seen.call_id,
        "replaces": seen.id,
    }
    _asked(batch, by, approval_id, seen.approvers, facts)
    return approval_id


def decide(
    batch: Batch,
    seen: Approval,
    owner: str,
    choice: Choice,
    arguments_hash: str,
    *,
    grant: Grant,
    text: str,
    usable: dt.timedelta,
) -> None:
    """Writes a decision, if the record is still pending, in time, over these bytes, and this person's to decide."""
    now = batch.clock()
    may = exists().where(who.c.approval_id == table.c.id, who.c.approver == owner)
    values: dict[str, Any] = {
        "state": DECIDED[choice],
        "grant": grant if choice == "approve" else None,
        "decided_at": to_text(now),
        "decided_by": owner,
        "text": text,
    }
    if choice == "approve":
        values["expires_at"] = to_text(now + usable)
    same = (table.c.id == seen.id, table.c.arguments_hash == arguments_hash, may)
    change = update(table).where(*same, table.c.state == "pending", table.c.expires_at > to_text(now)).values(values)
    if batch.connection.execute(change).rowcount != 1:
        raise refusals.not_decidable(read_one(batch, seen.id), owner, arguments_hash)
    facts = {"choice": choice, "grant": values["grant"], "arguments_hash": arguments_hash, "tool": seen.tool}
    note(batch, owner, "approval.decided", seen.id, facts)
    tell(batch, "approval.decided", seen.id, {**facts, "by": owner, "session": seen.session_id, "call": seen.call_id})


def consume(batch: Batch, approval: Approval) -> None:
    """Uses an approval up, inside the transaction that issues the ticket for its call.

    Raises:
        ReplayedApproval, ExpiredApproval, StaleApproval: it is not `approved` any more.
    """
    now = to_text(batch.clock())
    change = (
        update(table)
        .where(
            table.c.id == approval.id,
            table.c.state == "approved",
            table.c.expires_at > now,
            table.c.arguments_hash == approval.exact.hash,
            table.c.authorisation_hash == approval.authorisation_hash,
        )
        .values(state="consumed", consumed_at=now)
    )
    if batch.connection.execute(change).rowcount != 1:
        raise refusals.not_usable(read_one(batch, approval.id))
    note(batch, f"agent:{approval.agent}", "approval.consumed", approval.id, {"call": approval.call_id})


def close(batch: Batch, which: ColumnElement[bool], state: str, by: str) -> list[str]:
    """Ends the records that a condition picks; returns their ids."""
    ids = list(batch.connection.scalars(select(table.c.id).where(which).order_by(table.c.id)))
    for approval_id in ids:
        batch.connection.execute(update(table).where(table.c.id == approval_id).values(state=state))
        note(batch, by, f"approval.{state}", approval_id, {})
        tell(batch, f"approval.{state}", approval_id, {})
    return ids


def unused() -> ColumnElement[bool]:
    """Records that have not led to a call: open ones, and consumed ones whose ticket nobody has used yet."""
    ticket = exists().where(
        tickets.c.approval_id == table.c.id, tickets.c.used_at.is_(None), tickets.c.void_at.is_(None)
    )
    return or_(table.c.state.in_(OPEN), and_(table.c.state == "consumed", ticket))


def read_one(batch: Batch, approval_id: str) -> Approval:
    """A record as the transaction sees it."""
    return read(batch_rows(batch), select(table).where(table.c.id == approval_id), to_text(batch.clock()))[0]


Rows = Callable[[Select[Any]], Sequence[Mapping[str, Any]]]


def batch_rows(batch: Batch) -> Rows:
    """Reads inside a transaction."""
    connection: Connection = batch.connection
    return lambda query: [dict(row) for row in connection.execute(query).mappings()]


def read(rows: Rows, query: Select[Any], now: str) -> list[Approval]:
    """The records of a query, as they are at `now`."""
    found = rows(query)
    ids = [row["id"] for row in found]
    people: dict[str, list[str]] = {approval_id: [] for approval_id in ids}
    for pair in rows(select(who).where(who.c.approval_id.in_(ids)).order_by(who.c.approver)) if ids else ():
        people[pair["approval_id"]].append(pair["approver"])
    return [from_row(row, tuple(people[row["id"]]), now) for row in found]


def _asked(batch: Batch, by: str, approval_id: str, approvers: Sequence[str], facts: Mapping[str, Any]) -> None:
    people = list(dict.fromkeys(approvers))
    batch.connection.execute(insert(who), [{"approver": person, "approval_id": approval_id} for person in people])
    note(batch, by, "approval.requested", approval_id, facts)
    tell(batch, "approval.requested", approval_id, {**facts, "approvers": people})
