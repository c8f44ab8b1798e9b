"""How long checking a report takes: 1,000 numbers against 10,000 cells in at most 1 s.

    python benchmarks/audit.py [--rounds 3]

Each line is one kind of report; reading the numbers and the tables is included. It is one thread that only computes, so
its CPU time is what the clock shows on an idle core, and is held against the bar.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter

from _pairs import Bar, conclude

from learngraph_kernel.evidence import audit_text

HEADER = ["route", "flights", "late", "cancelled", "mean delay (min)", "on-time rate (%)", "seats", "crew", "fuel (kg)"]
HEADER += ["distance (km)", "revenue (USD)"]


def make_table(source: random.Random) -> list[list[str]]:
    """1,000 rows of 10 numbers."""
    rows = [HEADER]
    for number in range(1_000):
        cells = [str(source.randint(100, 99_999)) for _ in HEADER[1:]]
        cells[3], cells[4] = f"{source.uniform(0, 60):.1f}", f"{source.uniform(50, 100):.1f}"
        rows.append([f"Route X{number}", *cells])
    return rows


def make_texts(source: random.Random, rows: list[list[str]]) -> dict[str, str]:
    """Reports of 1,000 numbers: all true, half invented, without labels, and full of derivations."""
    picked = [rows[source.randint(1, 1_000)] for _ in range(500)]
    pairs = [(source.choice(rows[1:]), source.choice(rows[1:])) for _ in range(500)]
    return {
        "true, labelled": " ".join(f"{row[0]} had {row[1]} flights and {row[2]} late ones." for row in picked),
        "half invented": " ".join(
            f"{row[0]} had {row[1]} flights, up {n % 40 + 0.3} %." for n, row in enumerate(picked)
        ),
        "without labels": " ".join(f"It was {row[6]}, and then {row[7]}." for row in picked),
        "derived": " ".join(
            f"{a[0]} had {more} more flights than {b[0]}, {100 * more / int(b[1]):.1f} % more."
            for a, b in (sorted(pair, key=lambda row: -int(row[1])) for pair in pairs)
            for more in [int(a[1]) - int(b[1])]
        ),
    }


def measure(rounds: int) -> list[Bar]:
    """One bar a kind of report."""
    source = random.Random(7)
    rows = make_table(source)
    bars = []
    for name, text in make_texts(source, rows).items():
        walls, cpus = [], []
        for _ in range(rounds):
            wall, cpu = time.perf_counter(), time.process_time()
            findings = audit_text(text, {"routes": rows})
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        print(f"  {name}: {dict(Counter(finding['status'] for finding in findings))}, wall, best {min(walls):.3f} s")
        bars.append(Bar(f"1,000 numbers, {name}, CPU, best", min(cpus), "s", at_most=1))
    return bars


def main() -> int:
    """Prints seconds and verdict for each report; exit code 1 when one misses the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    return conclude(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    raise SystemExit(main())
