"""What will run: a notebook, its parameters and its conditions, all checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from learngraph_kernel.data.workspace import Workspace, find_workspace
from learngraph_kernel.runs.declaration import Declaration, read_declaration
from learngraph_kernel.runs.injection import inject
from learngraph_kernel.runs.limits import CellLimits
from learngraph_kernel.runs.notebook_file import load_notebook
from learngraph_kernel.runs.parameters import bind, spec_of
from learngraph_kernel.runs.placement import SandboxChoice, not_isolated, place

if TYPE_CHECKING:
    from learngraph_kernel.store.run_record import Origin


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
        sandbox: `auto`, `docker` or `host`.
        image: the only image the box may run (of the run this repeats); None: the present one.

    Raises:
        NotIsolated: the workflow is governed, and the plan would let it run on the host.
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
    sandbox: SandboxChoice = "auto"
    image: str | None = None

    def __post_init__(self) -> None:
        if self.declaration.governed and self.sandbox != "docker":
            raise not_isolated(self.path)

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
    sandbox: SandboxChoice = "auto",
) -> RunPlan:
    """Reads and checks everything a run needs.

    Args:
        path: the notebook file.
        given: parameter values (JSON values, or `RawText` from a command line).
        kernel: kernelspec name; default: the notebook's own.
        cwd: default: the notebook's folder.
        workspace: folder with learngraph.toml; default: found upwards from the notebook.
        sandbox: the closed box, the host, or the box if there is one.

    Raises:
        BadInput: the notebook, its declaration, a parameter or learngraph.toml is wrong; the message has the place.
        NotIsolated: the workflow is governed.
    """
    nb = load_notebook(path)
    declaration = read_declaration(nb, where=str(path))
    placed = place(nb, kernel=kernel, sandbox=sandbox, governed=declaration.governed, where=str(path))
    parameters = bind(spec_of(nb, where=str(path)), given, where=str(path))
    return RunPlan(
        nb=inject(nb, parameters) if parameters else nb,
        path=str(path),
        cwd=(cwd or path.parent).resolve(),
        workspace=find_workspace(workspace or path.parent),
        kernel=placed.kernel,
        sandbox=placed.sandbox,
        declaration=declaration,
        parameters=parameters,
        formal=formal,
        limits=limits or CellLimits(),
    )
