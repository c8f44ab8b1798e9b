"""How kernel and broker speak: JSON-RPC 2.0, one message a line, over a unix socket.

Standard library only, because the kernel's side imports it too. Values inside messages are tagged JSON
(`canonical.encode_value`). The first request on a connection is `hello` with the ticket; everything before that is
refused. Source: https://www.jsonrpc.org/specification.
"""

from __future__ import annotations

import json
from typing import Any

BROKER_VARIABLE = "LEARNGRAPH_BROKER"
"""Environment variable with the path of the broker's socket."""

TICKET_VARIABLE = "LEARNGRAPH_TICKET"
"""Environment variable with the ticket's secret."""

TICKET_FILE_VARIABLE = "LEARNGRAPH_TICKET_FILE"
"""Environment variable with the path of a file that holds the ticket's secret: a kernel that was started before its run
was known (a warm one), and every kernel in a container, whose environment the engine would show."""

READY = b"ready\n"
"""What an embedded runtime writes to its standard output once its socket listens."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
APPLICATION_ERROR = -32000
"""A LearnGraphError; `data` holds its `as_json()` and the name of its class."""

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""The longest line either side reads; results larger than this travel as artifacts."""


def encode_message(message: dict[str, Any]) -> bytes:
    """One message as a line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def request(identity: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def success(identity: Any, result: Any) -> dict[str, Any]:
    """A JSON-RPC response."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


def failure(identity: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error response."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": identity, "error": error}
