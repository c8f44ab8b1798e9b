"""A session without an engine: a script or a notebook that somebody runs by hand.

Nobody tells the broker which cell runs, so the caller's own word is taken (`at` in each call) and the run is
exploratory, whatever the caller says. Executing a cell again is another cell of the record. The run begins with the
first recorded call: who only looks something up leaves nothing behind.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable
from typing import Any

import nbformat

from learngraph_kernel.broker.lookups import Lookups
from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.canonical import decode_value
from learngraph_kernel.evidence.values import InputRecord

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


class InteractiveSession(RunSession):
    """Follows the caller from cell to cell and keeps what it executed as a notebook."""

    def __init__(self, *args: Any, lookups: Lookups, begin: Callable[[], object], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lookups = lookups
        self._begin = begin
        self.begun = False
        self._turn = threading.Lock()  # several processes of one caller: a call belongs to the cell it came with
        self.notebook: Any = nbformat.v4.new_notebook()
        self._here: tuple[str, int] | None = None
        self._names: set[str] = set()

    def call(self, name: str, params: dict[str, Any]) -> Any:
        if name.startswith("lookup."):
            return self._lookups.answer(name, params)
        at = params.get("at") or {"cell": "script", "source": None, "execution": 0}
        here = (str(at.get("cell")), int(at.get("execution") or 0))
        with self._turn:
            if not self.begun:
                self._begin()
                self.begun = True
            if here != self._here:
                self._here = here
                self._enter(*here, str(at.get("source") or ""))
            if name == "input" and at.get("variable"):
                self._take_input(at["variable"])
            return super().call(name, params)

    def _take_input(self, variable: dict[str, Any]) -> None:
        """No plan has bound parameters here: the value that the notebook gives its own variable is the input."""
        name, value = str(variable["name"]), decode_value(variable["value"])
        self.state.book.inputs[name] = InputRecord(name, value)

    def _enter(self, cell: str, execution: int, source: str) -> None:
        name = _UNSAFE.sub("-", cell).strip("-")[:40] or "cell"
        again = (f"{name}-{execution}" if count == 1 else f"{name}-{execution}-{count}" for count in itertools.count(1))
        name = next(candidate for candidate in itertools.chain([name], again) if candidate not in self._names)
        self._names.add(name)
        entry = nbformat.v4.new_code_cell(source)
        entry["id"] = name
        self.notebook.cells.append(entry)
        self.begin_cell(name)
