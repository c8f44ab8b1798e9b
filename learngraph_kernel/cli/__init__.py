"""The `learngraph` command: one module a command, imported only when that command runs.

Each module defines a click command named `command`. Keep module-level imports to click and `cli.common`; everything
else is imported inside the command, so that `learngraph --help` stays within 200 ms.
"""

from __future__ import annotations

from learngraph_kernel.cli.main import main

__all__ = ["main"]
