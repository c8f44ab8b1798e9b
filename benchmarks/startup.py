"""The start-up bars: importing the package, the command's help, and what an installed LearnGraph costs papermill.

    python benchmarks/startup.py [--rounds 9]

`import learngraph_kernel` ≤ 30 ms over bare Python; `learngraph --help` ≤ 200 ms; papermill's own start takes ≤ 50 ms
more CPU because our engine is registered with it (against the same imports that do not see the entry point). Whole
processes, in turns.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from _pairs import PYTHON, Bar, Cost, alternately, conclude, environment, excess, process, scratch, table

PAPERMILL = """
import entrypoints
everything = entrypoints.get_group_all
entrypoints.get_group_all = lambda group, path=None: [
    entry for entry in everything(group, path) if {keep} or not entry.module_name.startswith("learngraph_kernel")
]
import papermill.cli
from papermill.engines import papermill_engines
assert ("learngraph" in papermill_engines._engines) is {keep}
"""


def measure(rounds: int, home: Path) -> list[Bar]:
    """The bars, from `rounds` rounds."""
    env = environment(home)

    def python(code: str) -> Cost:
        return process([PYTHON, "-c", code], env=env)

    starts = alternately(
        rounds,
        lambda: python("pass"),
        lambda: python("import learngraph_kernel"),
        lambda: process([PYTHON, "-m", "learngraph_kernel.cli", "--help"], env=env),
    )
    table(["bare Python", "import learngraph_kernel", "learngraph --help"], starts)

    def best(place: int) -> float:
        return min(one[place].wall for one in starts)

    papermill = alternately(
        rounds, lambda: python(PAPERMILL.format(keep=True)), lambda: python(PAPERMILL.format(keep=False))
    )
    table(["import papermill, engine registered", "import papermill, not registered"], papermill)
    return [
        Bar("import learngraph_kernel over bare Python, best", 1000 * (best(1) - best(0)), "ms", at_most=30),
        Bar("learngraph --help, best", 1000 * best(2), "ms", at_most=200),
        Bar("what our engine adds to papermill's start, CPU", 1000 * excess(papermill, of="cpu"), "ms", at_most=50),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with scratch() as folder:
        return conclude(measure(options.rounds, Path(folder)))


if __name__ == "__main__":
    raise SystemExit(main())
