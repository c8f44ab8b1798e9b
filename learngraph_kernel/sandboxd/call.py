"""One call of the API: authenticated, its body checked, its ticket asked for each effect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from learngraph_kernel.sandbox.answers import BadRequest, TooLarge
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.daemon import Daemon
from learngraph_kernel.sandboxd.records import Row

MAX_JSON = 256 * 1024


@dataclass(frozen=True)
class Call:
    """One authenticated call.

    Attributes:
        names: parts of the path by name.
        query: parameters of the query, the last of each name.
        body: the bytes as sent.
        upload: the bytes of an upload, on disk; None for other calls.
    """

    daemon: Daemon
    caller: Caller
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    upload: BinaryIO | None
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
