"""The runtime as a client of the HTTP API sees it: the methods that conversations use, each one call of the API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import httpx

from learngraph_kernel.agent.readiness import NotReady
from learngraph_kernel.agent.records import UnknownAttachment
from learngraph_kernel.agent.runtime import TurnRunning
from learngraph_kernel.agent.sessions import UnknownSession
from learngraph_kernel.agent.values import ChatMessage, Decision, EventType, Part, Question, Session, SessionEvent
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.tools.errors import ApprovalError
from tests.server.conftest import Server
from tests.server.people import TOKENS

ERRORS = {error.code: error for error in (TurnRunning, UnknownSession, UnknownAttachment)}


class ApiClient:
    """Calls as one person or another (`user:ana`), errors as the exceptions of the runtime."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def headers(self, owner: str) -> dict[str, str]:
        return {"Authorization": f"token {TOKENS[owner.removeprefix('user:')]}"}

    async def call(self, owner: str, method: str, path: str, body: Any = None, **query: Any) -> Any:
        async with httpx.AsyncClient(base_url=self._server.url, timeout=60) as client:
            answer = await client.request(method, path, json=body, params=query, headers=self.headers(owner))
        if answer.status_code >= 400:
            raise_error(answer.json()["error"])
        return answer.json()

    async def events(self, owner: str, session: str, after: int) -> AsyncIterator[SessionEvent | None]:
        """None when the stream says that there is nothing more for now."""
        async with httpx.AsyncClient(base_url=self._server.url, timeout=60) as client:
            headers = {**self.headers(owner), "Last-Event-ID": str(after)}
            async with client.stream("GET", f"/sessions/{session}/events", headers=headers) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        event = json.loads(line[6:])
                        yield SessionEvent(**{**event, "type": EventType(event["type"])})
                    elif line.startswith(":"):
                        yield None


def raise_error(error: Mapping[str, Any]) -> NoReturn:
    code, details = error["code"], error.get("details") or {}
    if code == "not_ready":
        raise NotReady(details["checks"])
    kind = ApprovalError if code.startswith("approval") else ERRORS[code]
    made = kind.__new__(kind)  # each is made from other arguments; what it says is the same
    LearnGraphError.__init__(made, error["reason"], remedy=error["remedy"])
    made.code = code
    raise made


class RemoteLog:
    """The session log through the API."""

    def __init__(self, api: ApiClient, root: Path, owner: str) -> None:
        self._api, self._root, self._owner = api, root, owner

    async def create(self, owner: str, workspace: Path, *, settings: Mapping[str, Any]) -> Session:
        body = {"workspace": str(workspace.relative_to(self._root)), "settings": dict(settings)}
        made = await self._api.call(owner, "POST", "/sessions", body)
        return Session(**{**made, "workspace": workspace})

    async def branch(self, session_id: str) -> Sequence[ChatMessage]:
        found = await self._api.call(self._owner, "GET", f"/sessions/{session_id}")
        return [message(each) for each in found["messages"]]

    async def versions(self, message_id: str) -> Sequence[ChatMessage]:
        for session in (await self._api.call(self._owner, "GET", "/sessions"))["sessions"]:
            try:
                path = f"/sessions/{session['id']}/messages/{message_id}/versions"
                return [message(each) for each in (await self._api.call(self._owner, "GET", path))["messages"]]
            except KeyError:  # another session's message
                continue
        raise AssertionError(f"no session has the message {message_id}")

    async def change(self, session_id: str, owner: str, *, leaf: str) -> None:
        await self._api.call(owner, "PATCH", f"/sessions/{session_id}", {"leaf": leaf})

    async def events(self, session_id: str) -> Sequence[SessionEvent]:
        events: list[SessionEvent] = []
        stream = self._api.events(self._owner, session_id, 0)
        async for event in stream:
            if event is None:
                break
            events.append(event)
        await stream.aclose()  # type: ignore[attr-defined]
        return events

    async def follow(self, session_id: str) -> AsyncIterator[SessionEvent | None]:
        async for event in self._api.events(self._owner, session_id, 0):
            yield event


class RemoteRecords:
    def __init__(self, server: Server, api: ApiClient) -> None:
        self._server, self._api = server, api

    def attach(self, owner: str, name: str, data: bytes) -> Mapping[str, Any]:
        target = f"{self._server.url}/attachments"
        answer = httpx.post(target, params={"name": name}, content=data, headers=self._api.headers(owner))
        answer.raise_for_status()
        kept: Mapping[str, Any] = answer.json()
        return kept


class RemoteRuntime:
    """What `World` and the conversations call of a `Runtime`."""

    def __init__(self, server: Server, owner: str) -> None:
        self._api = ApiClient(server)
        self._owner = owner
        self.log = RemoteLog(self._api, server.root, owner)
        self.records = RemoteRecords(server, self._api)

    async def ask(self, session_id: str, owner: str, question: Question) -> ChatMessage:
        body: dict[str, Any] = {"text": question.text, "attachments": [dict(each) for each in question.attachments]}
        body |= {"parent": question.parent} if question.parent is not None else {}
        body |= {"settings": dict(question.settings)} if question.settings else {}
        return message(await self._api.call(owner, "POST", f"/sessions/{session_id}/messages", body))

    async def regenerate(self, session_id: str, owner: str, message_id: str) -> ChatMessage:
        path = f"/sessions/{session_id}/messages/{message_id}/regenerate"
        return message(await self._api.call(owner, "POST", path, {}))

    async def stop(self, session_id: str, owner: str) -> bool:
        return bool((await self._api.call(owner, "POST", f"/sessions/{session_id}/stop", {}))["stopped"])

    async def budget(self, session_id: str, owner: str) -> Sequence[Mapping[str, Any]]:
        found = await self._api.call(owner, "GET", f"/sessions/{session_id}/budget")
        return list(found["budgets"])

    async def approvals(self, owner: str) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = (await self._api.call(owner, "GET", "/approvals"))["approvals"]
        return found

    async def decide(self, owner: str, decision: Decision) -> Mapping[str, Any]:
        body: dict[str, Any] = {"choice": decision.choice, "arguments_hash": decision.arguments_hash}
        body |= {"grant": decision.grant, "text": decision.text}
        body |= {"arguments": dict(decision.arguments)} if decision.arguments is not None else {}
        found: Mapping[str, Any] = await self._api.call(owner, "POST", f"/approvals/{decision.approval_id}", body)
        return found

    async def settled(self, session_id: str) -> None:
        """Until the last answer is no longer being written: an event or a sign of life is a reason to look again."""
        async for _ in self._api.events(self._owner, session_id, 0):
            if (await self.log.branch(session_id))[-1].status != "streaming":
                return


def message(body: Mapping[str, Any]) -> ChatMessage:
    parts = tuple(Part(part["kind"], part["data"]) for part in body["parts"])
    return ChatMessage(**{**body, "parts": parts})
