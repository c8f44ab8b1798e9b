"""Linting a query of 200 lines over a catalogue of 500 tables: bar 100 ms.

python benchmarks/lint.py
"""

from __future__ import annotations

import statistics
import time

from learngraph_kernel.data.catalogue import Catalogue, parse_catalogue
from learngraph_kernel.data.lint import lint

ROUNDS = 20
BAR_MS = 100


def catalogue() -> Catalogue:
    """500 tables of 10 columns, each related to the next."""
    lines = ["tables:"]
    for number in range(500):
        columns = ", ".join(f"c{column}: {{measure: additive, type: integer}}" for column in range(10))
        lines.append(
            f"  t{number}: {{grain: [id], valid: 'status <> 9', columns: {{id: {{}}, next_id: {{}}, {columns}}}}}"
        )
    lines.append("relations:")
    lines += [
        f"  - {{from: [t{number}.next_id], to: [t{number + 1}.id], cardinality: many-to-one}}" for number in range(499)
    ]
    return parse_catalogue("\n".join(lines))


def query(*, filtered: bool) -> str:
    """10 CTEs of joins, conditions and sums, and one that joins them. Not `filtered`: 40 findings, each rewritten."""
    ctes = []
    for number in range(10):
        first = number * 20
        sums = ",\n".join(f"  sum(a.c{column}) as s{column}" for column in range(8))
        joins = "\n".join(
            f"join t{first + place + 1} as b{place} on {'a' if place == 0 else f'b{place - 1}'}.next_id = b{place}.id"
            for place in range(4)
        )
        tables = ["a", "b0", "b1", "b2", "b3"]
        where = "\n  and ".join(f"{alias}.status <> 9" for alias in tables if filtered or alias == "a")
        ctes.append(f"q{number} as (\nselect a.c0,\n{sums}\nfrom t{first} as a\n{joins}\nwhere {where}\ngroup by a.c0)")
    body = "with " + ",\n".join(ctes) + "\nselect q0.c0, q0.s0\nfrom q0\n"
    return body + "\n".join(f"join q{number} on q{number}.c0 = q0.c0" for number in range(1, 10))


def main() -> int:
    known = catalogue()
    met = True
    for filtered in (True, False):
        sql = query(filtered=filtered)
        found = lint(sql, known)
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            lint(sql, known)
            times.append(time.perf_counter() - began)
        milliseconds = statistics.median(times) * 1000
        lines = sql.count("\n") + 1
        met = met and (milliseconds <= BAR_MS or not filtered)
        print(f"{lines} lines, 500 tables, {len(found)} findings: median {milliseconds:.0f} ms (bar {BAR_MS})")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
