"""The runtime's way to sandboxd: HTTP over its unix socket, with tickets, idempotency keys and repetition.

A call that creates carries a fresh idempotency key and is sent again with the same one when the connection broke, so
that a restart of sandboxd in the middle neither loses nor doubles anything. Tickets are minted on first use for what a
call needs and renewed when they expire; a client that was handed one ticket uses only that. Errors are the daemon's own
(`answers`), or `SandboxUnavailable` with reason and remedy when there is no daemon to ask. Standard library only.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from learngraph_kernel.errors import LearnGraphError, Unavailable
from learngraph_kernel.sandbox.answers import Refusal, Unauthenticated, from_answer
from learngraph_kernel.sandbox.place import default_socket

RETRY_AFTER = (0.1, 0.3, 1.0, 2.0)
TIMEOUT = 120.0
_BROKEN = (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead)


class SandboxUnavailable(Unavailable):
    """There is no sandboxd that answers."""

    code: ClassVar[str] = "sandbox_unavailable"


def unavailable(error: LearnGraphError) -> SandboxUnavailable:
    """What the daemon could not give, as the state that a run is refused with; its own code is `details["cause"]`."""
    if isinstance(error, SandboxUnavailable):
        return error
    details = {**error.details, "cause": error.code}
    return SandboxUnavailable(error.what, where=error.where, remedy=error.remedy, details=details)


class Transport:
    """One daemon. Safe to use from several threads: each has its own connection.

    Args:
        path: the socket; None: `default_socket()`.
        token: a service token, when the peer's uid is not the user.
        ticket: the only ticket to use; None: mint what is needed.
        timeout: seconds one call may take.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        token: str | None = None,
        ticket: str | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.path = default_socket() if path is None else path
        self._token, self._ticket, self._timeout = token, ticket, timeout
        self._minted: dict[tuple[str, str], str] = {}
        self._local = threading.local()

    def mint(self, scope: str, effects: Sequence[str], ttl: float = 3_600.0, *, key: str | None = None) -> str:
        """A ticket for `owner`, `session:NAME` or `run:NAME`."""
        body = {"scope": scope, "effects": list(effects), "ttl": ttl}
        return str(self._json("POST", "/v1/tickets", body, key=key or new_key())["ticket"])

    def close(self) -> None:
        """Closes this thread's connection."""
        self._drop()

    def _json(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        needs: tuple[str, str] | None = None,
        repeat: bool = False,
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        return dict(json.loads(self._call(method, path, data, key=key, needs=needs, repeat=repeat)))

    def _call(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        *,
        key: str | None = None,
        needs: tuple[str, str] | None = None,
        repeat: bool = False,
    ) -> bytes:
        for attempt in (0, 1):
            headers = {} if key is None else {"Idempotency-Key": key}
            if self._token is not None:
                headers["Authorization"] = f"LearnGraph {self._token}"
            if needs is not None:
                headers["LearnGraph-Ticket"] = self._ticket_for(needs)
            status, answer = self._send(method, path, data, headers, method in ("GET", "DELETE") or repeat or bool(key))
            if status < 400:
                return answer
            refusal = _refusal(status, answer)
            expired = isinstance(refusal, Unauthenticated) and refusal.code in ("ticket_expired", "ticket_invalid")
            if not (expired and attempt == 0 and needs is not None and self._ticket is None):
                raise refusal
            self._minted.pop(needs, None)
        raise AssertionError("the loop returns or raises")

    def _ticket_for(self, needs: tuple[str, str]) -> str:
        if self._ticket is not None:
            return self._ticket
        ticket = self._minted.get(needs)
        if ticket is None:
            ticket = self._minted[needs] = self.mint(needs[0], needs[1].split(","))
        return ticket

    def _send(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], repeat: bool
    ) -> tuple[int, bytes]:
        """One exchange; again on a fresh connection when the old one broke and doing it twice is harmless."""
        for pause in (*RETRY_AFTER, None) if repeat else (None,):
            connection, fresh = self._connection()
            try:
                connection.request(method, path, body=data, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except FileNotFoundError as error:
                self._drop()
                if pause is None:
                    raise self._missing() from error
            except _BROKEN as error:
                self._drop()
                if pause is None:
                    raise self._missing() from error
                if not fresh:
                    continue  # an idle connection that the daemon had closed
            except TimeoutError as error:
                self._drop()
                raise SandboxUnavailable(
                    f"sandboxd did not answer within {self._timeout:.0f} s",
                    where=str(self.path),
                    remedy="see its log; `learngraph doctor` shows what it lacks",
                ) from error
            except PermissionError as error:
                self._drop()
                raise SandboxUnavailable(
                    "you may not open sandboxd's socket",
                    where=str(self.path),
                    remedy="join the group that owns it, or start your own with `learngraph sandboxd`",
                ) from error
            time.sleep(pause)
        raise AssertionError("the loop returns or raises")

    def _missing(self) -> SandboxUnavailable:
        return SandboxUnavailable(
            "sandboxd does not answer",
            where=str(self.path),
            remedy="start it with `learngraph sandboxd` (it needs Docker), or run with --sandbox host",
            details={"zh": {"reason": "sandboxd 没有响应", "remedy": "请运行 learngraph sandboxd 启动（需要 Docker）"}},
        )

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        connection = getattr(self._local, "connection", None)
        if connection is None or self._local.owner != os.getpid():
            connection = self._local.connection = _UnixConnection(self.path, self._timeout)
            self._local.owner = os.getpid()
            return connection, True
        return connection, False

    def _drop(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("sandboxd", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except BaseException:
            self.close()
            raise


def new_key() -> str:
    """A fresh idempotency key."""
    return secrets.token_hex(16)


def _refusal(status: int, answer: bytes) -> Refusal:
    try:
        error = json.loads(answer)["error"]
    except (ValueError, KeyError, TypeError):
        error = {"code": "sandboxd_fault", "reason": f"sandboxd answered {status} without saying why"}
    return from_answer(status, error)
