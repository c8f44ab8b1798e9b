"""The evidence of one run while it runs: what has been asked, answered and issued so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from learngraph_kernel.data.source import Source
from learngraph_kernel.data.workspace import Workspace
from learngraph_kernel.evidence.values import Book, InputRecord
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.runs.declaration import Declaration
from learngraph_kernel.runs.isolation import HOST, Isolation
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.home import Home


def _as_it_is(path: Path) -> Path:
    """A kernel on the host reads the runtime's own files."""
    return path


@dataclass(slots=True)
class RunState:
    """What the broker's methods work on.

    Attributes:
        book: everything citable.
        declaration: what the notebook's metadata promises.
        formal: whether violations stop the run.
        open_model: gives the configured model adapter; called on the first `lg.ask`.
        cards: artifact of the metric cards to evaluate with; None reads them from the workspace. A rerun sets it.
        answers: model answers by reference (`A1`), with the conversation for repairs.
        documents: artifacts of the report documents, in order.
        output: the run's result: `{"values", "references"}`; None until `lg.output`.
        violations: of the last report.
        isolation: where the kernel runs.
        grant: lets the kernel read a file; gives the path it has there.
    """

    run_id: str
    artifacts: ArtifactStore
    workspace: Workspace
    home: Home
    declaration: Declaration
    parameters: dict[str, Any]
    formal: bool
    language: str
    open_model: Callable[[], ModelAdapter]
    book: Book = field(init=False)
    cards: str | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    output: dict[str, Any] | None = None
    violations: list[dict[str, Any]] = field(default_factory=list)
    isolation: Isolation = HOST
    grant: Callable[[Path], Path] = _as_it_is

    def __post_init__(self) -> None:
        spec = self.declaration.parameters
        titles = {} if spec is None else {name: item.title for name, item in spec.parameters.items()}
        self.book = Book(
            run_id=self.run_id,
            inputs={name: InputRecord(name, value, titles.get(name)) for name, value in self.parameters.items()},
        )

    def source(self, name: str) -> Source:
        """The source by name. Raises UnknownSource or Unavailable."""
        return self.workspace.open_source(name, self.home.root)
