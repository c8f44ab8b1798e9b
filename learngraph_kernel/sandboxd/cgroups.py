"""One ceiling for all containers together: a control group that Docker puts them into.

Each container has its own limit; the sum may exceed the machine's share, since most are idle. The parent group holds
the sum to the share, so that the host keeps the rest whatever runs inside. It needs root and the `cgroupfs` driver;
where it cannot be had, the readiness check says so and a container's own limit is all there is. Source: Linux,
Documentation/admin-guide/cgroup-v1/ and cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

PERIOD = 100_000
ROOT = Path("/sys/fs/cgroup")


def cap_processors(name: str, processors: float, *, root: Path = ROOT) -> str | None:
    """Makes the group `name` and limits it.

    Args:
        name: of the group, directly below the root.
        processors: the most that all its members use together.

    Returns:
        What to pass to the engine as the cgroup parent; None when it cannot be made here.
    """
    quota = max(int(processors * PERIOD), 1_000)
    try:
        if (root / "cgroup.controllers").is_file():
            group = root / name
            group.mkdir(exist_ok=True)
            (group / "cpu.max").write_text(f"{quota} {PERIOD}")
        else:
            group = root / "cpu" / name
            group.mkdir(exist_ok=True)
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
    except OSError:
        return None
    return f"/{name}"


def release(name: str, *, root: Path = ROOT) -> None:
    """Removes the group and those the engine made beside it, where no container is in them any more."""
    for place in (root, *root.iterdir()) if root.is_dir() else ():
        with contextlib.suppress(OSError):
            (place / name).rmdir()
