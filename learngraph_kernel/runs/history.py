"""Reading a run's calls out of its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from learngraph_kernel.store.ledger import Event

CALLS = ("call.started", "call.completed", "call.failed")
"""Types of the events that calls are read from."""


def calls_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The calls of a run in the order they were first made.

    Returns:
        One object a call: `cell`, `position`, `method`, `effect`, `state` (`completed`, `failed`, `started`), `at`,
        `arguments`, `result`, `error`, `artifacts`, `from_record`, those it has. A call that was
        tried again after a resume stands once, in its last state.
    """
    calls: dict[tuple[str, int], dict[str, Any]] = {}
    for event in events:
        if event.type not in CALLS:
            continue
        data = event.data
        call = calls.setdefault(
            (data["cell"], data["position"]),
            {"cell": data["cell"], "position": data["position"], "method": data["method"], "artifacts": []},
        )
        call["state"], call["at"] = event.type.removeprefix("call."), event.at
        for key in ("effect", "arguments", "result", "error", "artifacts", "from_record"):
            if key in data:
                call[key] = data[key]
    return list(calls.values())
