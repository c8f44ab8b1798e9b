"""Which cell is calling: only used outside a run, where no engine tells the broker.

JupyterLab and VS Code put the cell's id into the execute request; a plain IPython session has its input number, a
script its file name. Inside a run the broker ignores this and counts on its own.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from learngraph_kernel.canonical import NotCanonical, encode_value


def where_am_i(*, variable: str | None = None) -> dict[str, Any]:
    """`{"cell": id, "source": code or None, "execution": number}` of the caller.

    Args:
        variable: a variable of the caller's notebook or script whose value goes along as `variable`, if it is a value
            that can be sent.
    """
    shell = _ipython()
    place = _in_script() if shell is None else _in_cell(shell)
    if variable is not None:
        names = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
        if _travels(names.get(variable)):
            place["variable"] = {"name": variable, "value": names[variable]}
    return place


def _travels(value: Any) -> bool:
    try:
        encode_value(value)
    except NotCanonical:
        return False
    return value is not None


def _in_script() -> dict[str, Any]:
    main = sys.modules.get("__main__")
    name = os.path.basename(getattr(main, "__file__", None) or "script")
    return {"cell": name, "source": None, "execution": 0}


def _in_cell(shell: Any) -> dict[str, Any]:
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell_id = (parent or {}).get("metadata", {}).get("cellId") or f"In[{shell.execution_count}]"
    history = shell.user_ns.get("In") or [""]
    return {"cell": cell_id, "source": history[-1], "execution": shell.execution_count}


def _ipython() -> Any:
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()
