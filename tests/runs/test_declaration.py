"""`nb.metadata.learngraph`, read strictly."""

from __future__ import annotations

import pytest

from learngraph_kernel.runs.declaration import Declaration, DeclarationError, read_declaration
from learngraph_kernel.runs.parameters import ParameterError

FULL = {
    "title": {"en": "Flights weekly", "zh": "航班周报"},
    "version": "1.0.0",
    "language": "zh",
    "parameters": {"type": "object", "required": ["week"], "properties": {"week": {"type": "string"}}},
    "contract": {
        "required_metrics": ["flights"],
        "required_rows": {"Q1": 1},
        "report": True,
        "output_schema": {"type": "object"},
        "uncited_outputs": "refuse",
    },
    "metrics": {"flights_weekly": {"flights": "1.0.0"}},
    "on_newer_metric": "recompute",
    "max_repairs": 2,
    "governed": True,
}


def read(body):
    return read_declaration({"metadata": {"learngraph": body}}, where="weekly.ipynb")


def test_every_documented_key_is_read():
    found = read(FULL)
    assert found.titled() == "航班周报"
    assert found.titled("en") == "Flights weekly"
    assert list(found.parameters.parameters) == ["week"]
    assert found.contract.as_json() == FULL["contract"]
    assert found.metrics == FULL["metrics"]
    assert (found.version, found.on_newer_metric, found.max_repairs, found.governed) == ("1.0.0", "recompute", 2, True)


def test_a_notebook_without_a_declaration_has_the_defaults():
    assert read_declaration({"metadata": {}}) == Declaration()
    assert read({}).on_newer_metric is None


def test_a_plain_title_is_in_the_notebooks_language():
    assert read({"title": "周报", "language": "zh"}).title == {"zh": "周报"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "metadata.learngraph: expected an object, got array"),
        ({"titel": "x"}, "unknown key 'titel' in metadata.learngraph — did you mean 'title'?"),
        ({"contract": {"reports": True}}, "unknown key 'reports' in metadata.learngraph.contract — did you mean"),
        ({"qqq": 1}, "known keys: contract"),
        ({"title": 3}, "metadata.learngraph.title: expected an object, got integer 3"),
        ({"title": {"en": 3}}, "metadata.learngraph.title.en: expected a string"),
        ({"version": "1.0"}, "expected a semantic version"),
        ({"version": 1.0}, "expected a string, got number"),
        ({"language": "fr"}, "expected one of en, zh, got string 'fr'"),
        ({"contract": True}, "contract: expected an object"),
        ({"contract": {"required_metrics": "flights"}}, "expected a list of strings"),
        ({"contract": {"required_metrics": [1]}}, "required_metrics[0]: expected a string"),
        ({"contract": {"required_rows": {"Q1": -1}}}, "required_rows.Q1: expected a whole number from 0 up"),
        ({"contract": {"required_rows": {"Q1": True}}}, "expected a whole number, got boolean True"),
        ({"contract": {"report": "yes"}}, "expected true or false"),
        ({"contract": {"output_schema": "x"}}, "expected a JSON Schema object"),
        ({"contract": {"uncited_outputs": "maybe"}}, "expected one of refuse, allow"),
        ({"metrics": {"weekly": ["flights"]}}, "metrics.weekly: expected an object"),
        ({"metrics": {"weekly": {"flights": "latest"}}}, "metrics.weekly.flights: expected a semantic version"),
        ({"on_newer_metric": None}, "expected one of recompute, dual, incomparable, got null"),
        ({"max_repairs": 1.5}, "expected a whole number"),
        ({"governed": 1}, "expected true or false"),
    ],
)
def test_a_wrong_declaration_is_named_with_its_path(body, words):
    with pytest.raises(DeclarationError) as caught:
        read(body)
    assert words in str(caught.value)
    assert str(caught.value).startswith("weekly.ipynb: ")


def test_an_unusable_parameter_schema_is_named_with_the_notebook():
    with pytest.raises(ParameterError, match=r"weekly\.ipynb: metadata\.learngraph\.parameters"):
        read({"parameters": {"type": "string"}})
