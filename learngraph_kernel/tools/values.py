"""What a tool is, before anybody calls it: a name, a closed schema, and the effects that policy looks at.

Policy never looks at names. A tool says which *effects* a call has; the desk (`desk.py`) turns the exact
arguments into a digest, decides by effects and digests, and issues an execution ticket for one call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

Status: TypeAlias = Literal["ok", "error", "refused", "rejected", "unavailable", "cancelled"]
Origin: TypeAlias = Literal["platform", "untrusted"]
Mode: TypeAlias = Literal["ask", "gated", "always"]


class Effect(StrEnum):
    """What a call may do to the world. A tool names all that apply."""

    READ = "read"
    WRITE_NOTEBOOK = "write-notebook"
    RUN_CODE = "run-code"
    WRITE_WORKSPACE = "write-workspace"
    DELETE = "delete"
    NETWORK = "network"
    OUTSIDE_WRITE = "outside-write"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered.

    Attributes:
        name: `[a-z][a-z0-9_]*`, unique in a registry; MCP tools are `mcp__SERVER__TOOL`.
        title: language code → name for people (`en`, `zh`).
        description: for the model; platform text, or fenced text of a third party.
        parameters: JSON Schema of the arguments; objects closed, strings bounded.
        effects: everything a call may do.
        version: changes whenever what the tool does changes.
        origin: who wrote what it returns: `untrusted` results are fenced before a model sees them.
        hidden: names of arguments that the platform sets (`chat_session_id`); never in what is offered to a model.
        redact: names of arguments that records and cards show as `•••`.
        authorisation: facts an `always` grant is bound to beyond spec and workspace (endpoint, manifest hash, …).
            A tool that has any is a third party's: its effects are a claim, so it asks until it is granted.
        mode: how calls are approved where something more exact than the effects says so (an MCP tool's setting in
            the workspace, a tool that exists to ask a person). None: by the effects. Never set by a third party.
    """

    name: str
    title: Mapping[str, str]
    description: str
    parameters: Mapping[str, Any]
    effects: frozenset[Effect]
    version: str = "1"
    origin: Origin = "platform"
    hidden: frozenset[str] = frozenset()
    redact: frozenset[str] = frozenset()
    authorisation: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave, normalised: `{"status", "data", "meta"}`.

    Attributes:
        status: `ok`, or why not.
        data: JSON; of a failure `{"code", "reason", "remedy"}`. No SQL, HTTP, provider or sandbox internals.
        meta: JSON: `truncated`, `artifact` (the full result), `duration_s`, `replayed`, …
    """

    status: Status
    data: Any
    meta: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status, "data": self.data, "meta": dict(self.meta)}


@dataclass(frozen=True, slots=True)
class ToolScope:
    """For whom tools are offered and called; made by the runtime, never from a request's body.

    Attributes:
        owner: `user:ana`.
        session_id, turn_id, message_id: of the conversation.
        workspace: folder with learngraph.toml.
        agent: who calls: `main`, or a sub-agent's name.
        roles: of the owner, e.g. {"user"}.
        allowed: tool names this agent may use; None for all that are enabled.
        unattended: nobody can be asked; what needs an approval is refused.
    """

    owner: str
    session_id: str
    turn_id: str
    message_id: str
    workspace: Path
    agent: str = "main"
    roles: frozenset[str] = frozenset({"user"})
    allowed: frozenset[str] | None = None
    unattended: bool = False


@dataclass(frozen=True, slots=True)
class ToolTicket:
    """Permission for one call, issued by the desk; executors take no other.

    Attributes:
        id: `t_…`; used once.
        call_id: the model's id of the call.
        tool, version: what may be called.
        arguments_hash: sha256 of the canonical arguments, hidden ones included.
        effects: the most the call may do.
        approval_id: the approval it rests on, or None when policy allowed it.
        expires_at: seconds since the epoch.
    """

    id: str
    call_id: str
    tool: str
    version: str
    arguments_hash: str
    effects: frozenset[Effect]
    approval_id: str | None
    expires_at: float


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a handler gets beside its arguments. `emit` shows progress in the session's stream (type, JSON data)."""

    scope: ToolScope
    ticket: ToolTicket
    emit: Callable[[str, Mapping[str, Any]], Awaitable[None]]


class ToolHandler(Protocol):
    """Does it. Raises LearnGraphError for what the model can mend; anything else is logged and told as internal."""

    async def __call__(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A spec with the code behind it."""

    spec: ToolSpec
    handler: ToolHandler


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call may happen now, once, under this ticket."""

    ticket: ToolTicket
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A person decides first; the record is durable."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """It will not happen; what the model reads instead."""

    result: ToolResult


Verdict: TypeAlias = Allowed | NeedsApproval | Refused


class ToolDesk(Protocol):
    """What the turn needs from tools; `tools/desk.py` is the real one."""

    async def offered(self, scope: ToolScope) -> tuple[ToolSpec, ...]:
        """The tools this scope may see now (role, grant, enabled), in a stable order."""

    async def consider(self, scope: ToolScope, call_id: str, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """Validates, evaluates policy, and issues a ticket or makes an approval record. Idempotent per call id."""

    async def decided(self, scope: ToolScope, approval_id: str) -> Verdict:
        """After a person decided: consumes the approval (once). Raises ApprovalError when it is not theirs to use.

        Undecided is `NeedsApproval` again, edited is `NeedsApproval` of the approval that replaced it.
        """

    async def execute(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolResult:
        """Consumes the ticket and calls the handler; trims, redacts and stores what is too large. Never twice."""
