"""What will run: a notebook, its parameters and its conditions, all checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.data.workspace import Workspace, find_workspace
from learngraph_kernel.errors import Unavailable
from learngraph_kernel.runs.declaration import Declaration, read_declaration
from learngraph_kernel.runs.injection import inject
from learngraph_kernel.runs.limits import CellLimits
from learngraph_kernel.runs.notebook_file import load_notebook
from learngraph_kernel.runs.parameters import bind, spec_of

if TYPE_CHECKING:
    from learngraph_kernel.store.run_record import Origin

DEFAULT_KERNEL = "python3"


class NotIsolated(Unavailable):
    """The workflow may only run in a sandbox, and there is none."""

    code = "not_isolated"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run before it starts.

    Attributes:
        nb: the notebook as it will run, parameters injected.
        path: the notebook's path as given.
        cwd: folder the kernel runs in.
        parameters: JSON values.
        formal: violations stop the run, and it is issued with a tier.
        parent: the run this reruns.

    Raises:
        NotIsolated: the workflow is governed.
    """

    nb: Any
    path: str
    cwd: Path
    workspace: Workspace
    kernel: str
    declaration: Declaration
    parameters: Mapping[str, Any]
    formal: bool = False
    origin: Origin = "notebook"
    parent: str | None = None
    limits: CellLimits = field(default_factory=CellLimits)

    def __post_init__(self) -> None:
        if self.declaration.governed:
            raise NotIsolated(
                "the workflow is governed, so it may only run in a sandbox; this version has host kernels alone",
                where=self.path,
                remedy="set `governed` in metadata.learngraph to false if it may run on the host",
            )

    @property
    def title(self) -> str | None:
        return self.declaration.titled()


def plan_notebook(
    path: Path,
    given: Mapping[str, Any],
    *,
    formal: bool = False,
    kernel: str | None = None,
    cwd: Path | None = None,
    workspace: Path | None = None,
    limits: CellLimits | None = None,
) -> RunPlan:
    """Reads and checks everything a run needs.

    Args:
        path: the notebook file.
        given: parameter values (JSON values, or `RawText` from a command line).
        kernel: kernelspec name; default: the notebook's own.
        cwd: default: the notebook's folder.
        workspace: folder with learngraph.toml; default: found upwards from the notebook.

    Raises:
        BadInput: the notebook, its declaration, a parameter or learngraph.toml is wrong; the message has the place.
        NotIsolated: the workflow is governed.
    """
    nb = load_notebook(path)
    declaration = read_declaration(nb, where=str(path))
    parameters = bind(spec_of(nb, where=str(path)), given, where=str(path))
    return RunPlan(
        nb=inject(nb, parameters) if parameters else nb,
        path=str(path),
        cwd=(cwd or path.parent).resolve(),
        workspace=find_workspace(workspace or path.parent),
        kernel=kernel or nb.metadata.get("kernelspec", {}).get("name") or DEFAULT_KERNEL,
        declaration=declaration,
        parameters=parameters,
        formal=formal,
        limits=limits or CellLimits(),
    )
