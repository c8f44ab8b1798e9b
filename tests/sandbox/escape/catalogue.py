"""The probes of `inside/` as the tests see them: their names and categories, without running any."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).with_name("inside")
MODULES = ("kernel_surface", "host_view", "neighbourhood", "exhaustion", "broker_abuse", "archive_tricks")


def inside_probes() -> dict[str, str]:
    """Name → category, in the order they run."""
    sys.path.insert(0, str(INSIDE))
    try:
        for name in MODULES:
            importlib.import_module(name)
        probes: list[Any] = importlib.import_module("probing").PROBES
    finally:
        sys.path.remove(str(INSIDE))
    assert len({each.name for each in probes}) == len(probes), "two probes of one name"
    return {each.name: each.category for each in probes}
