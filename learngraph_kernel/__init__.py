"""LearnGraph's runtime and its notebook API.

`import learngraph_kernel as lg` in a cell gives `lg.query`, `lg.metrics`, `lg.report`, …; names are resolved on first
use, so that importing costs only the standard library. Start reading at `learngraph_kernel.notebook`; the map of the
packages is docs/architecture.md.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # type checkers take it for typing's; importing typing would be most of what this import costs
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_NOTEBOOK_API = (
    "acquired",
    "ask",
    "card",
    "cell",
    "input",
    "log",
    "metrics",
    "output",
    "query",
    "report",
    "validate",
)

__all__ = ["__version__", *_NOTEBOOK_API]


def __getattr__(name: str) -> Any:
    if name in _NOTEBOOK_API:
        value = getattr(importlib.import_module("learngraph_kernel.notebook"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NOTEBOOK_API})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext learngraph_kernel`: the `%%sql`, `%metric` and `%runs` magics."""
    from learngraph_kernel.notebook.magics import register

    register(shell)
