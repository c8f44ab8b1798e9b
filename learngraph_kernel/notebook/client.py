"""The kernel's connection to its broker.

One connection a process, opened on the first call: to the socket named by the environment when LearnGraph started the
kernel, else to an embedded runtime that is started here. An interrupted call closes the connection, since the answer
to it may still arrive; the next call opens a new one.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

from learngraph_kernel.broker import protocol
from learngraph_kernel.canonical import encode_value
from learngraph_kernel.errors import BadInput, LearnGraphError, Unavailable


class CallRefused(LearnGraphError):
    """The broker answered a call with an error; `code` is the broker's."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(
            body.get("reason", "the call failed"),
            where=body.get("place"),
            remedy=body.get("remedy"),
            details=body.get("details"),
        )
        self.code = body.get("code", "error")  # type: ignore[misc]

    def _render_traceback_(self) -> list[str]:
        """What IPython prints: the message, not the plumbing (protocol of IPython's `showtraceback`)."""
        return [f"{type(self).__name__} [{self.code}]: {self}"]


class MessageTooLong(BadInput):
    """A call with more arguments than the broker reads."""

    code = "message_too_long"


class Connection:
    """A socket to one broker, authenticated by the ticket; not shared between threads."""

    def __init__(self, path: str, ticket: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise Unavailable(
                f"the broker does not answer: {error.strerror}", where=path, remedy="restart the kernel"
            ) from error
        self._reader = self._socket.makefile("rb")
        self._next = 0
        self.run: dict[str, Any] = self.call("hello", {"ticket": ticket, "pid": os.getpid()})

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """One request and its answer, still encoded. Raises CallRefused."""
        self._next += 1
        message = protocol.encode_message(protocol.request(self._next, method, params))
        if len(message) > protocol.MAX_MESSAGE_BYTES:
            raise MessageTooLong(
                f"the arguments of {method} are {len(message)} bytes long, more than {protocol.MAX_MESSAGE_BYTES}",
                remedy="hand over references (Q1, m:…) instead of data",
            )
        try:
            self._socket.sendall(message)
            line = self._reader.readline()
        except OSError as error:
            raise _closed(error.strerror) from error
        if not line:
            raise _closed(None)
        answer = json.loads(line)
        if "error" in answer:
            raise CallRefused(answer["error"].get("data") or {"reason": answer["error"]["message"]})
        return answer["result"]

    def close(self) -> None:
        """Closes the socket; safe to call twice."""
        self._reader.close()
        self._socket.close()


def _closed(reason: str | None) -> Unavailable:
    said = "" if reason is None else f" ({reason})"
    return Unavailable(f"the broker closed the connection{said}", remedy="the run has ended; run the notebook again")


class Client:
    """The process's way to the broker: connects lazily, again after a fork or an interrupt."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._owner = 0

    def call(self, method: str, **params: Any) -> Any:
        """Calls the broker with Python values and returns its answer as JSON, values in it still tagged.

        Raises:
            CallRefused: the broker refused or failed the call; the message says why.
            Unavailable: there is no broker and none could be started.
        """
        encoded = encode_value(params)
        with self._lock:
            connection = self._connected()
            try:
                return connection.call(method, encoded)
            except (CallRefused, MessageTooLong):
                raise
            except BaseException:
                self._drop()
                raise

    def run(self) -> dict[str, Any]:
        """The run this process belongs to: `{"run_id", "formal", "workspace"}`."""
        with self._lock:
            return dict(self._connected().run)

    def _connected(self) -> Connection:
        if self._connection is None or self._owner != os.getpid():
            path, ticket = os.environ.get(protocol.BROKER_VARIABLE), _ticket()
            if path is None or ticket is None:
                from learngraph_kernel.notebook.embedded import start_embedded

                path, ticket = start_embedded()
            self._connection, self._owner = Connection(path, ticket), os.getpid()
        return self._connection

    def forget(self) -> None:
        """In a forked child: the connection is the parent's, and its lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        self._connection = None

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _ticket() -> str | None:
    """The ticket from the environment, else from the file that the environment names; None when there is neither."""
    ticket = os.environ.get(protocol.TICKET_VARIABLE)
    file = os.environ.get(protocol.TICKET_FILE_VARIABLE)
    if ticket is not None or file is None:
        return ticket
    try:
        with open(file, encoding="ascii") as text:
            return text.read().strip()
    except OSError as error:
        raise Unavailable(
            f"the run's ticket cannot be read: {error.strerror}",
            where=file,
            remedy="this kernel belongs to no run yet; start it through LearnGraph",
        ) from error


client = Client()
"""A kernel has one run, so a process has one client."""

os.register_at_fork(after_in_child=client.forget)
