"""What the benchmarks share: alternating measurements, ratios, and one way of saying PASS or MISS.

A machine that others use slows everything down together, so a second means little and a ratio much: what is compared
runs in turns (A B A B …), and the ratio is the median of the ratios of neighbours. Absolute bars are held against the
best of several tries, the one that others disturbed least.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure and what is asked of it; exactly one of `at_most` and `at_least` is given."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def passed(self) -> bool:
        if self.at_most is not None:
            return self.value <= self.at_most
        assert self.at_least is not None
        return self.value >= self.at_least

    def __str__(self) -> str:
        asked = f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"
        digits = 0 if abs(self.value) >= 1000 else 1 if abs(self.value) >= 100 else 3
        verdict = "PASS" if self.passed else "MISS"
        return f"{verdict}  {self.name}: {self.value:,.{digits}f} {self.unit} ({asked} {self.unit})"


def conclude(bars: Sequence[Bar]) -> int:
    """Prints every bar; returns the exit code, 1 when one is missed."""
    for bar in bars:
        print(bar, flush=True)
    return 0 if all(bar.passed for bar in bars) else 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process and its children took, in seconds."""

    wall: float
    cpu: float


def seconds(action: Callable[[], object]) -> float:
    """Wall time of a call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def alternately(
    times: int, *actions: Callable[[], Cost] | Callable[[], float], warm: bool = True
) -> list[tuple[Cost, ...]]:
    """Measures the actions in turns; one round before them fills caches unless `warm` is off.

    Actions give what they cost, or only their wall time in seconds.
    """
    if warm:
        for action in actions:
            action()
    return [tuple(_as_cost(action()) for action in actions) for _ in range(times)]


def _as_cost(measured: Cost | float) -> Cost:
    return measured if isinstance(measured, Cost) else Cost(measured, float("nan"))


def ratio(rounds: Sequence[tuple[Cost, ...]], first: int = 0, second: int = 1, *, of: str = "wall") -> float:
    """Median over the rounds of (cost of `first`) / (cost of `second`)."""
    return statistics.median(getattr(one[first], of) / getattr(one[second], of) for one in rounds)


def excess(rounds: Sequence[tuple[Cost, ...]], first: int = 0, second: int = 1, *, of: str = "wall") -> float:
    """Median over the rounds of (cost of `first`) - (cost of `second`), in seconds."""
    return statistics.median(getattr(one[first], of) - getattr(one[second], of) for one in rounds)


def table(names: Sequence[str], rounds: Sequence[tuple[Cost, ...]]) -> None:
    """Prints median and best of each action."""
    width = max(map(len, names))
    for place, name in enumerate(names):
        walls, cpus = [one[place].wall for one in rounds], [one[place].cpu for one in rounds]
        cpu = f"   CPU {statistics.median(cpus):7.3f} s" if cpus[0] == cpus[0] else ""
        print(f"  {name:{width}}  median {statistics.median(walls):7.3f} s   best {min(walls):7.3f} s{cpu}")


def process(words: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Cost:
    """Runs a whole process and waits for it. Raises SystemExit with what it said when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(words, cwd=cwd, env=None if env is None else dict(env), capture_output=True, text=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed ({done.returncode}):\n{done.stderr[-2000:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def environment(home: Path) -> dict[str, str]:
    """The environment of a measured process: this checkout's code, a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEARNGRAPH_")}
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    return {**kept, "LEARNGRAPH_HOME": str(home), "PYTHONPATH": path}


def scratch(directory: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A folder that goes away; `directory` chooses the disk."""
    return tempfile.TemporaryDirectory(prefix="learngraph-bench-", dir=directory)
