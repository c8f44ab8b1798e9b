"""`papermill --engine learngraph`: the plain command, our run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

Command = Callable[..., Any]


def papermill(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "papermill", "--engine", "learngraph", "--no-progress-bar", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_plain_papermill_command_makes_a_sealed_run(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    write_notebook(
        "import learngraph_kernel as lg",
        'lg.query("shop", "select region from orders where id = :n", n=lg.input("n"))',
        parameters="n = 1",
    )
    done = papermill("nb.ipynb", "out.ipynb", "-p", "n", "2", cwd=workspace)
    assert done.returncode == 0, done.stderr
    out = nbformat.read(workspace / "out.ipynb", as_version=4)
    assert "s" in out.cells[-1].outputs[0].data["text/plain"].split()
    run = out.metadata.learngraph_run.run_id
    assert learngraph("verify", run).code == 0
    assert learngraph("rerun", run, "--json").json["same"] is True


def test_an_unknown_parameter_stops_papermill_before_anything_runs(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    write_notebook("1", parameters="week = 1")
    done = papermill("nb.ipynb", "out.ipynb", "-p", "weeek", "2", cwd=workspace)
    assert done.returncode != 0
    assert "did you mean 'week'" in done.stderr
    assert learngraph("list", "--json").json == []


def test_a_failing_cell_fails_papermill_with_the_notebook_saved(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    write_notebook("1 / 0")
    done = papermill("nb.ipynb", "out.ipynb", cwd=workspace)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr
    assert "ZeroDivisionError" in (workspace / "out.ipynb").read_text()
    assert learngraph("list", "--json").json[0]["status"] == "failed"
