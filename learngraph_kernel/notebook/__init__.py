"""The notebook API, `lg`: what a cell may use of the platform.

Every function is one call to the broker, which records it; nothing here opens a source, reads a file of the host or
computes a figure. Standard library only at import; pyarrow, pandas and polars are imported by `.arrow()`, `.df()` and
`.pl()`. Start reading at `api`, then `client` (the connection) and `handles` (what calls return).
"""

from __future__ import annotations

from learngraph_kernel.notebook.api import (
    acquired,
    ask,
    card,
    cell,
    input,
    log,
    metrics,
    output,
    query,
    report,
    validate,
)

__all__ = ["acquired", "ask", "card", "cell", "input", "log", "metrics", "output", "query", "report", "validate"]
