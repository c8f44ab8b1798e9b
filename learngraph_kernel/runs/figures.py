"""The figures of a report: images that cells tagged `figure` put out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TAG = "figure"
IMAGE_TYPES = ("image/png", "image/jpeg")


@dataclass(frozen=True, slots=True)
class Figure:
    """An image of the executed notebook: its caption, type and base64 data."""

    caption: str
    mime: str
    data: str


def figures_of(nb: Any) -> list[Figure]:
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
                    figures.append(Figure(caption, mime, "".join(data[mime]).replace("\n", "")))
    return figures
