"""`papermill --engine learngraph`: papermill's command, our run.

papermill has injected the parameters and owns the output file; the run is recorded, issued and sealed as with
`learngraph run`. Importing papermill costs seconds, so nothing else of ours imports this module; and papermill imports
it with every command, whichever engine that uses, so what only a run of ours needs is imported by the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from papermill.engines import Engine

from learngraph_kernel.errors import LearnGraphError

if TYPE_CHECKING:
    from learngraph_kernel.runs.placement import SandboxChoice
    from learngraph_kernel.runs.plan import RunPlan


class LearnGraphEngine(Engine):  # type: ignore[misc]
    """papermill's engine interface over a run.

    Raises:
        ParameterError: before anything runs, where papermill itself would only warn.
        LearnGraphError: what stopped the run.
    """

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        log_output: bool = False,
        stdout_file: Any = None,
        stderr_file: Any = None,
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        formal: bool = False,
        sandbox: SandboxChoice = "auto",
        **_: Any,
    ) -> None:
        """Runs the notebook that papermill manages, cell by cell.

        Args:
            nb_man: papermill's NotebookExecutionManager; told of every cell.
            execution_timeout: seconds for one cell.
            formal: hold the run to its contract (`execute_notebook(..., formal=True)`).
            sandbox: `auto`, `docker` or `host`, likewise.
        """
        from jupyter_core.utils import run_sync

        from learngraph_kernel.runs.launch import run_plan

        plan = cls.plan(nb_man.nb, kernel_name, execution_timeout, formal, sandbox)
        progress = _Manager(nb_man, log_output)
        outcome = run_sync(run_plan)(plan, progress=progress)  # also from a running event loop
        nb_man.nb.metadata["learngraph_run"] = {"run_id": outcome.run_id, "seal": outcome.seal, "tier": outcome.tier}
        if outcome.error is not None and not progress.cell_has_failed:
            error = outcome.error
            raise RunStopped(error["reason"], where=error.get("place"), remedy=error.get("remedy"))

    @classmethod
    def plan(
        cls,
        nb: Any,
        kernel_name: str,
        execution_timeout: int | None,
        formal: bool,
        sandbox: SandboxChoice = "auto",
    ) -> RunPlan:
        """The plan of a notebook that papermill has parameterised already."""
        from learngraph_kernel.data.workspace import find_workspace
        from learngraph_kernel.runs.declaration import read_declaration
        from learngraph_kernel.runs.injection import with_cell_ids
        from learngraph_kernel.runs.limits import CellLimits
        from learngraph_kernel.runs.parameters import bind, spec_of
        from learngraph_kernel.runs.placement import place
        from learngraph_kernel.runs.plan import RunPlan

        papermill = nb.metadata.get("papermill", {})
        path = str(papermill.get("input_path") or "notebook.ipynb")
        given = papermill.get("parameters") or {}
        folder = Path(path).parent if Path(path).exists() else Path.cwd()
        identified = with_cell_ids(nb)
        nb.cells, nb.nbformat_minor = identified.cells, identified.nbformat_minor
        declaration = read_declaration(nb, where=path)
        own = nb.metadata.get("kernelspec", {}).get("name")
        kernel = None if kernel_name == own else kernel_name  # papermill hands over the notebook's own as well
        placed = place(nb, kernel=kernel, sandbox=sandbox, governed=declaration.governed, where=path)
        return RunPlan(
            nb=nb,
            path=path,
            cwd=Path.cwd(),
            workspace=find_workspace(folder),
            kernel=placed.kernel,
            sandbox=placed.sandbox,
            declaration=declaration,
            parameters=bind(spec_of(nb, where=path), given, where=path),
            formal=formal,
            limits=CellLimits(seconds=execution_timeout),
        )


class RunStopped(LearnGraphError):
    """The run failed; the message is the failure's own."""

    code = "run_stopped"


class _Manager:
    """Tells papermill's manager what happens, so that its bar, its autosave and its metadata work."""

    def __init__(self, nb_man: Any, log_output: bool) -> None:
        self._nb_man = nb_man
        self._log_output = log_output
        self.cell_has_failed = False

    def cell_started(self, cell: Any, index: int, total: int) -> None:
        self._nb_man.cell_start(cell, index)

    def cell_completed(self, cell: Any, index: int, seconds: float) -> None:
        self._nb_man.cell_complete(cell, cell_index=index)
        self._nb_man.autosave_cell()
        if self._log_output:
            for output in cell.outputs:
                print("".join(output.get("text", [])), end="")

    def cell_failed(self, cell: Any, index: int, error: LearnGraphError) -> None:
        self.cell_has_failed = True  # papermill raises its own error for it, after saving
        self._nb_man.cell_exception(cell, cell_index=index, exception=error)
        self._nb_man.cell_complete(cell, cell_index=index)
