"""One approval as a value, and how it is written in a row. What leaves by `as_json` is redacted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.tools.arguments import ExactArguments
from learngraph_kernel.tools.values import Effect, ToolScope, ToolSpec

ApprovalState: TypeAlias = Literal[
    "pending", "approved", "rejected", "edited", "answered", "consumed", "expired", "withdrawn"
]
Choice: TypeAlias = Literal["approve", "reject", "edit", "respond"]
Grant: TypeAlias = Literal["allow_once", "always"]

DECIDED: Mapping[Choice, ApprovalState] = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "edited",
    "respond": "answered",
}


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked: one call, exactly.

    Attributes:
        scope: of the call.
        call_id: the model's id of it.
        spec: the tool as it is now.
        exact: its arguments.
        authorisation_hash: what a standing grant would be bound to.
        may_always: whether a standing grant is on offer.
        approvers: who may decide.
        run_id: the run it belongs to, if any.
    """

    scope: ToolScope
    call_id: str
    spec: ToolSpec
    exact: ExactArguments
    authorisation_hash: str
    may_always: bool
    approvers: tuple[str, ...]
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval as recorded; docs/agent.md has the states.

    Attributes:
        exact: the arguments that would be used, to the byte.
        state: as observed when it was read: what has run out is `expired`, whether or not that was written down.
        round: 1, and one more for each edit of the same call.
        replaced_by: the approval of the edited arguments.
    """

    id: str
    session_id: str
    turn_id: str
    agent: str
    call_id: str
    round: int
    run_id: str | None
    owner: str
    workspace: Path
    requester: str
    approvers: tuple[str, ...]
    tool: str
    version: str
    effects: frozenset[Effect]
    exact: ExactArguments = field(repr=False)
    authorisation_hash: str
    may_always: bool
    state: ApprovalState
    grant: Grant | None
    created_at: str
    expires_at: str
    decided_at: str | None
    decided_by: str | None
    consumed_at: str | None
    text: str
    replaced_by: str | None

    def as_json(self) -> dict[str, Any]:
        """The record as docs/agent.md has it."""
        return {
            "id": self.id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "agent": self.agent,
            "call_id": self.call_id,
            "run_id": self.run_id,
            "tool": self.tool,
            "version": self.version,
            "effects": sorted(self.effects),
            "arguments": dict(self.exact.shown),
            "arguments_hash": self.exact.hash,
            "authorisation_hash": self.authorisation_hash,
            "requester": self.requester,
            "approvers": list(self.approvers),
            "grants": ["allow_once", "always"] if self.may_always else ["allow_once"],
            "state": self.state,
            "grant": self.grant,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "decided_at": self.decided_at,
            "decided_by": self.decided_by,
            "text": self.text,
            "replaced_by": self.replaced_by,
        }


def row_of(asking: Asking, approval_id: str, created_at: str, expires_at: str) -> dict[str, Any]:
    """A new, pending row."""
    scope, exact = asking.scope, asking.exact
    return {
        "id": approval_id,
        "session_id": scope.session_id,
        "turn_id": scope.turn_id,
        "agent": scope.agent,
        "call_id": asking.call_id,
        "round": 1,
        "run_id": asking.run_id,
        "owner": scope.owner,
        "workspace": str(scope.workspace),
        "requester": scope.owner,
        "tool": asking.spec.name,
        "version": asking.spec.version,
        "effects": effects_text(asking.spec.effects),
        "arguments": exact.text,
        "shown": canonical_json(dict(exact.shown)).decode(),
        "arguments_hash": exact.hash,
        "authorisation_hash": asking.authorisation_hash,
        "may_always": asking.may_always,
        "state": "pending",
        "created_at": created_at,
        "expires_at": expires_at,
        "text": "",
    }


def from_row(row: Mapping[str, Any], approvers: tuple[str, ...], now: str) -> Approval:
    """An approval from its row, as it is at `now`."""
    values = dict(row)
    exact = ExactArguments(values.pop("arguments"), values.pop("arguments_hash"), json.loads(values.pop("shown")))
    if values["state"] in {"pending", "approved"} and values["expires_at"] <= now:
        values["state"] = "expired"
    values["workspace"] = Path(values["workspace"])
    values["effects"] = effects_from(values["effects"])
    return Approval(**values, exact=exact, approvers=approvers)


def effects_text(effects: frozenset[Effect]) -> str:
    """Effects as a column's text, always in the same order."""
    return canonical_json(sorted(effects)).decode()


def effects_from(text: str) -> frozenset[Effect]:
    """The inverse of `effects_text`."""
    return frozenset(Effect(name) for name in json.loads(text))
