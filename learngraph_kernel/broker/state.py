"""The evidence of one run while it runs: what has been asked, answered and issued so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.broker.box import HOST, Isolation
from learngraph_kernel.data.source import Source
from learngraph_kernel.data.workspace import Workspace
from learngraph_kernel.evidence.values import Book
from learngraph_kernel.models.port import ModelAdapter
from learngraph_kernel.store.artifacts import ArtifactStore
from learngraph_kernel.store.home import Home

if TYPE_CHECKING:
    from learngraph_kernel.evidence.metrics import Rule


def _as_it_is(path: Path) -> Path:
    """A kernel on the host reads the runtime's own files."""
    return path


@dataclass(slots=True)
class RunState:
    """What the broker's methods work on.

    Attributes:
        book: everything citable.
        formal: whether violations stop the run.
        language: of what is shown to people.
        open_model: gives the configured model adapter; called on the first `lg.ask`.
        max_repairs: how often a model's text goes back for repair.
        metric_pins: metric set → metric → pinned version of its card.
        on_newer_metric: what a newer version of a pinned card means; None is no answer.
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
    book: Book
    formal: bool
    language: str
    open_model: Callable[[], ModelAdapter]
    max_repairs: int
    metric_pins: Mapping[str, Mapping[str, str]]
    on_newer_metric: Rule | None
    cards: str | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    output: dict[str, Any] | None = None
    violations: list[dict[str, Any]] = field(default_factory=list)
    isolation: Isolation = HOST
    grant: Callable[[Path], Path] = _as_it_is

    def source(self, name: str) -> Source:
        """The source by name. Raises UnknownSource or Unavailable."""
        return self.workspace.open_source(name, self.home.root)
