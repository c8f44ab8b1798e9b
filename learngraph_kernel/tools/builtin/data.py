"""Looking at data: which sources there are, what their tables hold, what a statement gives, which metrics are defined.

A preview is for the model to find its way: its rows carry no reference, so nothing in it can be cited. What an answer
rests on is asked again in the notebook, where it becomes a snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.data.source import Source, TableInfo
from learngraph_kernel.data.workspace import Workspace, load_workspace
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.naming import suggestion
from learngraph_kernel.store.home import Home
from learngraph_kernel.tools.builtin.bench import Bench
from learngraph_kernel.tools.builtin.schemas import SOURCE_LENGTH, closed, several, text, whole
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

if TYPE_CHECKING:
    from learngraph_kernel.data.snapshots import Artifacts
    from learngraph_kernel.evidence.metrics import MetricCard

MOST_TABLES = 16
LISTED_TABLES = 500
READ = frozenset({Effect.READ})


class UnknownSet(BadInput):
    """The workspace has no metric set of that name."""

    code = "unknown_metric_set"


class UnknownTable(BadInput):
    """The source has no table of that name."""

    code = "unknown_table"


def data_tools(bench: Bench) -> tuple[Tool, ...]:
    """Sources, tables, previews and metric cards."""
    data = _Data(bench)
    return (
        Tool(
            ToolSpec(
                "list_sources",
                {"en": "List sources", "zh": "列出数据源"},
                "The declared data sources with their tables.",
                closed({}),
                READ,
            ),
            data.list_sources,
        ),
        Tool(
            ToolSpec(
                "look",
                {"en": "Look at tables", "zh": "查看表结构"},
                "Columns and types of tables of a source. Names you do not see here do not exist.",
                closed(
                    {
                        "source": text("name of a source"),
                        "tables": several(text("a table's name"), "tables to look at", most=MOST_TABLES, least=1),
                    },
                    required=["source", "tables"],
                ),
                READ,
            ),
            data.look,
        ),
        Tool(
            ToolSpec(
                "query",
                {"en": "Preview a query", "zh": "预览查询"},
                "Runs a read-only statement and shows its first rows, to find your way. Its numbers cannot be cited: "
                "what the answer rests on goes into the notebook as lg.query.",
                closed(
                    {
                        "source": text("name of a source"),
                        "sql": text("one SELECT statement in the source's dialect", longest=SOURCE_LENGTH),
                        "limit": whole("rows to show", least=1, most=50, default=20),
                    },
                    required=["source", "sql"],
                ),
                READ,
                origin="untrusted",
            ),
            data.query,
        ),
        Tool(
            ToolSpec(
                "list_metrics",
                {"en": "List metrics", "zh": "列出指标"},
                "Metric sets with their cards: what each means, its unit, and the snapshots and inputs it needs. "
                "Prefer a card over your own formula.",
                closed({"set": text("only this set")}),
                READ,
            ),
            data.list_metrics,
        ),
    )


def workspace_overview(root: Path, home: Home) -> tuple[list[dict[str, Any]], list[str]]:
    """A line for each source, and the names of the metric sets: what a prompt says of a workspace. Blocks.

    Returns: (`{"name", "kind", "tables"}` or `{"name", "reason"}` each, names).
    """
    lines: list[dict[str, Any]] = []
    workspace = load_workspace(root)
    try:
        for name, config in workspace.sources.items():
            try:
                tables = len(workspace.open_source(name, home.root).tables())
                lines.append({"name": name, "kind": config.kind, "tables": tables})
            except LearnGraphError as error:
                lines.append({"name": name, "reason": error.what})
    finally:
        workspace.close()
    return lines, sorted(path.stem for path in (root / "metrics").glob("*.yaml"))


class _Data:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def list_sources(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        return ToolResult("ok", await asyncio.to_thread(self._sources, context.scope.workspace))

    def _sources(self, root: Path) -> dict[str, Any]:
        with self._bench.workspace(root) as workspace:
            return {"sources": [self._source(workspace, name) for name in workspace.sources]}

    def _source(self, workspace: Workspace, name: str) -> dict[str, Any]:
        """One source; one that cannot be opened says why, and the others are still told."""
        try:
            source = workspace.open_source(name, self._bench.home.root)
            tables = source.tables()
        except LearnGraphError as error:
            return {"name": name, "state": "unavailable", "reason": error.what, "remedy": error.remedy}
        body: dict[str, Any] = {"name": name, "kind": source.kind, "dialect": source.dialect}
        body["tables"] = [table.name for table in tables[:LISTED_TABLES]]
        return body if len(tables) <= LISTED_TABLES else {**body, "tables_in_all": len(tables)}

    async def look(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        return ToolResult(
            "ok",
            await asyncio.to_thread(
                self._look, context.scope.workspace, arguments["source"], list(arguments["tables"])
            ),
        )

    def _look(self, root: Path, name: str, wanted: Sequence[str]) -> dict[str, Any]:
        with self._bench.workspace(root) as workspace:
            source = workspace.open_source(name, self._bench.home.root)
            known = {table.name: table for table in source.tables()}
            return {
                "source": name,
                "dialect": source.dialect,
                "tables": [_table(known, table, name) for table in wanted],
            }

    async def query(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        rows = int(arguments.get("limit", 20))
        data = await asyncio.to_thread(
            self._query, context.scope.workspace, arguments["source"], arguments["sql"], rows
        )
        return ToolResult("ok", data)

    def _query(self, root: Path, name: str, sql: str, limit: int) -> dict[str, Any]:
        with self._bench.workspace(root) as workspace:
            source = workspace.open_source(name, self._bench.home.root)
            return preview(source, sql, limit, self._bench.store.artifacts)

    async def list_metrics(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await asyncio.to_thread(_metrics, context.scope.workspace, arguments.get("set"))
        return ToolResult("ok", data)


def _table(known: Mapping[str, TableInfo], name: str, source: str) -> dict[str, Any]:
    if name not in known:
        raise UnknownTable(
            f"there is no table {name!r}", where=f"source {source}", remedy=suggestion(name, known, kind="tables")
        )
    table = known[name]
    body: dict[str, Any] = {"name": name, "columns": [[column.name, column.type] for column in table.columns]}
    return body if table.rows is None else {**body, "rows": table.rows}


def preview(source: Source, sql: str, limit: int, artifacts: Artifacts) -> dict[str, Any]:
    """The first rows of a guarded statement.

    Returns: `columns` ([name, type] each), `rows` (JSON values, at most `limit`), `more`: whether there are others.

    Raises:
        LearnGraphError: the guard or the engine refused it.
    """
    from learngraph_kernel.data.cells import json_value
    from learngraph_kernel.data.snapshots import take_snapshot

    limits = replace(source.limits, rows=min(limit, source.limits.rows))
    snapshot = take_snapshot(source, sql, artifacts=artifacts, ref="Q1", limits=limits)
    return {
        "columns": [[column.name, column.type] for column in snapshot.info.columns],
        "rows": [[json_value(value) for value in row] for row in snapshot.rows(0, limit)],
        "more": snapshot.info.truncated is not None,
    }


def _metrics(root: Path, wanted: str | None) -> dict[str, Any]:
    from learngraph_kernel.evidence.metrics import library_of, read_card_texts

    library = library_of(read_card_texts(root / "metrics"))
    if wanted is not None and wanted not in library.sets:
        raise UnknownSet(
            f"there is no metric set {wanted!r}", remedy=suggestion(wanted, library.sets, kind="metric sets")
        )
    sets = {name: cards for name, cards in sorted(library.sets.items()) if wanted in (None, name)}
    return {"sets": {name: [_card(card) for card in cards] for name, cards in sets.items()}}


def _card(card: MetricCard) -> dict[str, Any]:
    return {
        "name": card.name,
        "version": card.version,
        "title": dict(card.title),
        "description": card.description,
        "unit": card.unit,
        "expression": card.expression.text,
        "inputs": {item.name: item.text for item in card.inputs},
        "snapshots": list(card.snapshots),
    }
