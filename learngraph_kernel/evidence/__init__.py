"""Evidence: numerals, citations, report documents, metric cards, issuance, audit. Pure: values in, values out.

Start reading at `values`. Imports only the standard library, `canonical`, `errors` and small parsers; opens no file it
was not handed."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {"audit_text": "learngraph_kernel.evidence.audit"}

__all__ = ["audit_text"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value
