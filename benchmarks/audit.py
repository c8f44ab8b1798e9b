"""How long does checking a report take? The bar: 1,000 numbers against 10,000 cells in at most 1 s.

Run with `python benchmarks/audit.py`. Each line is one kind of report; seconds are the best of three, reading the
numbers and the tables included.
"""

from __future__ import annotations

import random
import time
from collections import Counter

from learngraph_kernel.evidence import audit_text

BAR_SECONDS = 1.0
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


def main() -> None:
    """Print seconds and verdicts for each report; exit 1 if one misses the bar."""
    source = random.Random(7)
    rows = make_table(source)
    missed = False
    for name, text in make_texts(source, rows).items():
        best = float("inf")
        for _ in range(3):
            started = time.perf_counter()
            findings = audit_text(text, {"routes": rows})
            best = min(best, time.perf_counter() - started)
        counts = Counter(finding["status"] for finding in findings)
        missed = missed or best > BAR_SECONDS
        print(f"{name:16} {best:6.3f} s  {dict(counts)}")
    print(f"bar: {BAR_SECONDS} s, {'missed' if missed else 'met'}")
    raise SystemExit(missed)


if __name__ == "__main__":
    main()
