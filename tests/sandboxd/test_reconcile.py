"""What reconciliation decides, from labels and rows alone."""

from __future__ import annotations

from typing import Any

import pytest

from learngraph_kernel.sandboxd.engine_port import ContainerFacts
from learngraph_kernel.sandboxd.reconcile import Plan, plan


def container(name: str, kind: str, row: str, *, running: bool = True) -> ContainerFacts:
    labels = {"learngraph.kind": kind, "learngraph.sandbox": row}
    return ContainerFacts(name, labels, running, None if running else 1)


def kernel(state: str, container: str | None) -> dict[str, Any]:
    return {"id": "k1", "state": state, "container": container}


def box(state: str, container: str | None) -> dict[str, Any]:
    return {"id": "s1", "state": state, "container": container}


CASES = {
    "nothing there": ([], [], [], (), False, Plan()),
    "an orphan goes": ([container("c", "workspace", "s9")], [], [], (), False, Plan(remove=["c"])),
    "one whose row is starting stays": (
        [container("c", "workspace", "s1")], [box("starting", None)], [], (), False, Plan(),
    ),
    "at the start it is nobody's": (
        [container("c", "workspace", "s1")], [box("starting", None)], [], (), True,
        Plan(remove=["c"], cold=[("s1", None)]),
    ),
    "one of an earlier start goes while another is held": (
        [container("old", "workspace", "s1"), container("c", "workspace", "s1")],
        [box("warm_idle", "c")], [], ("c",), False, Plan(remove=["old"]),
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
        [container("c", "kernel", "k1")], [], [kernel("starting", None)], (), True,
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
    found = plan(containers, boxes, kernels, held=held, starting=starting)
    assert found == wanted
