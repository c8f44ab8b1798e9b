"""A run's kernel: how it starts, and how it leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.runs.kernel import _without_debugger

Command = Callable[..., Any]


def test_a_file_that_a_cell_left_open_is_flushed_before_the_kernel_goes(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    write_notebook("left_open = open('out.txt', 'w')\n_ = left_open.write('all of it')")
    assert learngraph("run", workspace / "nb.ipynb").code == 0
    assert (workspace / "out.txt").read_text() == "all of it"


def test_exit_handlers_of_cells_run(learngraph: Command, write_notebook: Command, workspace: Path) -> None:
    write_notebook("import atexit, pathlib\n_ = atexit.register(pathlib.Path('left').touch)")
    assert learngraph("run", workspace / "nb.ipynb").code == 0
    assert (workspace / "left").exists()


def test_a_kernel_that_does_not_leave_is_killed(learngraph: Command, write_notebook: Command, workspace: Path) -> None:
    write_notebook("import atexit, os, time\nprint(os.getpid())\n_ = atexit.register(time.sleep, 300)")
    done = learngraph("run", workspace / "nb.ipynb", "-o", workspace / "out.ipynb", timeout=120)
    assert done.code == 0


def test_the_kernel_has_no_debugger_but_cells_may_import_one(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    write_notebook("import sys\nassert 'debugpy' not in sys.modules", "import debugpy\nassert debugpy.__version__")
    assert learngraph("run", workspace / "nb.ipynb").code == 0


def test_a_module_beside_the_notebook_does_not_shadow_what_the_kernel_imports(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    (workspace / "traitlets.py").write_text("raise SystemExit('shadowed')")
    (workspace / "beside.py").write_text("VALUE = 7")
    write_notebook("import beside\nassert beside.VALUE == 7")
    assert learngraph("run", workspace / "nb.ipynb").code == 0


@pytest.mark.parametrize(
    "argv", [["R", "--slave", "-e", "IRkernel::main()"], ["python", "-m", "other_kernel", "-f", "{connection_file}"]]
)
def test_other_kernels_are_started_as_they_say(argv: list[str]) -> None:
    assert _without_debugger(argv) == argv


def test_outside_a_run_an_input_is_the_callers_own_variable(home: Path, workspace: Path) -> None:
    (workspace / "script.py").write_text(
        "import learngraph_kernel as lg\nweek = '2013-W07'\nprint(lg.input('week'))\n"
        "print(lg.report('In [[i:week]].'))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=workspace, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "2013-W07"
    assert "In 2013-W07." in done.stdout


def test_outside_a_run_a_name_without_a_variable_is_refused(home: Path, workspace: Path) -> None:
    (workspace / "script.py").write_text("import learngraph_kernel as lg\nlg.input('week')\n")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=workspace, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0
    assert "no parameter 'week'" in done.stderr
