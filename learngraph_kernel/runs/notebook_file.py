"""Reading and writing notebook files: the one place that knows nbformat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat

from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.injection import with_cell_ids


class NotANotebook(BadInput):
    """The file is no Jupyter notebook."""

    code = "not_a_notebook"


def load_notebook(path: Path) -> Any:
    """A notebook from a file, in format 4.5 with stable cell ids; older formats are upgraded in memory.

    Raises:
        NotANotebook: missing, unreadable, not JSON, or not a notebook.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotANotebook("there is no such file", where=str(path)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotANotebook(f"the file cannot be read: {error}", where=str(path)) from error
    return parse_notebook(text, where=str(path))


def parse_notebook(text: str, *, where: str) -> Any:
    """As `load_notebook`, from JSON text."""
    try:
        nb = nbformat.reads(text, as_version=4)
    except (ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        lines = str(error).strip().splitlines()
        reason = lines[0][:200] if lines else type(error).__name__
        raise NotANotebook(
            f"this is not a notebook: {reason}", where=where, remedy="open and save it in JupyterLab, or check the file"
        ) from error
    return with_cell_ids(nb)


def notebook_text(nb: Any) -> str:
    """The notebook as JSON text, as Jupyter writes it."""
    return str(nbformat.writes(nb)) + "\n"
