"""The injected cell, compared with papermill's own."""

from __future__ import annotations

import nbformat
import pytest

from learngraph_kernel.runs.injection import inject, injected_id
from learngraph_kernel.runs.parameters import ParameterError

VALUES = {
    "week": "2013-W07",
    "airport": 'O\'Hare "中"\n',
    "n": 5,
    "rate": 0.1,
    "all": True,
    "none": None,
    "l": [1, {"a": "b"}],
}


def notebook(*tags, **metadata):
    cells = [
        nbformat.v4.new_code_cell("x", metadata={"tags": [tag]} if tag else {}, id=f"c{i}")
        for i, tag in enumerate(tags)
    ]
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


@pytest.mark.parametrize(
    ("tags", "place"),
    [(("", "parameters", ""), 2), (("", ""), 0), (("parameters", "", "injected-parameters"), 2), ((), 0)],
)
def test_the_cell_goes_where_papermill_puts_it(tags, place):
    from papermill.parameterize import parameterize_notebook

    nb = notebook(*tags, kernelspec={"name": "python3", "language": "python", "display_name": "p"})
    ours = inject(nb, VALUES)
    assert ours.cells[place].metadata.tags == ["injected-parameters"]
    path_free = nbformat.from_dict({**nb, "metadata": {**nb.metadata, "papermill": {}}})
    for cell in path_free.cells:
        cell.metadata.setdefault("tags", [])
    theirs = parameterize_notebook(path_free, VALUES)
    assert [cell.metadata.get("tags", []) for cell in ours.cells] == [cell.metadata.tags for cell in theirs.cells]
    assert ours.metadata.papermill.parameters == theirs.metadata.papermill.parameters


def test_the_assignments_give_back_the_values():
    scope = {}
    exec(inject(notebook(), VALUES).cells[0].source, scope)
    assert {name: scope[name] for name in VALUES} == VALUES


def test_the_same_values_give_the_same_notebook_and_the_id_depends_on_them():
    nb = notebook("parameters", "")
    assert inject(nb, VALUES) == inject(nb, VALUES)
    assert inject(nb, VALUES).cells[1].id == injected_id(VALUES)
    assert injected_id(VALUES) != injected_id({**VALUES, "n": 6})
    assert len(injected_id(VALUES)) == 16


def test_the_given_notebook_is_left_alone_and_the_result_is_valid():
    nb = notebook("parameters")
    result = inject(nb, VALUES)
    assert len(nb.cells) == 1
    nbformat.validate(result)


def test_without_parameters_no_cell_is_added():
    assert [cell.id for cell in inject(notebook("parameters"), {}).cells] == ["c0"]


def test_cells_of_an_older_nbformat_get_ids_that_do_not_change():
    nb = nbformat.from_dict(
        {
            "nbformat": 4,
            "nbformat_minor": 2,
            "metadata": {},
            "cells": [{"cell_type": "code", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}],
        }
    )
    one, two = inject(nb, {"a": 1}), inject(nb, {"a": 1})
    assert one == two
    nbformat.validate(one)


def test_another_language_is_written_by_papermill():
    nb = notebook(kernelspec={"name": "ir", "language": "R", "display_name": "R"})
    assert inject(nb, {"week": "x", "ok": True}).cells[0].source == '# Parameters\nweek = "x"\nok = TRUE\n'


def test_a_language_nobody_can_write_is_an_error():
    nb = notebook(kernelspec={"name": "brainy", "language": "brainy", "display_name": "b"})
    with pytest.raises(ParameterError, match="brainy"):
        inject(nb, {"week": "x"})


@pytest.mark.parametrize("name", ["a b", "x; import os", "1a", "lambda", ""])
def test_a_name_that_is_code_is_refused(name):
    with pytest.raises(ParameterError, match="usable parameter name"):
        inject(notebook(), {name: 1})
