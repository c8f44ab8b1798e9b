"""`learngraph doctor`: every component, its state, and for each failure the exact remedy.

A check is a function from `Surroundings` to results, named in `registry.CHECKS`. Each runs by itself: whatever one
raises becomes its own failed result and hides no other, so nothing of a component is imported before its check runs.
Start reading at `report`; the checks are in `installation`, `storage` and `workspace`.
"""

from __future__ import annotations

from learngraph_kernel.doctor.report import Check, CheckResult, Surroundings, diagnose

__all__ = ["Check", "CheckResult", "Surroundings", "diagnose"]
