"""The broker's socket: accepts kernels, checks tickets, hands calls to the run's session.

Connections are served on the runtime's event loop; the calls themselves run in worker threads, because sources and
models block. The socket lies in a folder only its owner may enter, and the ticket is checked all the same.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
from pathlib import Path
from typing import Any

from learngraph_kernel.broker import protocol
from learngraph_kernel.broker.box import admit
from learngraph_kernel.broker.session import BrokerFault, RunSession
from learngraph_kernel.broker.ticket import TicketRefused
from learngraph_kernel.errors import LearnGraphError

_log = logging.getLogger(__name__)


class BrokerServer:
    """Serves one run's session on a unix socket.

    Use as an async context manager; leaving it closes the socket and every connection.

    Args:
        path: where the socket belongs; the folder decides who reaches it.
        private: the folder is this user's alone. If not, it is a container's as well: whatever it puts in the socket's
            place is neither followed nor removed, and the folder's ACL says who else may connect.
        listener: a socket that listens at `path` already.
    """

    def __init__(
        self, session: RunSession, path: Path, *, private: bool = True, listener: socket.socket | None = None
    ) -> None:
        self._session = session
        self._path = path
        self._private = private
        self._listener = listener
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> BrokerServer:
        where: dict[str, Any] = {"path": str(self._path)} if self._listener is None else {"sock": self._listener}
        self._server = await asyncio.start_unix_server(self._accept, limit=protocol.MAX_MESSAGE_BYTES, **where)
        if self._private:
            os.chmod(self._path, 0o600)
        elif self._listener is None:
            admit(self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        if self._private:
            self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # The kernel is gone, or the run is over; its calls so far are recorded, and there is nobody to tell.
            return
        finally:
            writer.close()
            self._connections.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        admitted = False
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                answer = protocol.failure(None, protocol.INVALID_REQUEST, "the message is longer than 64 MiB")
                writer.write(protocol.encode_message(answer))
                await writer.drain()
                return
            if not line:
                return
            answer, admitted = await self._respond(line, admitted)
            writer.write(protocol.encode_message(answer))
            await writer.drain()
            if not admitted:
                return

    async def _respond(self, line: bytes, admitted: bool) -> tuple[dict[str, Any], bool]:
        """The answer to one line, and whether the connection may go on."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return protocol.failure(None, protocol.PARSE_ERROR, "not JSON"), False
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return protocol.failure(None, protocol.INVALID_REQUEST, "not a JSON-RPC 2.0 request"), False
        identity, method, params = message.get("id"), message["method"], message.get("params", {})
        if not isinstance(params, dict):
            return protocol.failure(identity, protocol.INVALID_PARAMS, "params must be an object"), admitted
        try:
            if method == "hello":
                return protocol.success(identity, self._admit(params)), True
            if not admitted:
                raise TicketRefused("the first request must be hello with a ticket")
            result = await asyncio.to_thread(self._session.call, method, params)
            return protocol.success(identity, result), True
        except LearnGraphError as error:
            return protocol.failure(identity, protocol.APPLICATION_ERROR, str(error), error.as_json()), admitted
        except Exception:  # noqa: BLE001 - a fault of ours must not take the kernel's connection down with it
            _log.exception("the broker failed on %s", method)
            fault = BrokerFault(method)
            return protocol.failure(identity, protocol.APPLICATION_ERROR, str(fault), fault.as_json()), admitted

    def _admit(self, params: dict[str, Any]) -> dict[str, Any]:
        self._session.ticket.check_secret(str(params.get("ticket", "")), time.monotonic())
        state = self._session.state
        return {"run_id": state.run_id, "formal": state.formal, "workspace": str(state.workspace.root)}
