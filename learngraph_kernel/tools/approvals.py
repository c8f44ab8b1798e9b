"""The durable word of a person: asked once for one call, decided once over the bytes they saw, used once.

Every change is one conditional UPDATE in a transaction that holds the write lock. Whoever comes second, with another
hash, too late, or without a right to it, changes nothing and is told which of these it was. Nothing here is addressed
by position, and only the word `approve` lets the exact arguments happen.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Select, or_, select

from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.schema import tool_approvals as table
from learngraph_kernel.store.schema import tool_approvers as who
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools import approval_refusals as refusals
from learngraph_kernel.tools import approval_rows as changes
from learngraph_kernel.tools.approval_record import Approval, Asking, Choice, Grant
from learngraph_kernel.tools.arguments import ExactArguments, edited_arguments
from learngraph_kernel.tools.call_key import CallKey
from learngraph_kernel.tools.errors import ApprovalError, BadDecision, StaleApproval
from learngraph_kernel.tools.grants import give
from learngraph_kernel.tools.redaction import Redactor
from learngraph_kernel.tools.registry import Registry
from learngraph_kernel.tools.tickets import void_unused
from learngraph_kernel.tools.transactions import transact

TO_DECIDE = dt.timedelta(hours=24)
"""How long a person has."""
TO_USE = dt.timedelta(hours=1)
"""How long a decision can be used once it is there; a turn that waits uses it at once."""
MAX_TEXT = 4_000
MAX_LISTED = 200


class Approvals:
    """Approval records. All methods are safe from any number of tasks and processes at once."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        redactor: Redactor,
        *,
        to_decide: dt.timedelta = TO_DECIDE,
        to_use: dt.timedelta = TO_USE,
    ) -> None:
        """Takes the store, the tools (an edit is checked against their schemas), and what masks secrets."""
        self._store = store
        self._registry = registry
        self._redactor = redactor
        self._to_decide = to_decide
        self._to_use = to_use

    async def request(self, asking: Asking) -> Approval:
        """Asks. The same call again gets the record that is there already, whatever its arguments: compare its hash."""
        key = CallKey.of_call(asking.scope, asking.call_id)
        newest = select(table.c.id).where(*key.of(table)).order_by(table.c.round.desc()).limit(1)

        def work(batch: Batch) -> Approval:
            found = batch.connection.scalar(newest) or changes.insert_asked(batch, asking, self._to_decide)
            return changes.read_one(batch, found)

        return await asyncio.to_thread(transact, self._store, asking.scope.owner, work)

    async def find(self, approval_id: str) -> Approval:
        """One record. Raises UnknownApproval."""
        found = await self._read(select(table).where(table.c.id == approval_id))
        if not found:
            raise refusals.unknown(approval_id)
        return found[0]

    async def rounds(self, key: CallKey) -> list[Approval]:
        """The records of a call: what was asked first, then one for each edit."""
        return await self._read(select(table).where(*key.of(table)).order_by(table.c.round))

    async def of_turn(self, session_id: str, turn_id: str) -> list[Approval]:
        """Everything that a turn has asked, oldest first."""
        theirs = (table.c.session_id == session_id) & (table.c.turn_id == turn_id)
        return await self._read(select(table).where(theirs).order_by(table.c.created_at, table.c.round))

    async def listed(self, owner: str, state: str | None = "pending", session: str | None = None) -> list[Approval]:
        """What this person may decide, newest first; at most 200.

        Args:
            owner: the person, e.g. `user:ana`.
            state: only records in that state now; None for all.
            session: only of that conversation.
        """
        mine = select(who.c.approval_id).where(who.c.approver == owner)
        query = select(table).where(table.c.id.in_(mine))
        if session is not None:
            query = query.where(table.c.session_id == session)
        late = table.c.state.in_(changes.OPEN) & (table.c.expires_at <= to_text(self._store.clock()))
        if state == "expired":
            query = query.where(or_(late, table.c.state == state))
        elif state is not None:
            query = query.where(table.c.state == state, ~late)
        return await self._read(query.order_by(table.c.created_at.desc(), table.c.id).limit(MAX_LISTED))

    async def decide(
        self,
        owner: str,
        approval_id: str,
        choice: Choice,
        arguments_hash: str,
        grant: Grant = "allow_once",
        arguments: Mapping[str, Any] | None = None,
        text: str = "",
    ) -> Approval:
        """Records what a person decided. Only `approve` lets the call happen, with exactly the arguments shown.

        Args:
            owner: the person.
            approval_id: which; nothing is decided by position.
            choice: `approve`, `reject`, `edit` (asks anew, with other arguments), `respond` (answers with a text).
            arguments_hash: of the arguments that the person saw.
            grant: `always` also allows later calls of this tool as it is now; only where the record offers it.
            arguments: of an edit, as shown and changed; what is still masked stays what it was.
            text: the reason of a rejection, the answer of `respond`.

        Returns:
            The record as it is now; of an edit the new, pending one.

        Raises:
            ApprovalError: unknown, foreign, expired, replayed, stale, edited, or no decision at all. BadArguments: of
                an edit. Nothing has changed then, and the attempt is audited.
        """
        try:
            return await self._decide(owner, approval_id, choice, arguments_hash, grant, arguments, text)
        except ApprovalError as error:
            facts = {"code": error.code, "choice": str(choice)[:40]}
            await asyncio.to_thread(self._refused, owner, approval_id[:80], facts)
            raise

    async def _decide(
        self,
        owner: str,
        approval_id: str,
        choice: Choice,
        arguments_hash: str,
        grant: Grant,
        arguments: Mapping[str, Any] | None,
        text: str,
    ) -> Approval:
        refusals.check_decision(choice, grant, arguments, text, MAX_TEXT)
        seen = await self.find(approval_id)
        refusals.check_decidable(seen, owner, arguments_hash)
        if grant == "always" and not seen.may_always:
            raise BadDecision("this call is asked each time", where=approval_id, remedy="allow it once, or reject it")
        edited = None if arguments is None else self._edited(seen, arguments)
        said = self._redactor.text(text)

        def work(batch: Batch) -> Approval:
            changes.decide(batch, seen, owner, choice, arguments_hash, grant=grant, text=said, usable=self._to_use)
            if grant == "always":
                give(batch, seen, owner)
            new = approval_id if edited is None else changes.replace(batch, seen, edited, owner, self._to_decide)
            return changes.read_one(batch, new)

        return await asyncio.to_thread(transact, self._store, owner, work)

    async def expire(self, now: dt.datetime | None = None) -> list[str]:
        """Writes down what has run out, for lists and events; it could not be used since anyway. Returns the ids."""
        late = table.c.state.in_(changes.OPEN) & (table.c.expires_at <= to_text(now or self._store.clock()))
        return await asyncio.to_thread(
            transact, self._store, "platform", lambda batch: changes.close(batch, late, "expired", "platform")
        )

    async def withdraw(self, session_id: str, turn_id: str | None = None, *, by: str = "platform") -> list[str]:
        """Ends what was asked or allowed but not used: a turn was stopped, or the conversation went on.

        Args:
            session_id: the conversation.
            turn_id: only of that turn; None for all of the conversation.
            by: whose doing it is, for the audit.

        Returns:
            The ids; deciding or using any of them raises StaleApproval from now on, and their tickets are void.
        """
        theirs = (table.c.session_id == session_id) & changes.unused()
        if turn_id is not None:
            theirs = theirs & (table.c.turn_id == turn_id)

        def work(batch: Batch) -> list[str]:
            ended = changes.close(batch, theirs, "withdrawn", by)
            void_unused(batch, session_id, turn_id)
            return ended

        return await asyncio.to_thread(transact, self._store, by, work)

    async def _read(self, query: Select[Any]) -> list[Approval]:
        return await asyncio.to_thread(changes.read, self._store.rows, query, to_text(self._store.clock()))

    def _refused(self, owner: str, approval_id: str, facts: Mapping[str, Any]) -> None:
        with self._store.unit_of_work(owner) as unit:
            unit.audit("approval.refused", approval_id, facts)

    def _edited(self, seen: Approval, arguments: Mapping[str, Any]) -> ExactArguments:
        entry = self._registry.get(seen.tool, seen.workspace)
        if entry is None or entry.tool.spec.version != seen.version:
            raise StaleApproval("the tool is no longer what it was", where=seen.id, remedy="let the agent ask again")
        return edited_arguments(entry.tool.spec, seen.exact, arguments, self._redactor)
