"""`learngraph lint`: files in, findings out; it opens no source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

CATALOGUE = """
tables:
  stock: {grain: [product_id, day], date: day, columns: {units: {measure: semi-additive, over: [day]}}}
"""
WRONG = "select sum(units)\nfrom stock"


def catalogue(folder: Path) -> Path:
    path = folder / "shop.yaml"
    path.write_text(CATALOGUE)
    return path


def test_an_error_is_exit_code_three_and_names_the_exact_place(tmp_path: Path, learngraph: Callable[..., Any]) -> None:
    file = tmp_path / "q.sql"
    file.write_text("-- stock\n" + WRONG)
    done = learngraph("lint", file, "--catalog", catalogue(tmp_path), "--json")
    assert done.code == 3
    (finding,) = done.json
    assert (finding["file"], finding["rule"], finding["severity"]) == (str(file), "semi_additive", "error")
    assert finding["line"] == 2 and file.read_text()[finding["start"] : finding["end"]] == "sum(units)"


def test_a_clean_file_is_exit_code_zero(tmp_path: Path, learngraph: Callable[..., Any]) -> None:
    file = tmp_path / "q.sql"
    file.write_text("select day, sum(units) from stock group by day")
    assert learngraph("lint", file, "--catalog", catalogue(tmp_path), "--json").json == []


def test_queries_in_a_notebook_are_linted_by_the_catalogue_of_their_source(
    tmp_path: Path, learngraph: Callable[..., Any]
) -> None:
    (tmp_path / "catalog").mkdir()
    catalogue(tmp_path / "catalog")
    cells = [
        nbformat.v4.new_code_cell(f'lg.query("shop", """{WRONG}""")'),
        nbformat.v4.new_code_cell(f"%%sql shop q\n{WRONG}"),
        nbformat.v4.new_code_cell(f'%matplotlib inline\nlg.query("other", """{WRONG}""")'),
    ]
    file = tmp_path / "n.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    found = learngraph("lint", file, "--workspace", tmp_path, "--json").json
    assert [finding["cell"] for finding in found] == [cells[0].id, cells[1].id]
    for finding, cell in zip(found, cells, strict=False):
        assert cell.source[finding["start"] : finding["end"]] == "sum(units)"


def test_what_holds_no_sql_is_refused(tmp_path: Path, learngraph: Callable[..., Any]) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text(json.dumps({"cells": 3}))
    assert learngraph("lint", file, "--json").json["error"]["code"] == "file_not_linted"
