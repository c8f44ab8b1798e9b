"""Running the notebook, reading what it gave, and checking a text against it.

The agent's code runs in the closed box and nowhere else. What comes back is what can be cited: snapshots with their
columns and first rows, metrics with their state; and of a failure the cell, the line and the remedy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from learngraph_kernel.canonical import encode_value
from learngraph_kernel.data.cells import json_value
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.evidence.document import build_document
from learngraph_kernel.evidence.html.notebook import report_text
from learngraph_kernel.evidence.values import Book
from learngraph_kernel.naming import suggestion
from learngraph_kernel.runs.book import book_of_run
from learngraph_kernel.runs.launch import run_plan
from learngraph_kernel.runs.notebook_file import load_notebook
from learngraph_kernel.runs.outcome import RunOutcome
from learngraph_kernel.runs.outputs import canonical_outputs
from learngraph_kernel.runs.plan import plan_notebook
from learngraph_kernel.runs.records import NOTEBOOK
from learngraph_kernel.store.errors import UnknownRun
from learngraph_kernel.tools.builtin.bench import Bench, inside
from learngraph_kernel.tools.builtin.notebooks import SUFFIX
from learngraph_kernel.tools.builtin.schemas import PATH_LENGTH, SOURCE_LENGTH, choice, closed, several, text
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

SHOWN_ROWS = 10
"""Rows of a snapshot that a model sees; it cites all of them by reference."""

_RUN = text("id of a run", longest=40)
_PARAMETER = closed(
    {"name": text("the parameter"), "value": text("its value as typed on a command line", longest=2_000)},
    required=["name", "value"],
)


def run_tools(bench: Bench) -> tuple[Tool, ...]:
    """Run a notebook, read its outputs, check a report."""
    runs = _Runs(bench)
    read = frozenset({Effect.READ})
    return (
        Tool(
            ToolSpec(
                "run_notebook",
                {"en": "Run the notebook", "zh": "运行笔记本"},
                "Runs a notebook from the top in the closed box. Gives the run's id and what can be cited from it.",
                closed(
                    {
                        "path": text("the notebook, relative to the workspace", longest=PATH_LENGTH),
                        "parameters": several(_PARAMETER, "values of its parameters", most=50),
                    },
                    required=["path"],
                ),
                frozenset({Effect.READ, Effect.RUN_CODE}),
                origin="untrusted",
            ),
            runs.run,
        ),
        Tool(
            ToolSpec(
                "read_outputs",
                {"en": "Read outputs", "zh": "读取输出"},
                "What the cells of a run printed and showed, as text.",
                closed({"run_id": _RUN, "cell": text("only this cell", longest=64)}, required=["run_id"]),
                read,
                origin="untrusted",
            ),
            runs.outputs,
        ),
        Tool(
            ToolSpec(
                "check_report",
                {"en": "Check a report", "zh": "检查报告"},
                "Fills the citations of a text from a run and says what in it has no evidence, before you answer.",
                closed(
                    {
                        "run_id": _RUN,
                        "text": text("Markdown with citations", longest=SOURCE_LENGTH),
                        "language": choice("language of the text", ["en", "zh"]),
                    },
                    required=["run_id", "text"],
                ),
                read,
            ),
            runs.check,
        ),
    )


class _Runs:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        from learngraph_kernel.runs.parameter_text import RawText

        root = context.scope.workspace
        path = inside(root, arguments["path"], suffix=SUFFIX)
        given = {item["name"]: RawText(item["value"]) for item in arguments.get("parameters", [])}
        plan = await asyncio.to_thread(
            lambda: replace(plan_notebook(path, given, workspace=root, sandbox=self._bench.isolation), origin="chat")
        )
        progress = _Shown(context)
        try:
            outcome = await run_plan(
                plan,
                progress=progress,
                home=self._bench.home,
                actor=context.scope.owner,
                on_begin=progress.began,
                signals=False,
            )
        finally:
            await progress.finish()
        return await asyncio.to_thread(self._told, outcome, arguments["path"])

    def _told(self, outcome: RunOutcome, path: str) -> ToolResult:
        book = book_of_run(self._bench.store, self._bench.home, outcome.run_id)
        data: dict[str, Any] = {
            "run_id": outcome.run_id,
            "path": path,
            "state": outcome.status,
            "isolation": outcome.isolation,
            "citable": citable(book),
        }
        if outcome.violations:
            data["violations"] = [
                {"text": item["text"], "message": item["message"], "suggestion": item.get("suggestion")}
                for item in outcome.violations
            ]
        if outcome.error is not None:
            data |= {key: outcome.error.get(key) for key in ("code", "reason", "place", "remedy")}
        done = outcome.status in ("completed", "withheld")
        return ToolResult("ok" if done else "error", data, {"run_id": outcome.run_id, "notebook": path})

    async def outputs(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await asyncio.to_thread(
            self._outputs, arguments["run_id"], arguments.get("cell"), context.scope.owner, context.scope.workspace
        )
        return ToolResult("ok", data)

    def _outputs(self, run_id: str, wanted: str | None, owner: str, root: Path) -> dict[str, Any]:
        self._own(run_id, owner, root)
        nb = load_notebook(self._bench.home.runs / run_id / NOTEBOOK)
        ids = [cell.id for cell in nb.cells]
        if wanted is not None and wanted not in ids:
            raise BadInput(f"the run has no cell {wanted!r}", remedy=suggestion(wanted, ids, kind="cells"))
        cells = [cell for cell in nb.cells if cell.cell_type == "code" and wanted in (None, cell.id)]
        return {"run_id": run_id, "cells": [{"id": cell.id, "outputs": _texts(cell)} for cell in cells]}

    async def check(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        data = await asyncio.to_thread(self._check, arguments, context.scope.owner, context.scope.workspace)
        return ToolResult("ok", data)

    def _check(self, arguments: Mapping[str, Any], owner: str, root: Path) -> dict[str, Any]:
        self._own(arguments["run_id"], owner, root)
        book = book_of_run(self._bench.store, self._bench.home, arguments["run_id"])
        document = build_document(arguments["text"], book, language=arguments.get("language", "en"))
        return {
            "text": report_text(document),
            "violations": [
                {"text": item.text, "message": item.message, "suggestion": item.suggestion}
                for item in document.violations
            ],
        }

    def _own(self, run_id: str, owner: str, root: Path) -> None:
        """Raises unless the run is one of this owner in this workspace; a foreign one is told as unknown."""
        record = self._bench.store.run(run_id)
        if record.actor != owner or record.workspace != str(root):
            raise UnknownRun(f"there is no run {run_id}", remedy="give a run_id that run_notebook returned")


class _Shown:
    """The run's cells as progress of the call; sent in order, off the engine's own path."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._sender = asyncio.ensure_future(self._send())

    def began(self, run_id: str) -> None:
        self._tell({"run_id": run_id, "state": "started"})

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        self._tell({"cell": cell.id, "state": "running", "index": index, "total": total})

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        self._tell({"cell": cell.id, "state": "completed", "seconds": round(seconds, 3)})

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        self._tell({"cell": cell.id, "state": "failed", "reason": error.what})

    async def finish(self) -> None:
        """Everything told so far is sent."""
        self._queue.put_nowait(None)
        await self._sender

    def _tell(self, data: dict[str, Any]) -> None:
        self._queue.put_nowait({"call_id": self._context.ticket.call_id, **data})

    async def _send(self) -> None:
        while (data := await self._queue.get()) is not None:
            await self._context.emit("tool_progress", data)


def citable(book: Book) -> dict[str, Any]:
    """What a text may cite of a run, with how to write it: snapshots, metrics, inputs, passages."""
    return {
        "snapshots": {ref: _snapshot(ref, reader) for ref, reader in book.snapshots.items()},
        "metrics": {
            f"[[m:{metric.name}]]": {
                "title": dict(metric.title),
                "state": metric.state,
                "value": encode_value(metric.value),
                "unit": metric.unit,
                "reason": metric.reason,
            }
            for metric in book.metrics.values()
        },
        "inputs": {f"[[i:{name}]]": encode_value(item.value) for name, item in book.inputs.items()},
        "passages": {ref: {"document": item.document, "text": item.text} for ref, item in book.passages.items()},
    }


def _snapshot(ref: str, reader: Any) -> dict[str, Any]:
    info = reader.info
    names = [column.name for column in info.columns]
    return {
        "source": info.source,
        "columns": names,
        "row_count": info.row_count,
        "truncated": info.truncated,
        "rows": [[json_value(value) for value in row] for row in reader.rows(0, SHOWN_ROWS)],
        "cite": f"[[v:{ref}.r0.{names[0]}]]" if names else None,
    }


def _texts(cell: Any) -> list[str]:
    """The outputs of a cell as text; of a picture its kind alone."""
    texts = []
    for output in canonical_outputs(cell):
        if output.get("output_type") == "stream":
            texts.append(str(output["text"]))
        elif output.get("output_type") == "error":
            texts.append(f"{output.get('ename')}: {output.get('evalue')}")
        else:
            data = output.get("data", {})
            texts.append(str(data.get("text/plain") or f"[{', '.join(sorted(data))}]"))
    return texts
