"""The content document: from a run's records, equal for equal runs, and able to say what differs."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from learngraph_kernel.runs.content import code_entries, content_hash, explain_difference, output_entries
from tests.runs.sample_run import NOTEBOOK, OTHER_RUN, RUN


@pytest.fixture
def document(pristine: dict[str, dict[str, bytes]]) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(pristine[RUN]["content.json"])
    return body


def test_it_holds_what_was_run_and_what_came_of_it(document: dict[str, Any]) -> None:
    assert [item["id"] for item in document["code"]] == ["intro", "injected-parameters", "count"]
    assert document["parameters"] == {"week": 7}
    assert [(item["ref"], item["sql"]) for item in document["inputs"]] == [("Q1", "select 1"), ("Q2", "select 2")]
    assert document["metrics"] == [
        {"set": "weekly", "name": "flights", "version": "1.0.0", "value": "6077", "state": "ok", "card": None}
    ]
    assert [item["cell"] for item in document["outputs"]] == ["injected-parameters", "count"]
    assert document["report"]
    assert document["result"]


def test_a_report_that_names_its_run_hashes_the_same_in_another_run(pristine: dict[str, dict[str, bytes]]) -> None:
    first, second = (json.loads(pristine[run]["content.json"]) for run in (RUN, OTHER_RUN))
    assert pristine[RUN]["report.json"] != pristine[OTHER_RUN]["report.json"]
    assert first["report"] == second["report"]


def test_two_runs_that_differ_in_a_parameter_differ_in_that_and_in_what_depends_on_it(
    pristine: dict[str, dict[str, bytes]],
) -> None:
    first, second = (json.loads(pristine[run]["content.json"]) for run in (RUN, OTHER_RUN))
    lines = explain_difference(first, second)
    assert lines[0] == "parameter week: 7 ≠ 8"
    assert {line.split(":")[0] for line in lines[1:]} == {"input Q1", "input Q2"}


def test_equal_documents_have_no_difference_and_one_hash(document: dict[str, Any]) -> None:
    again = copy.deepcopy(document)
    assert explain_difference(document, again) == []
    assert content_hash(document) == content_hash(again)


def _set(*path: Any, value: Any) -> Any:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_set("code", 2, "sha256", value="0" * 64), "cell count: code"),
        (_set("outputs", 1, "sha256", value="0" * 64), "cell count: output"),
        (_set("parameters", "week", value=9), "parameter week: 7 ≠ 9"),
        (_set("parameters", "airport", value="JFK"), "parameter airport: (not given) ≠ JFK"),
        (_set("inputs", 0, "sql", value="select 3"), "input Q1: SQL select 1 ≠ select 3"),
        (_set("inputs", 0, "artifact", value="0" * 64), "input Q1: snapshot"),
        (_set("metrics", 0, "version", value="1.1.0"), "metric weekly/flights: version 1.0.0 ≠ 1.1.0"),
        (_set("metrics", 0, "value", value="6078"), "metric weekly/flights: value 6077 ≠ 6078"),
        (_set("image", value="sha256:1"), "image: none ≠ sha256:1"),
        (_set("report", value=None), "report:"),
        (_set("result", value="0" * 64), "result:"),
        (lambda document: document["inputs"].pop(), "input Q2: only in the first"),
        (lambda document: document["code"].reverse(), "cells: in another order"),
    ],
)
def test_every_difference_is_named(document: dict[str, Any], change: Any, words: str) -> None:
    other = copy.deepcopy(document)
    change(other)
    lines = explain_difference(document, other)
    assert len(lines) == 1
    assert lines[0].startswith(words)
    assert content_hash(document) != content_hash(other)


def test_a_cell_of_one_run_only_is_named_once(document: dict[str, Any]) -> None:
    other = copy.deepcopy(document)
    gone = other["code"].pop()["id"]
    other["outputs"] = [entry for entry in other["outputs"] if entry["cell"] != gone]
    assert explain_difference(document, other) == [f"cell {gone}: only in the first"]


def test_an_output_of_no_known_cell_is_a_difference(document: dict[str, Any]) -> None:
    other = copy.deepcopy(document)
    other["outputs"].append({"cell": "ghost", "sha256": "0" * 64})
    assert explain_difference(document, other) == ["cell ghost: only in the second"]


def test_a_metric_evaluated_twice_is_told_apart(document: dict[str, Any]) -> None:
    document["metrics"].append(dict(document["metrics"][0]))
    other = copy.deepcopy(document)
    other["metrics"][1]["value"] = "1"
    assert explain_difference(document, other) == ["metric weekly/flights (2): value 6077 ≠ 1"]


def test_the_injected_cell_counts_by_its_tag_whatever_its_id() -> None:
    other = copy.deepcopy(NOTEBOOK)
    other["cells"][1]["id"] = "another-random-id"
    assert code_entries(other) == code_entries(NOTEBOOK)
    assert output_entries(other) == output_entries(NOTEBOOK)


def test_cells_without_ids_count_by_their_place() -> None:
    cells = [{"cell_type": "code", "source": "1", "outputs": []}, {"cell_type": "raw", "source": ""}]
    assert [item["id"] for item in code_entries({"cells": cells})] == ["#0", "#1"]


def test_marks_that_papermill_adds_to_a_failed_notebook_do_not_count() -> None:
    mark = {"id": "x", "cell_type": "markdown", "metadata": {"tags": ["papermill-error-cell-tag"]}, "source": "failed"}
    assert code_entries({"cells": [mark, *NOTEBOOK["cells"]]}) == code_entries(NOTEBOOK)
