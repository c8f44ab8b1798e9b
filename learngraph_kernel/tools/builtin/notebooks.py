"""Writing the notebook that answers: whole, cell by cell, and read back.

A change names the revision it was made for (sha256 of the file's bytes), so a notebook that a person has changed in
between is never written over. A notebook that is open in a browser is left alone: its live document is the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.errors import BadInput
from learngraph_kernel.naming import suggestion
from learngraph_kernel.runs.declaration import read_declaration
from learngraph_kernel.runs.folder import replace_file
from learngraph_kernel.runs.notebook_file import load_notebook, notebook_text, parse_notebook
from learngraph_kernel.tools.builtin.bench import Bench, inside
from learngraph_kernel.tools.builtin.schemas import (
    PATH_LENGTH,
    SOURCE_LENGTH,
    choice,
    closed,
    maybe_empty,
    several,
    text,
)
from learngraph_kernel.tools.values import CallContext, Effect, Tool, ToolResult, ToolSpec

MOST_CELLS = 200
SUFFIX = ".ipynb"
_PATH = text("the notebook, relative to the workspace, e.g. answers/week.ipynb", longest=PATH_LENGTH)
_REVISION = text("the notebook's revision, as the last write or read gave it", longest=64)
_CELL = closed(
    {
        "id": text("short name of the cell: letters, digits, - and _", longest=64),
        "type": choice("kind of cell", ["code", "markdown"]),
        "source": maybe_empty("the cell's text", longest=SOURCE_LENGTH),
        "tags": several(text("a tag", longest=40), "cell tags, e.g. parameters", most=8),
    },
    required=["id", "type", "source"],
)


class RevisionChanged(BadInput):
    """The notebook is not the one the change was made for."""

    code = "revision_changed"


class NotebookOpen(BadInput):
    """The notebook is open in a browser; a change goes through the live document."""

    code = "notebook_open"


class UnknownCell(BadInput):
    """The notebook has no cell of that id."""

    code = "unknown_cell"


def notebook_tools(bench: Bench) -> tuple[Tool, ...]:
    """Write, edit and read notebooks."""
    notebooks = _Notebooks(bench)
    write = frozenset({Effect.WRITE_NOTEBOOK})
    return (
        Tool(
            ToolSpec(
                "write_notebook",
                {"en": "Write a notebook", "zh": "编写笔记本"},
                "Writes a whole notebook. Cells use `import learngraph_kernel as lg`; parameters stand in a code cell "
                "tagged `parameters`. To replace one that exists, give its revision.",
                closed(
                    {
                        "path": _PATH,
                        "title": text("what it answers"),
                        "cells": several(_CELL, "the cells in order", most=MOST_CELLS, least=1),
                        "revision": _REVISION,
                    },
                    required=["path", "title", "cells"],
                ),
                write,
            ),
            notebooks.write,
        ),
        Tool(
            ToolSpec(
                "edit_cells",
                {"en": "Edit cells", "zh": "编辑单元格"},
                "Replaces, inserts (after a cell, or at the start) or deletes single cells; all of the edits or none.",
                closed(
                    {
                        "path": _PATH,
                        "revision": _REVISION,
                        "edits": several(
                            closed(
                                {
                                    "op": choice("what to do", ["replace", "insert", "delete"]),
                                    "id": text("cell to replace or delete, or the new cell's id", longest=64),
                                    "after": text("insert after this cell; left out: at the start", longest=64),
                                    "type": choice("kind of cell", ["code", "markdown"]),
                                    "source": maybe_empty("the cell's text", longest=SOURCE_LENGTH),
                                },
                                required=["op", "id"],
                            ),
                            "the edits in order",
                            most=50,
                            least=1,
                        ),
                    },
                    required=["path", "revision", "edits"],
                ),
                write,
            ),
            notebooks.edit,
        ),
        Tool(
            ToolSpec(
                "read_notebook",
                {"en": "Read a notebook", "zh": "读取笔记本"},
                "The cells of a notebook (without outputs) and its revision.",
                closed({"path": _PATH}, required=["path"]),
                frozenset({Effect.READ}),
                origin="untrusted",
            ),
            notebooks.read,
        ),
    )


class _Notebooks:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def write(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = inside(context.scope.workspace, arguments["path"], suffix=SUFFIX)
        nb = _notebook(arguments["title"], arguments["cells"], where=arguments["path"])
        return await self._changed(path, arguments, context, lambda old: nb)

    async def edit(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = inside(context.scope.workspace, arguments["path"], suffix=SUFFIX)

        def edited(old: bytes | None) -> Any:
            if old is None:
                raise BadInput("there is no such notebook", where=arguments["path"], remedy="write it first")
            nb = parse_notebook(old.decode(), where=arguments["path"])
            for edit in arguments["edits"]:
                _apply(nb, edit, arguments["path"])
            return nb

        return await self._changed(path, arguments, context, edited)

    async def _changed(
        self, path: Path, arguments: Mapping[str, Any], context: CallContext, change: Callable[[bytes | None], Any]
    ) -> ToolResult:
        if self._bench.open_path(path):
            raise NotebookOpen(
                "the notebook is open in a browser", where=arguments["path"], remedy="edit its live document instead"
            )
        revision, cells = await asyncio.to_thread(_write, path, arguments["path"], arguments.get("revision"), change)
        await context.emit("artifact", {"kind": "notebook", "path": arguments["path"], "revision": revision})
        return ToolResult("ok", {"path": arguments["path"], "revision": revision, "cells": cells})

    async def read(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = inside(context.scope.workspace, arguments["path"], suffix=SUFFIX)
        return ToolResult("ok", await asyncio.to_thread(_read, path, arguments["path"]))


def _read(path: Path, name: str) -> dict[str, Any]:
    nb = load_notebook(path)
    cells = [
        {"id": cell.id, "type": cell.cell_type, "source": cell.source, "tags": cell.metadata.get("tags", [])}
        for cell in nb.cells
    ]
    return {"path": name, "revision": sha256_hex(path.read_bytes()), "cells": cells}


def _notebook(title: str, cells: list[Mapping[str, Any]], *, where: str) -> Any:
    import nbformat.v4

    ids = [cell["id"] for cell in cells]
    twice = next((id for id in ids if ids.count(id) > 1), None)
    if twice is not None:
        raise BadInput(f"two cells have the id {twice!r}", where=where, remedy="give every cell its own id")
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "learngraph": {"title": {"en": title}},
    }
    return nbformat.v4.new_notebook(cells=[_cell(cell) for cell in cells], metadata=metadata)


def _cell(body: Mapping[str, Any]) -> Any:
    import nbformat.v4

    make: Any = nbformat.v4.new_code_cell if body["type"] == "code" else nbformat.v4.new_markdown_cell
    metadata = {"tags": list(body["tags"])} if body.get("tags") else {}
    return make(source=body["source"], id=body["id"], metadata=metadata)


def _apply(nb: Any, edit: Mapping[str, Any], where: str) -> None:
    """One edit on the notebook in memory."""
    ids = [cell.id for cell in nb.cells]
    if edit["op"] == "insert":
        if edit["id"] in ids:
            raise BadInput(f"there is a cell {edit['id']!r} already", where=where, remedy="give the new one another id")
        position = 0 if "after" not in edit else _index(ids, edit["after"], where) + 1
        body = {"id": edit["id"], "type": edit.get("type", "code"), "source": edit.get("source", "")}
        nb.cells.insert(position, _cell(body))
        return
    position = _index(ids, edit["id"], where)
    if edit["op"] == "delete":
        del nb.cells[position]
        return
    if "source" not in edit:
        raise BadInput(f"the edit of {edit['id']!r} has no source", where=where, remedy="give the cell's new text")
    old = nb.cells[position]
    kind = edit.get("type", old.cell_type)
    nb.cells[position] = _cell({"id": old.id, "type": kind, "source": edit["source"], "tags": old.metadata.get("tags")})


def _index(ids: list[str], id: str, where: str) -> int:
    if id not in ids:
        raise UnknownCell(f"there is no cell {id!r}", where=where, remedy=suggestion(id, ids, kind="cells"))
    return ids.index(id)


def _write(path: Path, name: str, revision: str | None, change: Callable[[bytes | None], Any]) -> tuple[str, list[str]]:
    """Writes what a change makes of the file, if it is still the one that was meant; reads it back."""
    old = path.read_bytes() if path.is_file() else None
    found = None if old is None else sha256_hex(old)
    if found != revision:
        raise RevisionChanged(
            "there is another notebook of that name"
            if revision is None
            else "the notebook has changed, or is gone, since it was read",
            where=name,
            remedy="read it (read_notebook), and give the revision you then get, or write under another name",
            details={"revision": found},
        )
    nb = change(old)
    read_declaration(nb, where=name)
    data = notebook_text(nb).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [data])
    return sha256_hex(path.read_bytes()), [cell.id for cell in nb.cells]
