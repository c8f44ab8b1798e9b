"""What every test may use: a home of its own, a small workspace, the command, notebooks made in a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

REPOSITORY = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "learngraph_kernel.cli"]


@dataclass(frozen=True)
class Said:
    """What a command printed and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A LEARNGRAPH_HOME for this test alone."""
    folder = tmp_path / "home"
    monkeypatch.setenv("LEARNGRAPH_HOME", str(folder))
    # No daemon but the one that a test starts, also on a machine that has one.
    monkeypatch.setenv("LEARNGRAPH_SANDBOXD", str(tmp_path / "no-sandboxd.sock"))
    monkeypatch.setenv("LEARNGRAPH_HOST_ADDRESSES", "direct")  # the tests' servers are where the tests are
    for variable in ("LEARNGRAPH_BROKER", "LEARNGRAPH_TICKET"):
        monkeypatch.delenv(variable, raising=False)
    return folder


@pytest.fixture
def learngraph(home: Path) -> Callable[..., Said]:
    """Runs the real command in a process of its own."""

    def run(*words: object, cwd: Path | None = None, timeout: float = 120, **environment: str) -> Said:
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


CARDS = """
set: shop
metrics:
  - name: revenue
    version: 1.0.0
    title: {en: Revenue}
    unit: CNY
    precision: 2
    additivity: sum
    inputs: {amount: "sum(orders.amount)"}
    expression: amount
    required: true
    exact: true
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one DuckDB source `shop` (table `orders`: 4 rows, 1,000.50 in all) and one metric card."""
    import duckdb

    root = tmp_path / "workspace"
    (root / "metrics").mkdir(parents=True)
    with duckdb.connect(str(root / "shop.duckdb")) as connection:
        connection.execute("create table orders(id integer, region varchar, amount decimal(18, 2))")
        connection.execute("insert into orders values (1,'n',100.25),(2,'s',200.25),(3,'n',300.00),(4,'e',400.00)")
    (root / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\npath = "shop.duckdb"\n')
    (root / "metrics" / "shop.yaml").write_text(CARDS)
    return root


def notebook(*cells: str, metadata: dict[str, Any] | None = None, parameters: str | None = None) -> Any:
    """A notebook of code cells with the ids `c0`, `c1`, …; `parameters` becomes the tagged first cell."""
    nb = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    if parameters is not None:
        nb.cells.append(nbformat.v4.new_code_cell(parameters, id="parameters", metadata={"tags": ["parameters"]}))
    nb.cells += [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(cells)]
    if metadata is not None:
        nb.metadata["learngraph"] = metadata
    return nb


@pytest.fixture
def write_notebook(workspace: Path) -> Callable[..., Path]:
    """Writes a notebook into the workspace and returns its path."""

    def write(*cells: str, name: str = "nb.ipynb", **options: Any) -> Path:
        path = workspace / name
        path.write_text(nbformat.writes(notebook(*cells, **options)))
        return path

    return write
