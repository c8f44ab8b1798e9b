"""The figures of a report: images that cells tagged `figure` put out."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.evidence.html.facts import Image

TAG = "figure"
IMAGE_TYPES = ("image/png", "image/jpeg")


def figures_of(nb: Any) -> list[Image]:
    """All images of cells tagged `figure`, in order; the caption is the cell's metadata `caption`, else its id."""
    figures = []
    for cell in nb.cells:
        if cell.cell_type != "code" or TAG not in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            data = output.get("data", {})
            for mime in IMAGE_TYPES:
                if mime in data:
                    figures.append(Image(_caption(cell), mime, "".join(data[mime])))
    return figures


def _caption(cell: Any) -> str:
    """The caption, unless it states a number, which cannot be cited there: then why it is left out."""
    from learngraph_kernel.evidence.numerals import read_numerals  # imported late: its tables are large

    caption = str(cell.metadata.get("caption") or cell.id)
    stated = [found.text for found in read_numerals(caption) if found.conclusion]
    return f"{cell.id} (caption left out: it states {stated[0]!r} without a citation)" if stated else caption
