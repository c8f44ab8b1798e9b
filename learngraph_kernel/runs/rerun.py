"""Running a run again from its recorded inputs alone, and comparing what came out.

Queries and model answers are taken from the record; everything else (the notebook's code, metric evaluations, the
report) happens again. The two content documents must then be the same, or the differences are listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from learngraph_kernel.actor import current_actor
from learngraph_kernel.broker.recording import Recording, load_inline
from learngraph_kernel.runs.content import explain_difference
from learngraph_kernel.runs.engine import CellObserver
from learngraph_kernel.runs.launch import launched, stoppable
from learngraph_kernel.runs.outcome import RunOutcome
from learngraph_kernel.runs.plan import RunPlan

if TYPE_CHECKING:
    from learngraph_kernel.store.home import Home


@dataclass(frozen=True, slots=True)
class Comparison:
    """A rerun beside its original.

    Attributes:
        same: the content hashes agree.
        differences: one line each; empty when `same`.
    """

    original: str
    original_hash: str | None
    outcome: RunOutcome
    same: bool
    differences: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """What `learngraph rerun --json` prints."""
        return {
            **self.outcome.as_json(),
            "original": self.original,
            "original_content_hash": self.original_hash,
            "same": self.same,
            "differences": self.differences,
        }


async def rerun(
    plan: RunPlan, *, progress: CellObserver, home: Home | None = None, actor: str | None = None, signals: bool = True
) -> Comparison:
    """Reruns `plan.parent` (see `again.plan_of_run(..., rerun=True)`) and compares; arguments as of `run_plan`.

    Raises:
        LearnGraphError: it could not begin.
    """
    from learngraph_kernel.store.run_record import new_run_id

    assert plan.parent is not None
    run_id = new_run_id()
    async with launched(plan, run_id) as (kernel, secret):
        from learngraph_kernel.runs.lifecycle import Lifecycle
        from learngraph_kernel.store.database import Store
        from learngraph_kernel.store.home import Home as DefaultHome

        place = home or DefaultHome.default()
        with Store.open(place) as store:
            recording = Recording.from_events(store.ledger.events(plan.parent), store.artifacts)
            life = Lifecycle(
                store,
                place,
                plan,
                kernel,
                secret=secret,
                progress=progress,
                actor=actor or current_actor(),
                recording=recording,
                cards=_recorded_cards(recording),
            )
            work = life.run(run_id)
            outcome = await (stoppable(work) if signals else work)
            return _compare(store, plan.parent, outcome)


def _recorded_cards(recording: Recording) -> str | None:
    """The metric cards the original evaluated with; None when it evaluated none."""
    for call in recording.calls.values():
        if call.method == "metrics" and call.error is None:
            return str(call.result["cards"])
    return None


def content_of(store: Any, run_id: str) -> dict[str, Any] | None:
    """The content document of a run that has ended, or None."""
    content = None
    for event in store.ledger.events(run_id, types=["run.completed"]):
        content = event.data.get("content")
    return None if content is None else load_inline({"$artifact": content}, store.artifacts)


def _compare(store: Any, original: str, outcome: RunOutcome) -> Comparison:
    before, after = content_of(store, original), content_of(store, outcome.run_id)
    original_hash = store.run(original).content_hash
    if before is None or after is None:
        reason = "the original run never completed" if before is None else "the rerun did not complete"
        return Comparison(original, original_hash, outcome, False, [reason])
    differences = explain_difference(before, after)
    return Comparison(original, original_hash, outcome, not differences, differences)
