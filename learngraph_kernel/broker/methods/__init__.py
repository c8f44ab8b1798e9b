"""What a kernel may ask, one class a call.

A method has three moments: `perform` does the work and returns a JSON result for the ledger; `apply` puts a result
into the run's state, whether it was just made or comes from the record; `present` turns it into the answer for the
kernel (paths, mime bundles: things that must not be recorded because they differ between machines).
"""

from __future__ import annotations

from learngraph_kernel.broker.methods.base import Method
from learngraph_kernel.broker.methods.metric_calls import MetricsCall
from learngraph_kernel.broker.methods.model_calls import AskCall
from learngraph_kernel.broker.methods.plain import CardCall, InputCall, LogCall, OutputCall, ValidateCall
from learngraph_kernel.broker.methods.queries import CellCall, QueryCall
from learngraph_kernel.broker.methods.reports import ReportCall

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        InputCall(),
        QueryCall(),
        CellCall(),
        MetricsCall(),
        AskCall(),
        ValidateCall(),
        ReportCall(),
        OutputCall(),
        CardCall(),
        LogCall(),
    )
}

__all__ = ["METHODS", "Method"]
