"""Which cell is calling: only used outside a run, where no engine tells the broker.

JupyterLab and VS Code put the cell's id into the execute request; a plain IPython session has its input number, a
script its file name. Inside a run the broker ignores this and counts on its own.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def where_am_i() -> dict[str, Any] | None:
    """`{"cell": id, "source": code or None}` of the caller, or None when the run's engine knows it better."""
    shell = _ipython()
    if shell is None:
        main = sys.modules.get("__main__")
        name = os.path.basename(getattr(main, "__file__", None) or "script")
        return {"cell": name, "source": None, "execution": 0}
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell_id = (parent or {}).get("metadata", {}).get("cellId") or f"In[{shell.execution_count}]"
    history = shell.user_ns.get("In") or [""]
    return {"cell": cell_id, "source": history[-1], "execution": shell.execution_count}


def _ipython() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
