"""What is checked before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from learngraph_kernel.runs.placement import NotIsolated
from learngraph_kernel.runs.plan import plan_notebook


def test_a_governed_workflow_refuses_to_run_on_the_host(write_notebook: Callable[..., Path]) -> None:
    path = write_notebook("1", metadata={"governed": True})
    with pytest.raises(NotIsolated, match="closed box") as caught:
        plan_notebook(path, {}, sandbox="host")
    assert caught.value.where == str(path)
