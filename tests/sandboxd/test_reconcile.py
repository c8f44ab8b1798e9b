"""What reconciliation decides, from labels and rows alone."""

from __future__ import annotations

from typing import Any

import pytest

from learngraph_kernel.sandboxd.engine_port import ContainerFacts
from learngraph_kernel.sandboxd.reconcile import Plan, plan

NOW = 10_000.0


def container(name: str, kind: str, row: str, *, running: bool = True, age: float = 1_000) -> ContainerFacts:
    labels = {"learngraph.kind": kind, "learngraph.sandbox": row, "learngraph.created": str(int(NOW - age))}
    return ContainerFacts(name, labels, running, None if running else 1)


def kernel(state: str, container: str | None) -> dict[str, Any]:
    return {"id": "k1", "state": state, "container": container}


def box(state: str, container: str | None) -> dict[str, Any]:
    return {"id": "s1", "state": state, "container": container}


CASES = {
    "nothing there": ([], [], [], (), False, Plan()),
    "an orphan goes": ([container("c", "workspace", "s9")], [], [], (), False, Plan(remove=["c"])),
    "a young one may be on its way": ([container("c", "workspace", "s9", age=5)], [], [], (), False, Plan()),
    "at the start a young one is nobody's": (
        [container("c", "workspace", "s9", age=5)], [], [], (), True, Plan(remove=["c"]),
    ),
    "a held one stays": ([container("c", "workspace", "s1")], [box("warm_idle", "c")], [], ("c",), False, Plan()),
    "a row without its container is cold": ([], [box("warm_idle", "c")], [], (), False, Plan(cold=[("s1", "c")])),
    "a start under way is left alone": ([], [box("starting", None)], [], (), False, Plan()),
    "a running kernel survives the start": (
        [container("c", "kernel", "k1")], [], [kernel("running", "c")], (), True, Plan(),
    ),
    "a kernel that ended is noted and removed": (
        [container("c", "kernel", "k1", running=False)], [], [kernel("running", "c")], (), False,
        Plan(exited=[("k1", 1)], remove=["c"]),
    ),
    "a kernel without container failed": ([], [], [kernel("running", "c")], (), False, Plan(failed=["k1"])),
    "a kernel half started before a crash failed": (
        [container("c", "kernel", "k1", age=5)], [], [kernel("starting", None)], (), True,
        Plan(failed=["k1"], remove=["c"]),
    ),
    "a kernel that is starting keeps its container": (
        [container("c", "kernel", "k1")], [], [kernel("starting", None)], (), False, Plan(),
    ),
    "a warm kernel of an earlier daemon goes": (
        [container("c", "warm-kernel", "k1")], [], [kernel("warm", "c")], (), True, Plan(failed=["k1"], remove=["c"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_plan(case: str) -> None:
    containers, boxes, kernels, held, starting, wanted = CASES[case]
    found = plan(containers, boxes, kernels, held=held, starting=starting, now=NOW)
    assert found == wanted
