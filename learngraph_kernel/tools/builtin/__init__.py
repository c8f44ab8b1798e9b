"""The tools that come with LearnGraph. Each module is one family; `builtin_tools` is all of them.

A handler gets arguments that fit its schema and a ticket for exactly this call; what it raises as LearnGraphError is
told to the model, anything else is logged and told as internal. Imports runs, data, evidence, sandbox and the store.
"""

from __future__ import annotations

from learngraph_kernel.tools.builtin.bench import Bench
from learngraph_kernel.tools.builtin.data import data_tools
from learngraph_kernel.tools.builtin.notebooks import notebook_tools
from learngraph_kernel.tools.builtin.people import people_tools
from learngraph_kernel.tools.builtin.results import OwnsResult, result_tools
from learngraph_kernel.tools.builtin.runs import run_tools
from learngraph_kernel.tools.builtin.workspace_files import sandbox_tools
from learngraph_kernel.tools.values import Tool

__all__ = ["Bench", "builtin_tools"]


def builtin_tools(bench: Bench, owns: OwnsResult) -> tuple[Tool, ...]:
    """All of them.

    Args:
        bench: the surroundings.
        owns: whether a stored result is of a conversation.
    """
    return (
        *data_tools(bench),
        *notebook_tools(bench),
        *run_tools(bench),
        *result_tools(bench, owns),
        *people_tools(),
        *(sandbox_tools(bench) if bench.isolation == "docker" else ()),
    )
