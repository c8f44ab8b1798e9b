"""How many matches would a number find by chance? The bound that keeps a search from proving anything.

A derivation search tries many values: differences, ratios, shares. Near any number there is some of them, and the
closer they lie the less a match means. So the density of the values tried, near the number and without the match
itself, times the width of what the number admits, is the number of matches to expect of a made-up number. Above
`MAX_EXPECTED` a match grounds nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

MAX_EXPECTED = 0.05
"""The stated bound: at most one made-up number in twenty may find a derivation."""
NEIGHBOURS = 8
"""How many of the nearest other values the density is estimated from."""
SPARSE = 20
"""With few other values the density is taken over at least this many widths to either side of the number."""


def expected_matches(values: Sequence[float], low: float, high: float, width: float) -> float:
    """Expected number of chance matches of one interval.

    Takes the values tried (sorted, distinct), the interval, and the width to count with (at least that of the
    interval). Returns the density of the other values near the interval times the width; 0 when there is no other
    value.
    """
    width = max(width, high - low)
    first, last = bisect_left(values, low), bisect_right(values, high)
    inside = max(last - first - 1, 0)
    middle = (low + high) / 2
    left, right = first - 1, last
    wanted = min(NEIGHBOURS, len(values) - (1 if last > first else 0))
    if wanted <= 0:
        return 0.0
    count, reach = min(inside, wanted), width / 2
    while count < wanted:
        to_left = middle - values[left] if left >= 0 else float("inf")
        to_right = values[right] - middle if right < len(values) else float("inf")
        if to_left <= to_right:
            reach, left = max(reach, to_left), left - 1
        else:
            reach, right = max(reach, to_right), right + 1
        count += 1
    if count < NEIGHBOURS / 2:
        reach = max(reach, SPARSE * width)
    return max(count, inside) * width / (2 * reach)
