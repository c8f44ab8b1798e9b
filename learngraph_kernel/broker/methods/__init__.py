"""What a kernel may ask, one class a call.

A method has three moments: `perform` does the work and returns a JSON result for the ledger; `apply` puts a result
into the run's state, whether it was just made or comes from the record; `present` turns it into the answer for the
kernel (paths, mime bundles: things that must not be recorded because they differ between machines).

Methods are imported when first asked for: together they bring the guard, Arrow, the numeral reader and the renderers,
which a notebook without calls never needs and which any other can import while its kernel boots (`load_all`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache

from learngraph_kernel.broker.methods.base import Method

METHODS: Mapping[str, str] = {
    "input": "plain:InputCall",
    "query": "queries:QueryCall",
    "acquired": "acquired:AcquiredCall",
    "cell": "queries:CellCall",
    "metrics": "metric_calls:MetricsCall",
    "ask": "model_calls:AskCall",
    "validate": "plain:ValidateCall",
    "report": "reports:ReportCall",
    "output": "plain:OutputCall",
    "card": "plain:CardCall",
    "log": "plain:LogCall",
}
"""Name of a call → `module:class` in this package."""

__all__ = ["METHODS", "Method", "load_all", "method_named"]


@cache
def method_named(name: str) -> Method:
    """The method of a name in `METHODS`; methods have no state, so one of each is enough."""
    module, _, attribute = METHODS[name].partition(":")
    made: Method = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)()
    return made


def load_all() -> None:
    """Imports every method."""
    for name in METHODS:
        method_named(name)
