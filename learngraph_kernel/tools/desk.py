"""The desk: every call of a tool goes over it, and nothing else lets an effect through.

`consider` checks the arguments and asks policy; `decided` turns a person's word into a ticket; `execute` takes the
ticket and makes the call, once. What each does is in the modules it is made of; this one only puts them in order.

After a crash, consider the same call again: the desk says where it was. A call that had begun gets its ticket back, and
executing that gives its recorded result, or `outcome_unknown`, never a second effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.writer import Batch
from learngraph_kernel.tools import approval_refusals as refusals
from learngraph_kernel.tools import approval_rows, tickets
from learngraph_kernel.tools.approval_record import Approval, Asking
from learngraph_kernel.tools.approvals import Approvals
from learngraph_kernel.tools.arguments import ExactArguments, exact_arguments
from learngraph_kernel.tools.call_key import MAX_CALL_ID, CallKey
from learngraph_kernel.tools.calling import Caller, Order, canonical_text
from learngraph_kernel.tools.calls import Calls
from learngraph_kernel.tools.errors import ApprovalError, BadArguments, ReplayedApproval
from learngraph_kernel.tools.grants import Grants
from learngraph_kernel.tools.policy import Ruling, authorisation_hash, is_third_party, mode_of, rule
from learngraph_kernel.tools.redaction import Redactor
from learngraph_kernel.tools.registry import Entry, Registry
from learngraph_kernel.tools.results import failure
from learngraph_kernel.tools.settings import Setting, ToolSettings, tool_settings
from learngraph_kernel.tools.transactions import note, transact
from learngraph_kernel.tools.values import (
    Allowed,
    CallContext,
    Effect,
    NeedsApproval,
    Refused,
    ToolResult,
    ToolScope,
    ToolSpec,
    ToolTicket,
    Verdict,
)

_REFUSALS = {
    "not_allowed": ("this workspace does not allow calls with these effects", "do without it, and say so"),
    "unattended": ("a person would have to allow it, and nobody can be asked here", "do without it, and say so"),
}


class Desk:
    """The real `ToolDesk`. One for a runtime; `close` it before the store.

    Attributes:
        registry: the tools.
        redactor: what masks secrets; whoever decrypts one registers it here first.
        approvals, grants: what people have said; `decide` and the lists for people are there.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        isolated: bool,
        redactor: Redactor | None = None,
        settings: Callable[[Path], ToolSettings] = tool_settings,
        approvers: Callable[[ToolScope], tuple[str, ...]] = lambda scope: (scope.owner,),
        approvals: Approvals | None = None,
    ) -> None:
        """Puts a desk together.

        Args:
            store: open; approvals, tickets and calls are in its database, long results among its artifacts.
            registry: the tools; may change while the desk is used.
            isolated: whether code that tools run is in the closed box and nowhere else. Where it is not, `run-code` is
                approved as `run-code-on-host`.
            redactor: None for one that knows no secrets yet.
            settings: the `[tools]` of a workspace; asked anew for every call.
            approvers: who may decide a call of this scope.
            approvals: None for those of this store with the usual times.
        """
        self._store = store
        self.registry = registry
        self.redactor = redactor or Redactor()
        self.approvals = approvals or Approvals(store, registry, self.redactor)
        self.grants = Grants(store)
        self._calls = Calls(store)
        self._caller = Caller(store, self.redactor)
        self._isolated = isolated
        self._settings = settings
        self._approvers = approvers
        self._used: set[str] = set()

    async def offered(self, scope: ToolScope) -> tuple[ToolSpec, ...]:
        """See ToolDesk. Raises BadWorkspace when learngraph.toml cannot be used."""
        return self.registry.offered(scope, await self._settings_of(scope))

    async def consider(self, scope: ToolScope, call_id: str, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """See ToolDesk. What is wrong with the call comes back as `Refused`, in words a model can act on."""
        settings = await self._settings_of(scope)
        entry = self.registry.found(name, scope, settings)
        if not isinstance(entry, Entry):
            return Refused(failure("error", "unknown_tool", f"there is no tool {name[:80]!r} here", entry))
        if not 0 < len(call_id) <= MAX_CALL_ID:
            return Refused(failure("error", "bad_call", f"a call's id has 1 to {MAX_CALL_ID} characters", None))
        spec = entry.tool.spec
        try:
            exact = exact_arguments(spec, arguments, scope, self.redactor)
            return await self._earlier(scope, call_id, spec, exact) or await self._by_policy(
                scope, call_id, spec, exact, settings
            )
        except BadArguments as error:
            return Refused(failure("error", error.code, error.what, error.remedy, **error.details))
        except ApprovalError as error:
            return Refused(failure("refused", error.code, error.what, error.remedy))

    def shown(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A call's arguments for events and records: masked, without what the platform sets. Any name will do."""
        entry = self.registry.get(name)
        hidden, redact = (entry.tool.spec.hidden, entry.tool.spec.redact) if entry else (frozenset(), frozenset())
        visible = {key: value for key, value in arguments.items() if key not in hidden}
        masked: dict[str, Any] = self.redactor.value(visible, redact)
        return masked

    async def decided(self, scope: ToolScope, approval_id: str) -> Verdict:
        """See ToolDesk.

        Raises:
            ApprovalError: unknown, foreign, expired, stale, or replayed (this desk has used it already).
        """
        approval = await self.approvals.find(approval_id)
        refusals.check_usable(approval, scope)
        if approval_id in self._used:
            raise ReplayedApproval(
                "it was used already", where=approval_id, remedy="consider the call again to learn what became of it"
            )
        if approval.state != "approved":
            return await self._standing(scope, approval)
        ticket = await self._ticket_for(scope, approval, use=True)
        self._used.add(approval_id)
        return Allowed(ticket, approval.exact.value)

    async def execute(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolResult:
        """See ToolDesk. Cancelling it ends the handler and records what is known.

        Raises:
            ToolTicketRefused: the ticket is not the desk's, was altered, used, voided or is too old; or the arguments,
                the scope or the tool are not those it was issued for. Nothing was called.
            StorageFull, StoreUnavailable: the record could not be written.
        """
        text = canonical_text(arguments)  # now: whoever handed them in may still change them
        settings = await self._settings_of(context.scope)
        entry = self.registry.found(context.ticket.tool, context.scope, settings)
        if not isinstance(entry, Entry):
            return await self._caller.call(Order(context, text, None, None, settings))
        bound_to = self._authorisation(entry.tool.spec, context.scope)
        return await self._caller.call(Order(context, text, entry, bound_to, settings))

    async def withdraw(self, session_id: str, turn_id: str | None = None, *, by: str = "platform") -> list[str]:
        """A turn was stopped, or the conversation went on: open approvals and tickets end, running calls are stopped.

        Returns:
            The ids of the approvals that ended.
        """
        self._caller.stop(session_id, turn_id)
        ended = await self.approvals.withdraw(session_id, turn_id, by=by)
        self._caller.stop(session_id, turn_id)  # what began before its ticket could be voided
        return ended

    async def owns_result(self, session_id: str, sha256: str) -> bool:
        """Whether a call of that conversation gave the result that is stored under this name."""
        return await asyncio.to_thread(self._calls.owns, session_id, sha256)

    async def close(self) -> None:
        """Stops running calls and waits until what is known of each is recorded."""
        await self._caller.close()

    # What is known of a call already

    async def _earlier(self, scope: ToolScope, call_id: str, spec: ToolSpec, exact: ExactArguments) -> Verdict | None:
        key = CallKey.of_call(scope, call_id)
        rounds = await self.approvals.rounds(key)
        if rounds:
            if (rounds[0].tool, rounds[0].exact.hash) != (spec.name, exact.hash):
                return _reused(call_id)
            refusals.check_usable(rounds[-1], scope)
            return await self._standing(scope, rounds[-1])
        ticket = await asyncio.to_thread(self._calls.ticket, key)
        if ticket is None:
            return None
        if (ticket.tool, ticket.arguments_hash) != (spec.name, exact.hash):
            return _reused(call_id)
        return Allowed(ticket, exact.value)

    async def _standing(self, scope: ToolScope, approval: Approval) -> Verdict:
        """What an approval means now, without using it up. Raises StaleApproval."""
        if approval.state in {"pending", "approved"}:
            await self._unchanged(scope, approval)
            return NeedsApproval(approval.id)
        if approval.state == "edited" and approval.replaced_by is not None:
            return NeedsApproval(approval.replaced_by)
        if approval.state == "consumed":
            return Allowed(await self._ticket_for(scope, approval, use=False), approval.exact.value)
        return Refused(_said(approval))

    # What may happen

    async def _by_policy(
        self, scope: ToolScope, call_id: str, spec: ToolSpec, exact: ExactArguments, settings: ToolSettings
    ) -> Verdict:
        mode, bound_to = self._mode(spec, settings), self._authorisation(spec, scope)
        granted = mode == "gated" and await self.grants.standing(scope.owner, scope.workspace, spec.name, bound_to)
        people = self._approvers(scope)
        ruling = rule(mode, granted=granted, unattended=scope.unattended or not people)
        if ruling.answer == "ask":
            asking = Asking(scope, call_id, spec, exact, bound_to, may_always=ruling.may_always, approvers=people)
            approval = await self.approvals.request(asking)
            return NeedsApproval(approval.id) if approval.exact.hash == exact.hash else _reused(call_id)

        def work(batch: Batch) -> Verdict:
            return self._ruled(batch, ruling, scope, call_id, spec, exact, bound_to)

        return await asyncio.to_thread(transact, self._store, f"agent:{scope.agent}", work)

    def _ruled(
        self,
        batch: Batch,
        ruling: Ruling,
        scope: ToolScope,
        call_id: str,
        spec: ToolSpec,
        exact: ExactArguments,
        bound_to: str,
    ) -> Verdict:
        """Allows or refuses at once."""
        facts = {"tool": spec.name, "effects": sorted(spec.effects), "reason": ruling.reason, "owner": scope.owner}
        if ruling.answer == "refuse":
            note(batch, f"agent:{scope.agent}", "tool.refused", call_id, facts)
            return Refused(failure("refused", ruling.reason, *_REFUSALS[ruling.reason]))
        if ruling.reason == "granted":
            note(batch, f"agent:{scope.agent}", "tool.granted", call_id, {**facts, "authorisation_hash": bound_to})
        ticket = tickets.issue(
            batch,
            scope,
            call_id,
            spec,
            arguments_hash=exact.hash,
            authorisation_hash=bound_to,
            approval_id=None,
        )
        return Allowed(ticket, exact.value)

    async def _ticket_for(self, scope: ToolScope, approval: Approval, *, use: bool) -> ToolTicket:
        """The ticket of an approved call.

        Args:
            scope: of the call.
            approval: approved, or consumed before the process ended.
            use: consume it; else its call may have begun, and then has its ticket.

        Raises:
            StaleApproval: the tool, or what the workspace allows, is not what it was when the person decided.
            ExpiredApproval: that was too long ago.
        """
        begun = None if use else await asyncio.to_thread(self._calls.ticket, _key(approval))
        if begun is not None:
            return begun
        if approval.expires_at <= to_text(self._store.clock()):
            raise refusals.expired(approval)
        spec = await self._unchanged(scope, approval)

        def work(batch: Batch) -> ToolTicket:
            if use:
                approval_rows.consume(batch, approval)
            return tickets.issue(
                batch,
                scope,
                approval.call_id,
                spec,
                arguments_hash=approval.exact.hash,
                authorisation_hash=approval.authorisation_hash,
                approval_id=approval.id,
            )

        return await asyncio.to_thread(transact, self._store, f"agent:{scope.agent}", work)

    async def _unchanged(self, scope: ToolScope, approval: Approval) -> ToolSpec:
        """The tool that was asked about, if it is still that and still allowed. Raises StaleApproval."""
        settings = await self._settings_of(scope)
        entry = self.registry.found(approval.tool, scope, settings)
        if not isinstance(entry, Entry) or self._mode(entry.tool.spec, settings) == "never":
            raise refusals.tool_changed(approval)
        if self._authorisation(entry.tool.spec, scope) != approval.authorisation_hash:
            raise refusals.tool_changed(approval)
        return entry.tool.spec

    # Facts

    async def _settings_of(self, scope: ToolScope) -> ToolSettings:
        return await asyncio.to_thread(self._settings, scope.workspace)

    def _mode(self, spec: ToolSpec, settings: ToolSettings) -> Setting:
        return mode_of(
            spec.effects,
            third_party=is_third_party(spec),
            mode=spec.mode,
            modes=settings.modes,
            isolated=self._isolated,
        )

    def _authorisation(self, spec: ToolSpec, scope: ToolScope) -> str:
        return authorisation_hash(spec, owner=scope.owner, workspace=scope.workspace, isolated=self._isolated)


def _key(approval: Approval) -> CallKey:
    return CallKey(approval.session_id, approval.turn_id, approval.agent, approval.call_id)


def _reused(call_id: str) -> Refused:
    reason = "another call of this turn has that id"
    return Refused(failure("error", "call_id_reused", reason, "give every call an id of its own", call_id=call_id))


def _said(approval: Approval) -> ToolResult:
    """What the model reads instead of a result, when a person rejected the call or answered it."""
    if approval.state == "answered" and approval.effects <= {Effect.READ}:
        return ToolResult("ok", {"answer": approval.text}, {"answered_by": approval.decided_by})
    said = {"said": approval.text} if approval.text else {}
    if approval.state == "answered":
        reason, remedy = "a person answered instead of allowing it; it did not happen", "go by what they said"
        return failure("rejected", "answered", reason, remedy, **said)
    reason, remedy = "a person rejected the call; it did not happen", "do not try it again unless they ask for it"
    return failure("rejected", "rejected", reason, remedy, **said)
