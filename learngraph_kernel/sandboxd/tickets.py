"""Minting and checking execution tickets; what they are is in `auth`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.sandbox.answers import Unauthenticated
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.auth import Caller, Ticket, check_request, check_ticket, ticket_id, ticket_text
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.records import Row, new_id

table = schema.tickets
DEFAULT_TTL = 3_600.0
CACHED = 10_000


class Tickets:
    """The tickets of all users. They never change, so those that were seen are kept in memory."""

    def __init__(self, core: Core, secret: bytes) -> None:
        self._core, self._secret = core, secret
        self._seen: dict[str, Ticket] = {}

    async def mint(self, caller: Caller, request: Mapping[str, Any], key: str) -> Row:
        """A new ticket: `{"ticket", "scope", "effects", "expires"}`. The same key gives the same ticket."""
        scope, effects, ttl = check_request(
            request.get("scope"), request.get("effects"), request.get("ttl", DEFAULT_TTL), caller
        )
        identity = {"call": "tickets", "request": dict(request)}
        row = await self._core.workers.record(self._mint, caller.owner, scope, effects, ttl, key, identity)
        return {
            "ticket": ticket_text(row["id"], self._secret),
            "scope": row["scope"],
            "effects": json.loads(row["effects"]),
            "expires": row["expires"],
        }

    def _mint(self, owner: str, scope: str, effects: frozenset[str], ttl: float, key: str, identity: Any) -> Row:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            known = self._core.remembered(owner, key, identity)
            found = None if known is None else records.get(table, known["resource"])
            if found is not None:
                return found
            row = records.insert(
                table,
                {
                    "id": new_id("t"),
                    "owner": owner,
                    "scope": scope,
                    "effects": json.dumps(sorted(effects)),
                    "created": now,
                    "expires": now + ttl,
                },
            )
            if known is None:
                records.remember(owner, key, digest(identity), row["id"], None, now)
        return row

    async def check(self, presented: str | None, caller: Caller, effect: str, scopes: Iterable[str]) -> None:
        """Whether a call may go on. Raises Unauthenticated, Forbidden."""
        identity = ticket_id(presented, self._secret)
        ticket = self._seen.get(identity)
        if ticket is None:
            ticket = await self._core.workers.record(self._find, identity)
            if len(self._seen) >= CACHED:
                self._seen.clear()
            self._seen[identity] = ticket
        check_ticket(ticket, caller, effect, scopes, self._core.clock())

    def _find(self, identity: str) -> Ticket:
        row = self._core.records.row(sa.select(table).where(table.c.id == identity))
        if row is None:
            raise Unauthenticated("this execution ticket has expired", code="ticket_expired", remedy="mint a new one")
        return Ticket(row["id"], row["owner"], row["scope"], frozenset(json.loads(row["effects"])), row["expires"])
