"""What starting costs, held by what is imported when (seconds are for benchmarks/)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def modules_after(code: str, *options: str) -> set[str]:
    """Names in `sys.modules` of a new process that ran `code`."""
    code = f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_imports_without_typing() -> None:
    assert "typing" not in modules_after("import learngraph_kernel", "-S")


@pytest.mark.parametrize(
    "heavy", ["duckdb", "pyarrow", "sqlglot", "sqlalchemy", "nbclient", "jupyter_client", "tomlkit", "cryptography"]
)
def test_a_plan_is_made_without(heavy: str) -> None:
    plan = "from learngraph_kernel.runs.plan import find_workspace\nfrom pathlib import Path\n"
    plan += f"assert find_workspace(Path({str(REPOSITORY / 'notebooks')!r})).sources"
    assert heavy not in modules_after(plan)


@pytest.mark.parametrize(
    "heavy", ["duckdb", "pyarrow", "sqlglot", "markdown_it", "learngraph_kernel.evidence.numerals"]
)
def test_a_run_without_calls_needs_no(heavy: str) -> None:
    assert heavy not in modules_after("import learngraph_kernel.runs.lifecycle")


def test_papermill_starts_without_our_runtime() -> None:
    loaded = modules_after("import papermill.engines")
    assert "learngraph_kernel.runs.papermill_engine" in loaded
    assert not loaded & {"learngraph_kernel.runs.launch", "learngraph_kernel.runs.plan", "sqlalchemy"}
