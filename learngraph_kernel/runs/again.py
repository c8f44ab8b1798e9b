"""Plans made from records: what `resume` and `rerun` need of an earlier run.

The notebook, its parameters and its conditions come from the run's first event, not from the files they were read from
then: those may have changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from learngraph_kernel.canonical import decode_value
from learngraph_kernel.data.workspace import Workspace, find_workspace
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.runs.declaration import read_declaration
from learngraph_kernel.runs.limits import CellLimits
from learngraph_kernel.runs.notebook_file import parse_notebook
from learngraph_kernel.runs.outcome import RunOutcome
from learngraph_kernel.runs.placement import SandboxChoice, place
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home


class NotRerunnable(BadInput):
    """The run has nothing that could run again."""

    code = "not_rerunnable"


def plan_of_run(
    run_id: str, *, rerun: bool = False, limits: CellLimits | None = None, home: Home | None = None
) -> RunPlan:
    """The plan of a recorded run.

    Args:
        run_id: an existing run.
        rerun: the plan is for a new run that repeats it, not for going on with it.
        limits: what a cell may use this time; the ledger does not keep what it could use then.
        home: where the run is kept; None: the environment's.

    Raises:
        UnknownRun: there is none by that id.
        NotRerunnable: it was recorded from a script or by hand, so there is no notebook that an engine could run.
    """
    with Store.open(home or Home.default()) as store:
        record = store.run(run_id)
        started = first_event(store, run_id)
        nb = parse_notebook(store.artifacts.read(started["source"]).decode(), where=f"{run_id}, source")
    if not started["kernel"]:
        raise NotRerunnable(
            f"run {run_id} was recorded by hand, cell by cell",
            remedy="save the notebook and run it with `learngraph run`",
        )
    declaration = read_declaration(nb, where=f"{run_id}, source")
    sandbox: SandboxChoice = "docker" if started["isolation"] == "docker" else "host"
    return RunPlan(
        nb=nb,
        path=record.notebook or started["notebook"],
        cwd=_folder(started["cwd"], rerun),
        workspace=_workspace(record.workspace, rerun),
        kernel=started["kernel"],
        # Where it ran is part of what it was: no other isolation and no other image will do.
        sandbox=place(nb, kernel=None, sandbox=sandbox, governed=declaration.governed, where=run_id).sandbox,
        image=started["image"],
        declaration=declaration,
        parameters=decode_value(started["parameters"]),
        formal=started["formal"],
        origin="rerun" if rerun else started["origin"],
        parent=run_id if rerun else started["parent"],
        limits=limits or CellLimits(),
    )


def finish_closed(run_id: str, *, actor: str, home: Home | None = None) -> RunOutcome | None:
    """Seals a run that completed but was killed before its seal or before its copies for people were written.

    Returns:
        How it ended; None when the run is not in that state, and is to be resumed or refused.

    Raises:
        UnknownRun: there is none by that id.
        SealIncomplete: an artifact that the ledger names is gone.
    """
    from learngraph_kernel.runs.closing import copied, finish_run

    home = home or Home.default()
    with Store.open(home) as store:
        record = store.run(run_id)
        if record.status not in ("completed", "withheld"):
            return None
        if record.seal is not None and copied(store, home, run_id):
            return None
        return finish_run(store, home, run_id, actor=actor)


def first_event(store: Store, run_id: str) -> dict[str, Any]:
    """The data of the run's `run.started`. Raises LearnGraphError when the ledger has no such event."""
    for event in store.ledger.events(run_id):
        if event.type == "run.started":
            return dict(event.data)
        break
    raise LearnGraphError(f"the ledger of {run_id} does not begin with run.started", remedy="run `learngraph doctor`")


def _folder(cwd: str, rerun: bool) -> Path:
    """Where the kernel ran; a rerun needs nothing of that folder, so it may be gone."""
    folder = Path(cwd)
    if folder.is_dir():
        return folder
    if rerun:
        return Path.cwd()
    raise BadInput("the folder the run was started in is gone", where=cwd, remedy="restore it, or start a new run")


def _workspace(root: str | None, rerun: bool) -> Workspace:
    """The workspace as it is now; a rerun asks no source, so an empty one will do."""
    if rerun and (root is None or not Path(root).is_dir()):
        return Workspace(Path.cwd(), {})
    return find_workspace(Path(root) if root else Path.cwd())
