"""`lg.query` and `lg.cell`: snapshots in, single values out."""

from __future__ import annotations

import re
from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.canonical import decode_value, encode_value
from learngraph_kernel.data.bind import bind
from learngraph_kernel.data.snapshots import open_snapshot, take_snapshot
from learngraph_kernel.evidence.html.notebook import mimebundle_for_snapshot
from learngraph_kernel.evidence.values import SnapshotInfo
from learngraph_kernel.naming import suggestion

PREVIEW_ROWS = 20
MAX_SCHEMA_TABLES = 500

_CELL = re.compile(r"^(?P<snapshot>Q\d+)\.r(?P<row>\d+)\.(?P<column>.+)$")


class QueryCall(Method):
    """A guarded query; its result becomes the next snapshot."""

    name = "query"
    external = True

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        name = text_argument(arguments, "source")
        ticket.check_source(name)
        source = state.source(name)
        sql = bind(text_argument(arguments, "sql"), decode_value(arguments.get("parameters") or {}), source.dialect)
        ref = f"Q{len(state.book.snapshots) + 1}"
        snapshot = take_snapshot(source, sql, artifacts=state.artifacts, ref=ref)
        tables = {
            table.name: [column.name for column in table.columns] for table in source.tables()[:MAX_SCHEMA_TABLES]
        }
        return {"snapshot": snapshot.info.as_json(), "tables": state.artifacts.put_json(tables)}

    def apply(self, state: RunState, arguments: dict[str, Any], result: Any) -> None:
        info = SnapshotInfo.from_json(result["snapshot"])
        state.book.snapshots[info.ref] = open_snapshot(info, state.artifacts)
        for table, columns in state.artifacts.read_json(result["tables"]).items():
            state.book.tables[table] = tuple(columns)

    def present(self, state: RunState, result: Any) -> Any:
        info = SnapshotInfo.from_json(result["snapshot"])
        rows = list(state.book.snapshots[info.ref].rows(0, PREVIEW_ROWS))
        return {
            "snapshot": result["snapshot"],
            "path": str(state.grant(state.artifacts.path(info.artifact))),
            "bundle": mimebundle_for_snapshot(info, rows, language=state.language, run=state.run_id),
        }

    def artifacts(self, result: Any) -> list[str]:
        return [result["snapshot"]["artifact"], result["tables"]]


class CellCall(Method):
    """`lg.cell("Q1.r0.flights")`: one value by reference."""

    name = "cell"

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        ref = text_argument(arguments, "ref")
        match = _CELL.match(ref)
        if match is None:
            raise BadCall(f"{ref!r} is no cell reference", remedy="write it like Q1.r0.flights")
        snapshot = state.book.snapshots.get(match["snapshot"])
        if snapshot is None:
            raise BadCall(
                f"the run has no snapshot {match['snapshot']}",
                remedy=suggestion(match["snapshot"], state.book.snapshots, kind="snapshots"),
            )
        names = [column.name for column in snapshot.info.columns]
        if match["column"] not in names:
            raise BadCall(
                f"{match['snapshot']} has no column {match['column']!r}",
                remedy=suggestion(match["column"], names, kind="columns"),
            )
        row = int(match["row"])
        if row >= snapshot.info.row_count:
            raise BadCall(f"{match['snapshot']} has {snapshot.info.row_count} rows, there is no row {row}")
        return {"value": encode_value(snapshot.cell(row, match["column"]))}
