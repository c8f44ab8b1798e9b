"""What the tests of runs share."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest


@pytest.fixture
def papermill() -> ModuleType:
    """papermill itself. It loads every registered engine, ours among them, when it is imported."""
    try:
        return importlib.import_module("papermill")
    except ModuleNotFoundError as missing:
        if missing.name != "learngraph_kernel.runs.papermill_engine":
            raise
        pytest.skip("our papermill engine is registered but not in this tree")
