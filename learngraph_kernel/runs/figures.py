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
                    caption = cell.metadata.get("caption") or cell.id
                    figures.append(Image(caption, mime, "".join(data[mime])))
    return figures
