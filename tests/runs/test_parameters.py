"""Parameters: declared, given, bound."""

from __future__ import annotations

import subprocess
import sys

import pytest

from learngraph_kernel.errors import ExitCode
from learngraph_kernel.runs.parameter_text import RawText, resolve_text
from learngraph_kernel.runs.parameters import ParameterError, bind, declared, spec_from_cell, spec_of
from learngraph_kernel.schemas import SchemaInvalid


def spec(properties, **rest):
    return declared({"learngraph": {"parameters": {"type": "object", "properties": properties, **rest}}})


WEEKLY = spec(
    {
        "week": {"type": "string", "title": "Week", "pattern": r"^\d{4}-W\d{2}$"},
        "airport": {"type": "string", "enum": ["JFK", "LGA", "EWR"], "default": "JFK"},
        "top": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
    },
    required=["week"],
)


def test_defaults_are_filled_in_and_values_come_in_declared_order():
    assert list(bind(WEEKLY, {"top": 3, "week": "2013-W07"}).items()) == [
        ("week", "2013-W07"),
        ("airport", "JFK"),
        ("top", 3),
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weak": "2013-W07"}, ["'weak'", "did you mean 'week'?", "missing parameter 'week'"]),
        ({}, ["missing parameter 'week' (Week, string)"]),
        ({"week": 201307}, ["'week'", "expected string", "got integer 201307"]),
        ({"week": "2013-7"}, ["'week'", r"text matching ^\d{4}-W\d{2}$", "'2013-7'"]),
        ({"week": "2013-W07", "airport": "SFO"}, ["'airport'", "one of string 'JFK'", "'SFO'"]),
        ({"week": "2013-W07", "top": 0}, ["'top'", "at least 1", "integer 0"]),
        ({"week": "2013-W07", "top": 21}, ["'top'", "at most 20"]),
        ({"week": "2013-W07", "top": "5"}, ["'top'", "expected integer", "string '5'"]),
        ({"week": "2013-W07", "top": True}, ["'top'", "expected integer", "boolean True"]),
        ({"week": "2013-W07", "top": None}, ["'top'", "expected integer", "null"]),
        ({"week": "2013-W07", "top": RawText("five")}, ["'top'", "expected integer", "'five'"]),
        ({"week": "2013-W07", "top": RawText("5.5")}, ["'top'", "expected integer", "'5.5'"]),
    ],
)
def test_a_bad_parameter_is_named_with_what_was_expected_and_got(given, words):
    with pytest.raises(ParameterError) as caught:
        bind(WEEKLY, given, where="weekly.ipynb")
    for word in words:
        assert word in str(caught.value)
    assert caught.value.where == "weekly.ipynb"
    assert caught.value.exit_code == ExitCode.USAGE


def test_every_problem_is_reported_at_once():
    with pytest.raises(ParameterError) as caught:
        bind(WEEKLY, {"airprt": "JFK", "top": 99})
    assert len(caught.value.details["problems"]) == 3


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "2013", "2013"),
        ({"type": "string"}, "07", "07"),
        ({"type": "string"}, "True", "True"),
        ({"type": "string"}, "None", "None"),
        ({"type": "string"}, "", ""),
        ({"type": "integer"}, "07", 7),
        ({"type": "integer"}, "-3", -3),
        ({"type": "integer"}, "5.0", 5),
        ({"type": "integer"}, "9007199254740993", 9007199254740993),
        ({"type": "number"}, "0.1", 0.1),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "5", 5),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "null"}, "None", None),
        ({"type": ["string", "null"]}, "None", None),
        ({"type": ["integer", "string"]}, "7", 7),
        ({"type": ["integer", "string"]}, "07", "07"),
        ({"type": "array", "items": {"type": "string"}}, '["JFK", "LGA"]', ["JFK", "LGA"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"enum": [1, 2, "x"]}, "2", 2),
        ({"enum": ["1", "2"]}, "2", "2"),
        ({"anyOf": [{"type": "string", "minLength": 2}]}, "12", "12"),
        ({"title": "anything"}, "12", 12),
    ],
)
def test_command_line_text_takes_the_declared_type(schema, text, value):
    bound = bind(spec({"x": schema}), {"x": RawText(text)})["x"]
    assert bound == value
    assert type(bound) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", "1_000"),
        ("integer", "1e3"),
        ("number", "nan"),
        ("number", "inf"),
        ("number", "1e400"),
        ("number", "0.1000000000000000055"),
        ("boolean", "1"),
        ("array", "JFK,LGA"),
        ("object", "["),
        ("null", ""),
    ],
)
def test_text_that_would_lose_something_is_refused(kind, text):
    with pytest.raises(ParameterError, match=kind):
        bind(spec({"x": {"type": kind}}), {"x": RawText(text)})


@pytest.mark.parametrize(
    ("text", "value"),
    [("True", True), ("False", False), ("None", None), ("07", 7), ("1.5", 1.5), ("1e3", 1000.0), ("true", "true")],
)
def test_undeclared_text_is_read_as_papermill_reads_it(text, value):
    from papermill.cli import _resolve_type

    assert resolve_text(text) == value == _resolve_type(text)
    assert type(resolve_text(text)) is type(_resolve_type(text))


def test_an_airport_called_NAN_is_not_silently_a_float():
    with pytest.raises(ParameterError, match="got float nan"):
        bind(spec_from_cell("airport = 'JFK'"), {"airport": RawText("NAN")})


def test_raw_makes_every_string_command_line_text():
    assert bind(spec({"x": {"type": "integer"}}), {"x": "5"}, raw=True) == {"x": 5}


def test_a_float_that_is_whole_becomes_an_integer_where_one_is_declared():
    assert repr(bind(spec({"x": {"type": "integer"}}), {"x": 5.0})) == "{'x': 5}"


def test_additional_parameters_are_taken_only_when_the_schema_says_so():
    assert bind(spec({}, additionalProperties=True), {"b": 1, "a": RawText("x")}) == {"a": "x", "b": 1}
    with pytest.raises(ParameterError, match="expected integer"):
        bind(spec({}, additionalProperties={"type": "integer"}), {"a": "x"})


def test_a_rule_across_parameters_is_checked():
    both = spec({"a": {"type": "integer"}, "b": {"type": "integer"}}, dependentRequired={"a": ["b"]})
    with pytest.raises(ParameterError, match="together"):
        bind(both, {"a": 1})


def test_references_resolve_inside_the_declaration_and_never_outside():
    local = spec({"w": {"$ref": "#/$defs/week"}}, **{"$defs": {"week": {"type": "string", "minLength": 3}}})
    assert bind(local, {"w": RawText("2013")}) == {"w": "2013"}
    with pytest.raises(SchemaInvalid, match="leads out"):
        bind(spec({"w": {"$ref": "https://example.com/week.json"}}), {"w": "x"})


def test_a_date_format_is_checked():
    with pytest.raises(ParameterError, match="a valid date"):
        bind(spec({"day": {"type": "string", "format": "date"}}), {"day": "2013-02-30"})


def test_a_default_that_breaks_its_own_schema_is_an_error():
    with pytest.raises(ParameterError, match="default of parameter 'n'"):
        bind(spec({"n": {"type": "integer", "default": "many"}}), {})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "type object"),
        ({"type": "array"}, "type object"),
        ({"properties": {"x": "string"}}, "object of schemas"),
        ({"properties": {}, "required": "x"}, "list of names"),
        ({"properties": {"week": {}}, "required": ["weak"]}, "did you mean 'week'"),
        ({"properties": {"not a name": {}}}, "usable parameter name"),
        ({"properties": {"class": {}}}, "usable parameter name"),
    ],
)
def test_an_unusable_declaration_is_refused(schema, words):
    with pytest.raises(ParameterError, match=words):
        declared({"learngraph": {"parameters": schema}})


@pytest.mark.parametrize("schema", [{"type": "strng"}, {"pattern": "("}, {"minimum": "1"}])
def test_a_property_schema_that_is_no_schema_is_refused(schema):
    with pytest.raises(SchemaInvalid):
        bind(spec({"x": schema}), {"x": "value"})


def notebook(*cells, **metadata):
    return {"metadata": metadata, "cells": list(cells), "nbformat": 4, "nbformat_minor": 5}


def parameters_cell(source):
    return {"cell_type": "code", "id": "p", "metadata": {"tags": ["parameters"]}, "source": source}


CELL = "# what to look at\nweek = '2013-W07'\ntop: int = 5\nlimit = top * 2\nlabel: str\nx, y = 1, 2\ntop += 1\n"


def test_the_tagged_cell_declares_names_and_literal_defaults():
    found = spec_of(notebook(parameters_cell(CELL)))
    assert list(found.parameters) == ["week", "top", "limit", "label"]
    assert bind(found, {}) == {"week": "2013-W07"}  # `top` is changed after its literal, so its value is not known


def test_an_unknown_name_is_an_error_without_a_schema_too():
    with pytest.raises(ParameterError, match="did you mean 'week'"):
        bind(spec_of(notebook(parameters_cell(CELL))), {"weeek": "x"})


def test_parameters_for_a_notebook_that_takes_none_are_an_error():
    assert bind(spec_of(notebook()), {}) == {}
    with pytest.raises(ParameterError, match="takes no parameters, but 'week' was given"):
        bind(spec_of(notebook()), {"week": "x"})


def test_a_cell_in_another_language_takes_the_names_given():
    found = spec_of(notebook(parameters_cell("week <- 'x'"), kernelspec={"name": "ir", "language": "R"}))
    assert bind(found, {"week": RawText("2013")}) == {"week": 2013}


def test_importing_the_module_loads_no_heavy_library():
    code = (
        "import sys, learngraph_kernel.runs.parameters; print({'jsonschema', 'yaml', 'papermill'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
