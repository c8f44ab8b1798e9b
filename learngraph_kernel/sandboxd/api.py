"""The HTTP API, version 1: a table of routes, and one handler that authenticates, checks the ticket and answers.

Every error leaves as `{"error": {"code", "reason", "place", "remedy", "details"}}`. What nobody foresaw leaves as
`sandboxd_fault` and nothing more: its traceback, with the host's paths, is for the log.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tornado.web

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Conflict, NotFound, Refusal, TooLarge
from learngraph_kernel.sandbox.refusals import PolicyRefused
from learngraph_kernel.sandboxd import kernels, sandboxes
from learngraph_kernel.sandboxd.auth import Caller, peer_of
from learngraph_kernel.sandboxd.beneath import NoSuchFile
from learngraph_kernel.sandboxd.core import check_key
from learngraph_kernel.sandboxd.daemon import Daemon
from learngraph_kernel.sandboxd.grants import DeletionNotGranted
from learngraph_kernel.sandboxd.quota import QuotaExceeded
from learngraph_kernel.sandboxd.records import Row

_log = logging.getLogger(__name__)
MAX_JSON = 256 * 1024
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True)
class Call:
    """One authenticated call.

    Attributes:
        names: parts of the path by name.
        query: parameters of the query, the last of each name.
        body: the bytes as sent.
    """

    daemon: Daemon
    caller: Caller
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    key: str | None
    ticket: str | None

    def json(self, *known: str) -> dict[str, Any]:
        """The body as an object with no other fields than these (any, if none is named). Raises BadRequest."""
        if len(self.body) > MAX_JSON:
            raise TooLarge("the body is too large for JSON", code="body_too_large")
        try:
            value = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadRequest("the body is not JSON", code="not_json") from error
        if not isinstance(value, dict):
            raise BadRequest("the body must be a JSON object", code="not_an_object")
        unknown = set(value) - set(known) if known else set()
        if unknown:
            raise BadRequest(f"unknown field {sorted(unknown)[0][:60]!r}", code="unknown_field")
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        """A number of the query that is not negative. Raises BadRequest."""
        text = self.query.get(name)
        if text is None:
            return default
        if not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
            raise BadRequest(f"{name} must be a number", code="bad_query")
        return float(text)

    async def allow(self, effect: str, *scopes: str) -> None:
        """Checks the ticket. Raises Unauthenticated, Forbidden."""
        await self.daemon.tickets.check(self.ticket, self.caller, effect, scopes)

    async def sandbox(self, effect: str) -> Row:
        """The sandbox of the path, if the ticket allows the effect on its session."""
        row = await self.daemon.sandboxes.get(self.caller, self.names["id"])
        await self.allow(effect, f"session:{row['session']}")
        return row

    async def kernel(self) -> Row:
        """The kernel of the path, if the ticket allows it."""
        row = await self.daemon.kernels.get(self.caller, self.names["id"])
        await self.allow("kernel", f"run:{row['run']}")
        return row

    async def command(self, effect: str) -> Row:
        """The command of the path, if the ticket allows the effect on its session."""
        row = await self.daemon.commands.owned(self.caller, self.names["id"])
        sandbox = await self.daemon.sandboxes.get(self.caller, row["sandbox"])
        await self.allow(effect, f"session:{sandbox['session']}")
        return row


Answer = dict[str, Any] | bytes | str
Route = Callable[[Call], Awaitable[Answer]]


async def health(call: Call) -> Answer:
    return {"state": "ok", "instance": call.daemon.core.around.instance, "api": 1}


async def readiness(call: Call) -> Answer:
    return await call.daemon.health.readiness()


async def metrics(call: Call) -> Answer:
    return await call.daemon.health.metrics()


async def mint_ticket(call: Call) -> Answer:
    body = call.json("scope", "effects", "ttl")
    return await call.daemon.tickets.mint(call.caller, body, check_key(call.key))


async def image_status(call: Call) -> Answer:
    return await call.daemon.images.status()


async def build_image(call: Call) -> Answer:
    return await call.daemon.images.begin(call.caller, "build", check_key(call.key))


async def pull_image(call: Call) -> Answer:
    return await call.daemon.images.begin(call.caller, "pull", check_key(call.key))


async def image_job(call: Call) -> Answer:
    return await call.daemon.images.job(call.names["id"])


async def create_sandbox(call: Call) -> Answer:
    body = call.json("session", "policy")
    session, policy = body.get("session"), body.get("policy", "sandbox-agent-v1")
    if not isinstance(session, str) or not _SESSION.fullmatch(session) or not isinstance(policy, str):
        raise BadRequest("session must be a name of up to 128 letters, digits and ._:-", code="bad_session")
    await call.allow("lifecycle", f"session:{session}")
    return sandboxes.shown(await call.daemon.sandboxes.create(call.caller, session, policy, check_key(call.key)))


async def list_sandboxes(call: Call) -> Answer:
    await call.allow("observe")
    rows = await call.daemon.sandboxes.owned(call.caller)
    running = await call.daemon.kernels.list(call.caller)
    return {"sandboxes": [sandboxes.shown(row) for row in rows], "kernels": [kernels.shown(row) for row in running]}


async def show_sandbox(call: Call) -> Answer:
    return sandboxes.shown(await call.sandbox("observe"))


async def start_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.start(row)
    return sandboxes.shown(await call.daemon.sandboxes.get(call.caller, row["id"]))


async def stop_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.stop(row, "stopped by its owner")
    return sandboxes.shown(await call.daemon.sandboxes.get(call.caller, row["id"]))


async def delete_sandbox(call: Call) -> Answer:
    row = await call.sandbox("lifecycle")
    await call.daemon.sandboxes.delete(row)
    return {"sandbox": row["id"], "state": "expired"}


async def begin_command(call: Call) -> Answer:
    row = await call.sandbox("exec")
    service, wait = call.daemon.commands, call.number("wait")
    begun = await service.begin(call.caller, row, call.json(), check_key(call.key))
    if wait == 0:
        return begun
    await call.allow("observe", f"session:{row['session']}")
    await service.ended(begun["exec"], wait)
    return await service.show(begun["exec"], {"stdout": 0, "stderr": 0}, 0)


async def inspect_file(call: Call) -> Answer:
    row = await call.sandbox("exec")
    return await call.daemon.commands.inspect(call.caller, row, call.json("task", "path"), check_key(call.key))


async def list_commands(call: Call) -> Answer:
    row = await call.sandbox("observe")
    return {"execs": await call.daemon.commands.list(row["id"])}


async def show_command(call: Call) -> Answer:
    row = await call.command("observe")
    offsets = {stream: int(call.number(stream)) for stream in ("stdout", "stderr")}
    return await call.daemon.commands.show(row["id"], offsets, call.number("wait"))


async def cancel_command(call: Call) -> Answer:
    row = await call.command("exec")
    await call.daemon.commands.cancel(row["id"])
    return {"exec": row["id"], "state": "cancelling" if row["state"] == "running" else row["state"]}


async def list_files(call: Call) -> Answer:
    row = await call.sandbox("observe")
    files = await call.daemon.core.workers.run(call.daemon.files.listing, row, call.query.get("path"))
    return {"files": files, "bytes": sum(file["size"] for file in files)}


async def get_file(call: Call) -> Answer:
    row = await call.sandbox("observe")

    def read() -> bytes:
        with call.daemon.files.open(row, call.query.get("path", "")) as file:
            data = file.read(call.daemon.core.settings.workspace_bytes + 1)
        if len(data) > call.daemon.core.settings.workspace_bytes:
            raise TooLarge("the file is larger than a workspace may be", code="file_too_large")
        return data

    return await call.daemon.core.workers.run(read)


async def put_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    await call.daemon.sandboxes.touch(row["id"])
    return await call.daemon.core.workers.run(call.daemon.files.put, row, call.query.get("path", ""), call.body)


async def delete_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    live = call.daemon.sandboxes.live.get(row["id"])
    if live is not None and live.command is not None:
        raise Conflict("a command is running in this workspace", code="busy", remedy="wait for it, or cancel it")
    recursive = call.query.get("recursive") == "true"
    remove = call.daemon.files.delete
    return {"deleted": await call.daemon.core.workers.run(remove, row, call.query.get("path", ""), recursive)}


async def publish_file(call: Call) -> Answer:
    row = await call.sandbox("files")
    path = str(call.json("path").get("path", ""))
    version = await call.daemon.core.workers.run(call.daemon.files.publish, row, path)
    return {"path": version.path, "version": version.version, "sha256": version.sha256, "size": version.size}


async def grant_deletion(call: Call) -> Answer:
    row = await call.sandbox("grant")
    return await call.daemon.grant(call.caller, row, call.json("paths", "ttl"), check_key(call.key))


async def start_kernel(call: Call) -> Answer:
    body = call.json()
    await call.allow("kernel", f"run:{body.get('run')}")
    return await call.daemon.kernels.start(call.caller, body, check_key(call.key))


async def show_kernel(call: Call) -> Answer:
    return kernels.shown(await call.daemon.kernels.state(await call.kernel()))


async def interrupt_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.signal(row, "SIGINT")
    return {"kernel": row["id"]}


async def signal_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.signal(row, str(call.json("signal").get("signal")))
    return {"kernel": row["id"]}


async def restart_kernel(call: Call) -> Answer:
    row, body = await call.kernel(), call.json("environment")
    return await call.daemon.kernels.restart(call.caller, row, body.get("environment", {}))


async def kernel_logs(call: Call) -> Answer:
    row = await call.kernel()
    return {"kernel": row["id"], "log": await call.daemon.kernels.logs(row)}


async def delete_kernel(call: Call) -> Answer:
    row = await call.kernel()
    await call.daemon.kernels.delete(row)
    return {"kernel": row["id"], "state": "stopped"}


async def collect(call: Call) -> Answer:
    await call.allow("lifecycle")
    return await call.daemon.collect()


ROUTES: tuple[tuple[str, str, Route], ...] = (
    ("GET", "/v1/health", health),
    ("GET", "/v1/readiness", readiness),
    ("GET", "/v1/metrics", metrics),
    ("POST", "/v1/tickets", mint_ticket),
    ("GET", "/v1/images", image_status),
    ("POST", "/v1/images/build", build_image),
    ("POST", "/v1/images/pull", pull_image),
    ("GET", "/v1/images/jobs/{id}", image_job),
    ("POST", "/v1/sandboxes", create_sandbox),
    ("GET", "/v1/sandboxes", list_sandboxes),
    ("GET", "/v1/sandboxes/{id}", show_sandbox),
    ("DELETE", "/v1/sandboxes/{id}", delete_sandbox),
    ("POST", "/v1/sandboxes/{id}/start", start_sandbox),
    ("POST", "/v1/sandboxes/{id}/stop", stop_sandbox),
    ("POST", "/v1/sandboxes/{id}/exec", begin_command),
    ("GET", "/v1/sandboxes/{id}/exec", list_commands),
    ("POST", "/v1/sandboxes/{id}/inspect", inspect_file),
    ("GET", "/v1/sandboxes/{id}/files", list_files),
    ("GET", "/v1/sandboxes/{id}/files/content", get_file),
    ("PUT", "/v1/sandboxes/{id}/files/content", put_file),
    ("DELETE", "/v1/sandboxes/{id}/files/content", delete_file),
    ("POST", "/v1/sandboxes/{id}/publish", publish_file),
    ("POST", "/v1/sandboxes/{id}/grants", grant_deletion),
    ("GET", "/v1/exec/{id}", show_command),
    ("POST", "/v1/exec/{id}/cancel", cancel_command),
    ("POST", "/v1/kernels", start_kernel),
    ("GET", "/v1/kernels/{id}", show_kernel),
    ("DELETE", "/v1/kernels/{id}", delete_kernel),
    ("POST", "/v1/kernels/{id}/interrupt", interrupt_kernel),
    ("POST", "/v1/kernels/{id}/signal", signal_kernel),
    ("POST", "/v1/kernels/{id}/restart", restart_kernel),
    ("GET", "/v1/kernels/{id}/logs", kernel_logs),
    ("POST", "/v1/gc", collect),
)


def status_of(error: LearnGraphError) -> int:
    """The HTTP status an error leaves with."""
    if isinstance(error, Refusal):
        return error.status
    if isinstance(error, PolicyRefused | DeletionNotGranted):
        return 403
    if isinstance(error, NoSuchFile):
        return 404
    if isinstance(error, QuotaExceeded):
        return 413
    return 400 if isinstance(error, BadInput) else 503


class Handler(tornado.web.RequestHandler):
    """Every route."""

    SUPPORTED_METHODS = ("GET", "POST", "PUT", "DELETE")

    def initialize(self, daemon: Daemon, routes: Mapping[str, Route]) -> None:
        self._daemon, self._routes = daemon, routes

    async def _answer(self, **names: str) -> None:
        self.set_header("Server", "sandboxd")
        try:
            route = self._routes.get(self.request.method or "")
            if route is None:
                raise BadRequest("this path does not take that method", code="bad_method")
            answer = await route(self._call(names))
        except LearnGraphError as error:
            self._refuse(status_of(error), error.as_json())
            return
        except Exception:  # noqa: BLE001  what is wrong with us is logged, and no caller's business
            _log.exception("%s %s", self.request.method, self.request.path)
            reason = {"code": "sandboxd_fault", "reason": "sandboxd failed; its log says why", "place": None}
            self._refuse(500, reason | {"remedy": "report it with the log"})
            return
        if isinstance(answer, dict):
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps(answer, ensure_ascii=False).encode())
        else:
            kind = "application/octet-stream" if isinstance(answer, bytes) else "text/plain; version=0.0.4"
            self.set_header("Content-Type", kind)
            self.finish(answer)

    get = post = put = delete = _answer

    def _call(self, names: Mapping[str, str]) -> Call:
        headers, daemon = self.request.headers, self._daemon
        peer = peer_of(self.request.connection.stream.socket)  # type: ignore[union-attr]
        caller = daemon.authenticator.caller(peer, headers.get("Authorization"), daemon.core.clock())
        query = {name: values[-1].decode("utf-8", "replace") for name, values in self.request.query_arguments.items()}
        key, ticket = headers.get("Idempotency-Key"), headers.get("LearnGraph-Ticket")
        return Call(daemon, caller, names, query, self.request.body, key, ticket)

    def _refuse(self, status: int, error: dict[str, Any]) -> None:
        if self._finished:
            return
        self._daemon.core.counters[f"refusals_{error['code']}"] += 1
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps({"error": error}, ensure_ascii=False).encode())

    def write_error(self, status_code: int, **_: Any) -> None:
        """What tornado itself refuses: a method nobody has, a malformed request."""
        self._refuse(
            status_code, {"code": "bad_request", "reason": "this is no call of the API", "place": None, "remedy": None}
        )


class Unknown(Handler):
    """Any other path."""

    def prepare(self) -> None:
        error = NotFound("there is no such path", code="no_such_path", remedy="see docs/sandbox.md")
        self._refuse(404, error.as_json())


def application(daemon: Daemon) -> tornado.web.Application:
    """The API of a daemon."""
    by_path: dict[str, dict[str, Route]] = {}
    for method, path, route in ROUTES:
        by_path.setdefault(path, {})[method] = route
    rules = [
        (re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z]{1,2}_[0-9a-f]{24})", path), Handler, {"daemon": daemon, "routes": routes})
        for path, routes in by_path.items()
    ]
    fallback = {"daemon": daemon, "routes": {}}
    return tornado.web.Application(
        rules, default_handler_class=Unknown, default_handler_args=fallback, log_function=_log_request
    )


def _log_request(handler: tornado.web.RequestHandler) -> None:
    request = handler.request
    level = logging.DEBUG if handler.get_status() < 500 else logging.WARNING
    _log.log(
        level, "%s %s %s %.1f ms", handler.get_status(), request.method, request.path, 1e3 * request.request_time()
    )
