"""The SQL lint: what a statement gets wrong about its data, by the catalogue. What it calls an error is an error.

`shape.py` says what a row is, `joins.py` which rows a join repeats, `view.py` puts both together for one select; the
rules stand in `multiplying.py`, `summarising.py` and `filtering.py`. Pure: text and catalogue in, findings out.
"""

from learngraph_kernel.data.lint.findings import RULES, Finding
from learngraph_kernel.data.lint.linting import lint

__all__ = ["RULES", "Finding", "lint"]
