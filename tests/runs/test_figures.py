"""What a figure brings into a report besides its picture."""

from __future__ import annotations

import nbformat.v4 as nbf
import pytest

from learngraph_kernel.runs.figures import figures_of


@pytest.mark.parametrize(
    ("caption", "shown"),
    [
        ("Flights by hour", "Flights by hour"),
        ("Week 7 of 2013", "Week 7 of 2013"),
        ("Sales rose 45 %", "c1 (caption left out: it states '45 %' without a citation)"),
        (None, "c1"),
    ],
)
def test_a_caption_is_shown_unless_it_states_a_number(caption: str | None, shown: str) -> None:
    output = nbf.new_output("display_data", {"image/png": "aGk="})
    cell = nbf.new_code_cell("plot()", id="c1", outputs=[output], metadata={"tags": ["figure"]})
    if caption is not None:
        cell.metadata["caption"] = caption
    assert [figure.title for figure in figures_of(nbf.new_notebook(cells=[cell]))] == [shown]
