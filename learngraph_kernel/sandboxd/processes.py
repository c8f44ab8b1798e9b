"""Which process that was: a pid alone may be another one's by now."""

from __future__ import annotations

from pathlib import Path


def process_identity(pid: int) -> str | None:
    """A process as "pid:start time", which no later process with the same pid shares; None when it is not visible."""
    started = _start_time(pid)
    return None if started is None else f"{pid}:{started}"


def process_alive(identity: str) -> bool:
    """Whether that very process still runs."""
    pid, _, started = identity.partition(":")
    return _start_time(int(pid)) == started


def _start_time(pid: int) -> str | None:
    if pid <= 0:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # proc(5): the name may contain anything, so count from its end
    return None if fields[0] in "ZX" else fields[19]
