"""The bars of a run: the `learngraph run` command and `papermill --engine learngraph` against plain `papermill`.

    python benchmarks/run.py [--rounds 7] [--only cells|flights]

Whole processes on a host kernel, seal included, in turns: run, engine, papermill, run, … Bars: `learngraph run` on a
20-cell notebook ≤ 0.6 × papermill, the engine ≤ 1.10 ×. The shipped flights notebook is measured beside it: there
papermill runs its cells with the runtime that `lg` embeds, so both do the same queries and the same seal. CPU time of
process and kernel is printed as well: it says what the ratio becomes on a machine without an idle core.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import nbformat
from _pairs import PYTHON, REPOSITORY, Bar, Cost, alternately, conclude, environment, process, ratio, scratch, table

CELLS = 20
NAMES = ["learngraph run", "papermill --engine learngraph", "papermill"]


def write_notebook(path: Path) -> None:
    """Twenty cells that compute and print a little."""
    cells = [nbformat.v4.new_code_cell(f"total = sum(range({n * 1000}))\nprint({n}, total)") for n in range(CELLS)]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": spec}), path)


def rounds_of(notebook: Path, rounds: int, folder: Path) -> list[tuple[Cost, ...]]:
    """Costs of the three commands on one notebook."""
    env = environment(folder / "home")
    out = folder / "out.ipynb"

    def command(*words: object) -> Cost:
        return process([PYTHON, "-m", *map(str, words)], cwd=notebook.parent, env=env)

    return alternately(
        rounds,
        lambda: command("learngraph_kernel.cli", "run", notebook.name, "-o", out),
        lambda: command("papermill", "--no-progress-bar", "--engine", "learngraph", notebook.name, out),
        lambda: command("papermill", "--no-progress-bar", notebook.name, out),
    )


def measure(notebook: Path, rounds: int, folder: Path) -> list[Bar]:
    """The bars on one notebook."""
    costs = rounds_of(notebook, rounds, folder)
    print(f"{notebook.name}, {rounds} rounds")
    table(NAMES, costs)
    print(f"  CPU: run {ratio(costs, 0, 2, of='cpu'):.2f} ×, engine {ratio(costs, 1, 2, of='cpu'):.2f} × papermill")
    return [
        Bar(f"learngraph run {notebook.name} / papermill", ratio(costs, 0, 2), "×", at_most=0.6),
        Bar(f"papermill --engine learngraph {notebook.name} / papermill", ratio(costs, 1, 2), "×", at_most=1.1),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["cells", "flights"])
    options = parser.parse_args()
    bars: list[Bar] = []
    with scratch() as name:
        folder = Path(name)
        if options.only != "flights":
            write_notebook(folder / "twenty_cells.ipynb")
            bars += measure(folder / "twenty_cells.ipynb", options.rounds, folder)
        if options.only != "cells":
            # A copy, so that nothing is written beside the shipped notebooks.
            shutil.copytree(REPOSITORY / "notebooks", folder / "notebooks")
            bars += measure(folder / "notebooks" / "flights_weekly.ipynb", options.rounds, folder)
    return conclude(bars)


if __name__ == "__main__":
    raise SystemExit(main())
