"""From an HTTP request to a checked call, and back: who, how often, what; errors in one form.

Every handler here asks Jupyter's identity provider and authoriser; XSRF is Jupyter's. Who calls is never a field of the
request. What nobody foresaw leaves as `internal` with an incident id: its trace is for the log.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from learngraph_server.answers import (
    BadCall,
    BodyTooLarge,
    NoSuchMethod,
    NoSuchPath,
    NotAllowed,
    TooManyCalls,
    audited,
    body_of,
    status_of,
)
from learngraph_server.hosting import RuntimeHost
from learngraph_server.plain import problem
from learngraph_server.routes import ROUTES, Call, Route

if TYPE_CHECKING:
    from learngraph_kernel.errors import LearnGraphError

API = "/learngraph/api/v1"
AUTH_RESOURCE = "learngraph"


class LearnGraphHandler(APIHandler):
    """What all handlers share."""

    auth_resource = AUTH_RESOURCE

    @property
    def host(self) -> RuntimeHost:
        host: RuntimeHost = self.settings["learngraph_host"]
        return host

    @property
    def owner(self) -> str:
        """Whose things this call is about.

        Under a Hub, or with an identity provider that knows people, whoever is logged in: others may be let into a
        server too, and they have their own. On a server of one's own Jupyter makes up a name for each token's caller,
        so the owner is the process's user.
        """
        if self.settings["learngraph_by_identity"]:
            return f"user:{self.current_user.username}"
        from learngraph_kernel.actor import current_actor

        return current_actor()

    def check_rate(self) -> None:
        """Raises TooManyCalls."""
        wait = self.settings["learngraph_limiter"].wait_s(self.owner)
        if wait > 0:
            self.set_header("Retry-After", str(int(wait) + 1))
            raise TooManyCalls("too many calls", remedy=f"try again in {wait:.0f} s")

    async def answer(self, work: Any) -> None:
        """Sends what a coroutine gives as JSON, or its error in our form."""
        from learngraph_kernel.errors import LearnGraphError

        try:
            self.send(200, await work)
        except LearnGraphError as error:
            await self.refuse(error)
        except web.HTTPError:
            raise
        except Exception:  # noqa: BLE001  told as internal; the trace is for the log
            self.fault()

    async def refuse(self, error: LearnGraphError) -> None:
        """Sends an error in our form. What says something of the caller's intent is put on record."""
        if audited(error):
            await self.host.note_refusal(self.owner, error.code, self.request.path.partition(API)[2][:200])
        self.send(status_of(error), body_of(error))

    def send(self, status: int, body: Mapping[str, Any]) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(body, ensure_ascii=False))

    def write_error(self, status_code: int, **more: Any) -> None:
        """What Jupyter or Tornado refuse, or nobody foresaw, in the same form and with an incident id."""
        self.clear_header("Content-Type")
        if status_code >= 500:
            self.fault()
        elif status_code == 405:
            self.send(405, body_of(_no_such_method()))
        elif status_code == 413:
            self.send(413, body_of(BodyTooLarge("the body is too large", remedy="send less")))
        elif status_code in (401, 403):
            self.send(status_code, body_of(NotAllowed("you may not", remedy="send the token, or the XSRF token")))
        else:
            self.send(status_code, body_of(BadCall("the call cannot be read", remedy="see openapi.json")))

    def fault(self) -> None:
        incident = secrets.token_hex(6)
        self.log.exception("learngraph: incident %s at %s %s", incident, self.request.method, self.request.path)
        reason = {"code": "internal", "reason": f"the server failed for a reason of its own (incident {incident})"}
        self.send(500, {"error": {**reason, "place": None, "remedy": "its log has the trace; report it"}})


class ApiHandler(LearnGraphHandler):
    """Every path of the table."""

    def initialize(self, path: str) -> None:
        self._routes = {route.method: route for route in ROUTES if route.path == path}

    @web.authenticated
    @authorized
    async def get(self, **names: str) -> None:
        await self.answer(self._act(names))

    @web.authenticated
    @authorized
    async def post(self, **names: str) -> None:
        await self.answer(self._act(names))

    @web.authenticated
    @authorized
    async def patch(self, **names: str) -> None:
        await self.answer(self._act(names))

    @web.authenticated
    @authorized
    async def delete(self, **names: str) -> None:
        await self.answer(self._act(names))

    async def _act(self, names: Mapping[str, str]) -> Any:
        self.check_rate()
        route = self._routes.get(self.request.method or "")
        if route is None:
            raise _no_such_method()
        query, body = self._query(route), self._body(route)
        runtime = await self.host.runtime()
        return await route.act(Call(runtime, self.owner, names, query, body, self.host.root))

    def _query(self, route: Route) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for name in self.request.query_arguments:
            if name in ("token", "_xsrf"):
                continue
            if name not in route.query:
                raise BadCall(f"there is no query parameter {name[:60]!r}", remedy="see openapi.json")
            value: Any = self.get_query_argument(name)
            if route.query[name].get("type") == "integer":
                value = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value
            given[name] = value
        _check(given, {"type": "object", "properties": dict(route.query)}, "query")
        return given

    def _body(self, route: Route) -> dict[str, Any]:
        data = self.request.body
        if len(data) > self.settings["learngraph_max_body"]:
            raise BodyTooLarge("the body is too large", remedy="send less; attach files by upload")
        if route.body is None:
            if data:
                raise BadCall("this call takes no body", remedy="send none")
            return {}
        try:
            value = json.loads(data or b"{}", parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise BadCall("the body is not JSON", remedy="send one JSON object, UTF-8") from error
        if not isinstance(value, dict):
            raise BadCall("the body is not a JSON object", remedy="send one JSON object")
        _check(value, route.body, "body")
        return value


class UnknownHandler(LearnGraphHandler):
    """Any other path below ours: told in our form, and only to who may be here at all."""

    @web.authenticated
    @authorized
    async def get(self, *parts: str) -> None:
        error = NoSuchPath("the API has no such path", remedy="see openapi.json")
        self.send(404, body_of(error))

    post = patch = put = delete = get


class OpenApiHandler(LearnGraphHandler):
    """The description of the API."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        from learngraph_server.openapi import document

        self.send(200, document())


def _check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raises BadCall listing what does not fit."""
    from learngraph_kernel.schemas import violations

    odd = problem(value)
    if odd:
        raise BadCall(f"the {where} does not fit: {odd}", remedy="send plain JSON")
    found = [f"{item.path or '(top)'}: expected {item.expected}, got {item.got}" for item in violations(value, schema)]
    if found:
        raise BadCall(
            f"the {where} does not fit: {found[0]}", remedy="see openapi.json", details={"problems": found[:20]}
        )


def _no_such_method() -> NoSuchMethod:
    return NoSuchMethod("this path does not take that method", remedy="see openapi.json")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
