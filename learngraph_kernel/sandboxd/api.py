"""The HTTP API, version 1: one handler that authenticates, checks the ticket and answers.

Every error leaves as `{"error": {"code", "reason", "place", "remedy", "details"}}`. What nobody foresaw leaves as
`sandboxd_fault` and nothing more: its traceback, with the host's paths, is for the log.
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import tornado.web
from tornado.iostream import StreamClosedError

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, NotFound, Refusal
from learngraph_kernel.sandbox.refusals import PolicyRefused
from learngraph_kernel.sandboxd.auth import peer_of
from learngraph_kernel.sandboxd.beneath import NoSuchFile
from learngraph_kernel.sandboxd.call import Call
from learngraph_kernel.sandboxd.daemon import Daemon
from learngraph_kernel.sandboxd.grants import DeletionNotGranted
from learngraph_kernel.sandboxd.quota import QuotaExceeded
from learngraph_kernel.sandboxd.routes import ROUTES, UPLOADS, Route

_log = logging.getLogger(__name__)
CHUNK = 256 * 1024


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
    _upload: BinaryIO | None = None

    def initialize(self, daemon: Daemon, routes: Mapping[str, Route]) -> None:
        self._daemon, self._routes = daemon, routes

    def prepare(self) -> None:
        self._daemon.calls.open += 1

    def on_finish(self) -> None:
        self._daemon.calls.open -= 1
        self._daemon.calls.touch()

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
        elif isinstance(answer, str):
            self.set_header("Content-Type", "text/plain; version=0.0.4")
            self.finish(answer)
        else:
            await self._send(answer)

    async def _send(self, file: BinaryIO) -> None:
        """A file's bytes, as fast as they are taken; damage cuts the connection, so that it is no whole answer."""
        self.set_header("Content-Type", "application/octet-stream")
        try:
            while chunk := await self._daemon.core.workers.run(file.read, CHUNK):
                self.write(chunk)
                await self.flush()
            self.finish()
        except StreamClosedError:
            _log.debug("the caller of %s went away", self.request.path)
        except LearnGraphError as error:
            _log.warning("%s: %s", self.request.path, error)
            self.request.connection.stream.close()  # type: ignore[union-attr]
        finally:
            await self._daemon.core.workers.run(file.close)

    get = post = put = delete = _answer

    def _call(self, names: Mapping[str, str]) -> Call:
        headers, daemon = self.request.headers, self._daemon
        peer = peer_of(self.request.connection.stream.socket)  # type: ignore[union-attr]
        caller = daemon.authenticator.caller(peer, headers.get("Authorization"), daemon.core.clock())
        query = {name: values[-1].decode("utf-8", "replace") for name, values in self.request.query_arguments.items()}
        key, ticket = headers.get("Idempotency-Key"), headers.get("LearnGraph-Ticket")
        return Call(daemon, caller, names, query, self.request.body, self._upload, key, ticket)

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


@tornado.web.stream_request_body
class FileHandler(Handler):
    """Paths whose bodies are files: they go to disk as they come, and only once the caller is known."""

    def prepare(self) -> None:
        super().prepare()
        try:
            self._call({})
        except LearnGraphError as error:
            self.set_header("Connection", "close")
            self._refuse(status_of(error), error.as_json())
            return
        settings = self._daemon.core.settings
        self.request.connection.set_max_body_size(settings.upload_bytes)  # type: ignore[union-attr]
        self._upload = tempfile.TemporaryFile(dir=settings.outputs)  # noqa: SIM115  closed when the call ends

    def data_received(self, chunk: bytes) -> None:
        if self._upload is not None:  # None: the call was refused, and what still comes is dropped
            self._upload.write(chunk)

    async def put(self, **names: str) -> None:
        assert self._upload is not None
        self._upload.seek(0)
        await self._answer(**names)

    def on_finish(self) -> None:
        super().on_finish()
        self._forget()

    def on_connection_close(self) -> None:
        self._forget()

    def _forget(self) -> None:
        if self._upload is not None:
            self._upload.close()
            self._upload = None


class Unknown(Handler):
    """Any other path."""

    def prepare(self) -> None:
        super().prepare()
        error = NotFound("there is no such path", code="no_such_path", remedy="see docs/sandbox.md")
        self._refuse(404, error.as_json())


def application(daemon: Daemon) -> tornado.web.Application:
    """The API of a daemon."""
    by_path: dict[str, dict[str, Route]] = {}
    for method, path, route in ROUTES:
        by_path.setdefault(path, {})[method] = route
    rules = [
        (
            re.sub(r"\{(\w+)\}", r"(?P<\1>[a-z]{1,2}_[0-9a-f]{24})", path),
            FileHandler if path in UPLOADS else Handler,
            {"daemon": daemon, "routes": routes},
        )
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
