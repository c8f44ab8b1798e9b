"""Unrecorded look-ups for a person at the keyboard: completion, and the list of runs.

They bring data into the kernel that no ledger knows, so only an interactive session answers them; a run never does.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from learngraph_kernel.broker.state import RunState
from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.run_record import RunRecord

MAX_RUNS = 200


class UnknownLookup(BadInput):
    """There is no look-up by that name."""

    code = "unknown_lookup"


class Lookups:
    """Answers look-ups over one workspace and one store."""

    def __init__(self, state: RunState, store: Store) -> None:
        self._state = state
        self._store = store
        self._answers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "lookup.sources": self._sources,
            "lookup.tables": self._tables,
            "lookup.runs": self._runs,
        }

    def answer(self, name: str, params: dict[str, Any]) -> Any:
        """The answer to a look-up. Raises UnknownLookup."""
        if name not in self._answers:
            raise UnknownLookup(f"there is no {name}", remedy=f"there are: {', '.join(self._answers)}")
        return self._answers[name](params)

    def _sources(self, params: dict[str, Any]) -> Any:
        return {"sources": sorted(self._state.workspace.sources)}

    def _tables(self, params: dict[str, Any]) -> Any:
        source = self._state.source(str(params.get("source")))
        return {"tables": {table.name: [column.name for column in table.columns] for table in source.tables()}}

    def _runs(self, params: dict[str, Any]) -> Any:
        limit = max(1, min(int(params.get("limit") or 10), MAX_RUNS))
        records = self._store.runs(limit=limit)
        return {"bundle": {"text/plain": _plain(records), "text/html": _table(records)}}


_COLUMNS = ("run_id", "status", "tier", "title", "started_at")


def _row(record: RunRecord) -> list[str]:
    body = record.as_json()
    return [str(body[name]) if body[name] is not None else "" for name in _COLUMNS]


def _plain(records: list[RunRecord]) -> str:
    return "\n".join("  ".join(_row(record)) for record in records) or "no runs yet"


def _table(records: list[RunRecord]) -> str:
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _row(record)) + "</tr>" for record in records
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
