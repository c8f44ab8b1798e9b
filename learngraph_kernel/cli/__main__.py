"""`python -m learngraph_kernel.cli`: the `learngraph` command."""

from __future__ import annotations

from learngraph_kernel.cli.main import main

if __name__ == "__main__":
    main()
