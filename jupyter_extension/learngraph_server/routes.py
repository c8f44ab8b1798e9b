"""The table of calls: what each takes, what it does, and how it is described to others.

One table serves the dispatch, the check of bodies and queries, and the OpenAPI document, so they cannot disagree.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from learngraph_server.answers import BadCall

if TYPE_CHECKING:
    from learngraph_kernel.agent.runtime import Runtime
    from learngraph_kernel.agent.values import ChatMessage, Session

Schema: TypeAlias = dict[str, Any]
NAMES = {
    "session": r"s_[0-9a-f]{24}",
    "message": r"m_[0-9a-f]{24}",
    "approval": r"a_[0-9a-f]{32}",
    "grant": r"g_[0-9a-f]{24,32}",
    "run": r"r_[0-9A-Z]{26}",
    "sha256": r"[0-9a-f]{64}",
}


@dataclass(frozen=True)
class Call:
    """One checked call.

    Attributes:
        owner: who calls, e.g. `user:ana`.
        names: parts of the path.
        query: parameters of the query, as their schema has them.
        body: JSON that fits the route's schema.
        root: the server's root folder.
    """

    runtime: Runtime
    owner: str
    names: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any]
    root: Path


Act: TypeAlias = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    name: str
    summary: str
    act: Act
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)


def closed(required: list[str] | None = None, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required or [], "additionalProperties": False}


def text(longest: int, **more: Any) -> Schema:
    return {"type": "string", "maxLength": longest, **more}


SETTINGS: Schema = {"type": "object", "maxProperties": 40}
ATTACHMENT = closed(
    ["name", "sha256", "media_type", "bytes"],
    name=text(300, minLength=1),
    sha256={"type": "string", "pattern": "^[0-9a-f]{64}$"},
    media_type=text(120),
    bytes={"type": "integer", "minimum": 0},
)
LIMIT: Mapping[str, Schema] = {"limit": {"type": "integer", "minimum": 1, "maximum": 500}}


# Conversations


async def list_sessions(call: Call) -> Any:
    found = await call.runtime.log.sessions(
        call.owner, search=call.query.get("search", ""), limit=call.query.get("limit", 50)
    )
    return {"sessions": [session_json(session, call.root) for session in found]}


async def create_session(call: Call) -> Any:
    workspace = inside(call.root, call.body.get("workspace", "."))
    session = await call.runtime.log.create(
        call.owner, workspace, title=call.body.get("title", ""), settings=call.body.get("settings", {})
    )
    return session_json(session, call.root)


async def show_session(call: Call) -> Any:
    session = await call.runtime.log.session(call.names["session"], call.owner)
    branch = await call.runtime.log.branch(session.id)
    return session_json(session, call.root) | {"messages": [message_json(message) for message in branch]}


async def change_session(call: Call) -> Any:
    body = call.body
    session = await call.runtime.log.change(
        call.names["session"],
        call.owner,
        title=body.get("title"),
        leaf=body.get("leaf"),
        settings=body.get("settings"),
    )
    return session_json(session, call.root)


async def delete_session(call: Call) -> Any:
    await call.runtime.delete(call.names["session"], call.owner)
    return {}


async def ask(call: Call) -> Any:
    from learngraph_kernel.agent.values import Question

    body = call.body
    question = Question(
        body["text"],
        tuple(body.get("attachments", ())),
        parent=body.get("parent"),
        model=body.get("model"),
        settings=body.get("settings", {}),
    )
    return message_json(await call.runtime.ask(call.names["session"], call.owner, question))


async def message_versions(call: Call) -> Any:
    await call.runtime.log.session(call.names["session"], call.owner)
    await call.runtime.log.message(call.names["message"], call.names["session"])
    versions = await call.runtime.log.versions(call.names["message"])
    return {"messages": [message_json(message) for message in versions]}


async def regenerate(call: Call) -> Any:
    asked = await call.runtime.regenerate(call.names["session"], call.owner, call.names["message"])
    return message_json(asked)


async def budget(call: Call) -> Any:
    return {"budgets": list(await call.runtime.budget(call.names["session"], call.owner))}


async def stop(call: Call) -> Any:
    return {"stopped": await call.runtime.stop(call.names["session"], call.owner)}


async def resume(call: Call) -> Any:
    return {"resumed": await call.runtime.resume(call.names["session"], call.owner)}


# Decisions


async def list_approvals(call: Call) -> Any:
    state = call.query.get("state", "pending")
    return {"approvals": list(await call.runtime.approvals(call.owner, state=None if state == "all" else state))}


async def decide(call: Call) -> Any:
    from learngraph_kernel.agent.values import Decision

    body = call.body
    decision = Decision(
        call.names["approval"],
        body["choice"],
        body["arguments_hash"],
        grant=body.get("grant", "allow_once"),
        arguments=body.get("arguments"),
        text=body.get("text", ""),
    )
    return await call.runtime.decide(call.owner, decision)


async def list_grants(call: Call) -> Any:
    return {"grants": list(await call.runtime.grants(call.owner))}


async def revoke_grant(call: Call) -> Any:
    await call.runtime.revoke_grant(call.owner, call.names["grant"])
    return {}


# What there is


async def readiness(call: Call) -> Any:
    workspace = inside(call.root, call.query.get("workspace", "."))
    checks = await call.runtime.readiness(workspace)
    return {"ready": all(check["state"] != "failed" for check in checks), "checks": list(checks)}


async def list_runs(call: Call) -> Any:
    runs = await asyncio.to_thread(call.runtime.records.runs, call.owner, call.query.get("limit", 50))
    return {"runs": runs}


async def show_run(call: Call) -> Any:
    return await asyncio.to_thread(call.runtime.records.run, call.owner, call.names["run"])


async def verify_run(call: Call) -> Any:
    return await asyncio.to_thread(call.runtime.records.verify, call.owner, call.names["run"])


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/sessions",
        "listSessions",
        "Your conversations, newest first",
        list_sessions,
        query={**LIMIT, "search": text(200)},
    ),
    Route(
        "POST",
        "/sessions",
        "createSession",
        "Begin a conversation",
        create_session,
        body=closed(title=text(300), workspace=text(1_000), settings=SETTINGS),
    ),
    Route("GET", "/sessions/{session}", "showSession", "A conversation with its shown branch", show_session),
    Route(
        "PATCH",
        "/sessions/{session}",
        "changeSession",
        "Change title, shown branch or settings",
        change_session,
        body=closed(title=text(300), leaf=text(40), settings=SETTINGS),
    ),
    Route("DELETE", "/sessions/{session}", "deleteSession", "Delete a conversation", delete_session),
    Route(
        "POST",
        "/sessions/{session}/messages",
        "ask",
        "Send a message; its answer comes as events",
        ask,
        body=closed(
            ["text"],
            text=text(200_000, minLength=1),
            parent=text(40),
            model=text(100),
            attachments={"type": "array", "items": ATTACHMENT, "maxItems": 20},
            settings=SETTINGS,
        ),
    ),
    Route(
        "GET",
        "/sessions/{session}/messages/{message}/versions",
        "messageVersions",
        "The versions of a message",
        message_versions,
    ),
    Route(
        "POST",
        "/sessions/{session}/messages/{message}/regenerate",
        "regenerate",
        "Answer anew; the old answer stays",
        regenerate,
        body=closed(),
    ),
    Route("GET", "/sessions/{session}/budget", "budget", "How the budgets of a conversation stand", budget),
    Route("POST", "/sessions/{session}/stop", "stop", "Stop the running turn", stop, body=closed()),
    Route("POST", "/sessions/{session}/resume", "resume", "Go on with an interrupted turn", resume, body=closed()),
    Route(
        "GET",
        "/approvals",
        "listApprovals",
        "What you may decide",
        list_approvals,
        query={"state": text(20)},
    ),
    Route(
        "POST",
        "/approvals/{approval}",
        "decide",
        "Decide one approval, over the arguments you saw",
        decide,
        body=closed(
            ["choice", "arguments_hash"],
            choice={"enum": ["approve", "reject", "edit", "respond"]},
            arguments_hash={"type": "string", "pattern": "^[0-9a-f]{64}$"},
            grant={"enum": ["allow_once", "always"]},
            arguments={"type": "object"},
            text=text(4_000),
        ),
    ),
    Route("GET", "/grants", "listGrants", "Your standing grants", list_grants),
    Route("DELETE", "/grants/{grant}", "revokeGrant", "Take a standing grant back", revoke_grant),
    Route(
        "GET",
        "/readiness",
        "readiness",
        "Whether a turn can begin, and what is missing",
        readiness,
        query={"workspace": text(1_000)},
    ),
    Route("GET", "/runs", "listRuns", "Your runs, newest first", list_runs, query=LIMIT),
    Route("GET", "/runs/{run}", "showRun", "One of your runs", show_run),
    Route("POST", "/runs/{run}/verify", "verifyRun", "Verify the seal of one of your runs", verify_run, body=closed()),
)


def pattern(path: str) -> str:
    """A path as a regular expression; each name in it has its own form."""
    return re.sub(r"\{(\w+)\}", lambda match: f"(?P<{match[1]}>{NAMES[match[1]]})", path)


def inside(root: Path, relative: str) -> Path:
    """A folder below the server's root. Raises BadCall."""
    path = (root / relative).resolve()
    if Path(relative).is_absolute() or not path.is_relative_to(root) or not path.is_dir():
        raise BadCall(
            "the workspace is no folder of this server", where=relative[:200], remedy="give a folder below it"
        )
    return path


def session_json(session: Session, root: Path) -> dict[str, Any]:
    """A session as callers see it: its workspace relative to the server's root."""
    workspace = session.workspace
    shown = str(workspace.relative_to(root)) if workspace.is_relative_to(root) else None
    return {**asdict(session), "workspace": shown, "settings": dict(session.settings)}


def message_json(message: ChatMessage) -> dict[str, Any]:
    """A message as callers see it."""
    parts = [{"kind": part.kind, "data": dict(part.data)} for part in message.parts]
    plain = {name: getattr(message, name) for name in ("id", "session_id", "parent", "version", "role", "status")}
    return {**plain, "parts": parts, "turn_id": message.turn_id, "created_at": message.created_at}
