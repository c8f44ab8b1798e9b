"""How often one user may call: a bucket a user that fills steadily and holds a quarter of a minute's calls."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST = 0.25
"""Share of a minute's calls that may come at once."""
MOST_USERS = 10_000


class RateLimiter:
    """Token buckets. Args: a_minute: calls; 0 for no limit."""

    def __init__(self, a_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = a_minute / 60, clock
        self._most = max(1.0, a_minute * BURST)
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, owner: str) -> float:
        """Takes one call out of a user's bucket; seconds to wait when it is empty, else 0."""
        if self._rate <= 0:
            return 0.0
        now = self._clock()
        level, then = self._buckets.get(owner, (self._most, now))
        level = min(self._most, level + (now - then) * self._rate)
        if level < 1:
            self._buckets[owner] = (level, now)
            return (1 - level) / self._rate
        self._buckets[owner] = (level - 1, now)
        if len(self._buckets) > MOST_USERS:
            self._forget(now)
        return 0.0

    def _forget(self, now: float) -> None:
        """Drops full buckets, which say nothing; when all are in use, the fullest half."""
        levels = {owner: level + (now - then) * self._rate for owner, (level, then) in self._buckets.items()}
        for owner in sorted(levels, key=levels.__getitem__, reverse=True)[: MOST_USERS // 2]:
            del self._buckets[owner]
