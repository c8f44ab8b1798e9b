"""Reading cards: YAML, bindings, and cards against each other."""

from __future__ import annotations

import pytest

from learngraph_kernel.errors import ExitCode
from learngraph_kernel.evidence.metrics import (
    CardError,
    CardLibrary,
    card_hash,
    check_additivity,
    library_of,
    load_cards,
    parse_cards,
    read_card_texts,
)
from learngraph_kernel.evidence.metrics.bindings import (
    CellBinding,
    ColumnBinding,
    MetricBinding,
    ParameterBinding,
    parse_binding,
)

from .conftest import card, library

FULL = """\
set: flights_weekly
metrics:
  - name: flights
    version: 1.0.0
    title: {en: Flights, zh: 航班数}
    additivity: sum
    inputs: {n: "count(week)"}
    expression: n
  - name: on_time_rate
    version: 1.1.0
    title: {en: On-time rate, zh: 准点率}
    unit: "%"
    precision: 1
    additivity: ratio
    inputs:
      on_time: cell(week.r0.on_time)
      flown: sum(week.flown)
      target: input(target)
      base: metric(flights)
    expression: "100 * on_time / flown"
    required: true
    on_null: missing
    on_zero_division: zero
    exact: false
    description: Share of flights that left on time.
"""


def test_every_documented_key_is_read():
    _, rate = parse_cards(FULL, "metrics/any.yaml")
    assert (rate.set, rate.name, rate.version, rate.unit, rate.precision) == (
        "flights_weekly", "on_time_rate", "1.1.0", "%", 1,
    )  # fmt: skip
    assert rate.title == {"en": "On-time rate", "zh": "准点率"}
    assert (rate.additivity, rate.required, rate.on_null, rate.on_zero_division) == ("ratio", True, "missing", "zero")
    assert [item.name for item in rate.inputs] == ["on_time", "flown", "target", "base"]
    assert rate.depends_on == ("flights",)
    assert rate.snapshots == ("week",)
    assert rate.place == "metrics/any.yaml:9: metric on_time_rate 1.1.0"


def test_what_a_card_leaves_out_has_a_stated_default():
    (found,) = parse_cards("metrics:\n- {name: m, version: 1.0.0, expression: '1'}", "metrics/weekly.yaml")
    assert found.set == "weekly"
    assert found.title == {"en": "m"}
    assert (found.unit, found.precision, found.additivity, found.required, found.exact) == (
        None,
        None,
        "none",
        False,
        False,
    )
    assert (found.on_null, found.on_zero_division) == ("missing", "missing")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1", "not a mapping"),
        ("", "not a mapping"),
        ("metrics: 5", "must be a list of cards"),
        ("metrics: []", "must be a list of cards"),
        ("metric: []", "did you mean 'metrics'"),
        ("set: 5\nmetrics: []", "`set` must be a name"),
        ("metrics:\n- 5", "metric number 1 is not a mapping"),
        ("metrics:\n- {name: m, version: 1.0.0}", "`expression` is missing"),
        ("metrics:\n- {version: 1.0.0, expression: '1'}", "`name` is missing"),
        ("metrics:\n- {name: m, expression: '1'}", "`version` is missing"),
        ("metrics:\n- name: m\n  name: n", "weekly.yaml:3: not valid YAML: the key 'name' stands twice"),
        ("metrics:\n- name: m\n  unit: %", "weekly.yaml:3: not valid YAML"),
        ("metrics: &a [*a]", "not valid YAML: found unconstructable recursive node"),
        ("metrics:\n- &b {name: m}\n- {<<: *b}", "merges are not read"),
        ("a: !!python/object/apply:os.system [id]", "not valid YAML"),
        ("metrics:\n- {? [a] : 1}", "a key must be plain text"),
        ("\x00", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_set_of_cards_is_refused(text, words):
    with pytest.raises(CardError) as caught:
        parse_cards(text, "metrics/weekly.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("metrics/weekly.yaml")
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"expresion": "1"}, "did you mean 'expression'"),
        ({"onzero": 1}, "unknown key 'onzero' in metric m"),
        ({"name": "a b"}, "`name`: expected a name"),
        ({"version": 1.1}, "semantic version with three parts, such as 1.0.0, got 1.1"),
        ({"version": "1.1"}, "semantic version"),
        ({"title": 5}, "`title`: expected text"),
        ({"title": {}}, "`title`: expected text"),
        ({"unit": 5}, "`unit`: expected text, got 5"),
        ({"precision": -1}, "`precision`: expected a whole number from 0 to 30"),
        ({"precision": True}, "`precision`"),
        ({"precision": "1"}, "`precision`"),
        ({"additivity": "average"}, "one of sum, semi-additive, ratio, none"),
        ({"required": "yes"}, "`required`: expected true or false"),
        ({"on_null": "skip"}, "`on_null`: expected one of missing, zero, error"),
        ({"on_zero_division": None}, "`on_zero_division`"),
        ({"exact": 1}, "`exact`"),
        ({"inputs": ["x"]}, "`inputs`: expected a mapping"),
        ({"inputs": {"x": 5}}, "input x: `binding`: expected text"),
        ({"inputs": {"min": "input(a)"}}, "'min' cannot name an input"),
        ({"inputs": {"a-b": "input(a)"}}, "'a-b' cannot name an input"),
        ({"inputs": {"x": "cell(week)"}}, "'cell(week)' is not a cell"),
        ({"expression": 5}, "`expression`: expected text"),
        ({"expression": "x + z"}, "unknown name 'z'"),
        ({"inputs": {"x": "metric(m)"}}, "refers to itself"),
        ({"inputs": {"x": "metric(mm)"}}, "metric(mm) is not in the set 'weekly' — did you mean 'm'"),
    ],
)
def test_a_wrong_card_is_named_with_its_file_and_line(fields, words):
    with pytest.raises(CardError) as caught:
        library(card(**{"expression": "x", **fields}))
    assert words in str(caught.value)
    assert str(caught.value).startswith("metrics/weekly.yaml:2")


def test_nested_aliases_do_not_blow_up_a_message():
    bomb = "\n".join([f"k{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]" for i in range(12)])
    with pytest.raises(CardError) as caught:
        parse_cards(f"metrics:\n- name: m\n  version: 1.0.0\n  expression: '1'\n{bomb.replace('k', '  k')}", "m.yaml")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cell(week.r0.on_time)", CellBinding("week", 0, "on_time")),
        ("cell(week, 12, on_time)", CellBinding("week", 12, "on_time")),
        ('cell(week, 0, "on time")', CellBinding("week", 0, "on time")),
        (" sum( week.flown ) ", ColumnBinding("sum", "week", "flown")),
        ("mean(week, flown)", ColumnBinding("mean", "week", "flown")),
        ("count(week.flown)", ColumnBinding("count", "week", "flown")),
        ("count(week)", ColumnBinding("count", "week", None)),
        ("min(周.航班)", ColumnBinding("min", "周", "航班")),
        ("max(week.a.b)", ColumnBinding("max", "week", "a.b")),
        ("input(target)", ParameterBinding("target")),
        ("metric(flights)", MetricBinding("flights")),
    ],
)
def test_a_binding_is_read(text, expected):
    assert parse_binding(text, where="m") == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("week.r0.x", "is not a binding"),
        ("cel(week.r0.x)", "did you mean 'cell'"),
        ("median(week.x)", "unknown function 'median'"),
        ("sum(week)", "names no column"),
        ("sum(metric(rate))", "aggregates of metrics or inputs cannot be expressed"),
        ("mean(input(x))", "aggregates of metrics"),
        ("input(a b)", "needs one name"),
        ("metric()", "needs one name"),
        ("cell(week.r-1.x)", "is not a cell"),
        ("cell(week.0.x)", "is not a cell"),
        ("", "is not a binding"),
    ],
)
def test_a_wrong_binding_is_refused_with_what_may_be_written(text, words):
    with pytest.raises(CardError) as caught:
        parse_binding(text, where="m")
    assert words in str(caught.value)


def test_a_circle_of_metrics_is_shown():
    a, b, c = (card("x", name=n, inputs={"x": f"metric({o})"}) for n, o in (("a", "b"), ("b", "c"), ("c", "a")))
    with pytest.raises(CardError, match="a → b → c → a"):
        library(a, b, c)


def test_a_long_chain_is_no_circle():
    chain = [card("x", name=f"m{i}", inputs={"x": f"metric(m{i + 1})"}) for i in range(1500)]
    assert len(library(*chain, card("1", name="m1500", inputs={})).newest("weekly")) == 1501


def test_one_version_cannot_be_defined_twice():
    with pytest.raises(CardError, match=r"defined twice.*weekly\.yaml:2"):
        library(card("x"), card("y"))


def test_an_exact_card_cannot_rest_on_an_inexact_one():
    with pytest.raises(CardError, match="rests on 'a'"):
        library(card("x", name="a"), card("x", name="b", exact=True, inputs={"x": "metric(a)"}))


def test_the_newest_version_is_by_number_and_a_pre_release_waits_for_its_release():
    found = library(card(version="1.9.0"), card(version="1.10.0"), card(version="2.0.0-rc.1"))
    assert found.newest("weekly")["m"].version == "1.10.0"


def test_an_unknown_set_is_named_with_the_nearest():
    with pytest.raises(CardError, match="did you mean 'weekly'"):
        library(card()).cards("weakly")
    with pytest.raises(CardError, match="there are no metric sets here"):
        CardLibrary.of([]).cards("weekly")


def test_the_hash_follows_the_definition_and_not_the_description():
    (plain,) = parse_cards(f"metrics:\n{card('x')}", "a/weekly.yaml")
    (described,) = parse_cards(f"metrics:\n{card('x', description='words')}", "b/weekly.yaml")
    (changed,) = parse_cards(f"metrics:\n{card('x + 0')}", "a/weekly.yaml")
    assert card_hash(plain) == card_hash(described) != card_hash(changed)
    assert len(card_hash(plain)) == 64


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (card("x / y", additivity="ratio"), []),
        (card("x + y", additivity="ratio"), ["ratio_without_division"]),
        (card("x / y", additivity="sum"), ["sum_with_division"]),
        (card("x", additivity="sum", inputs={"x": "mean(week.x)"}), ["sum_of_non_additive"]),
        (card("x"), ["unused_input"]),
        (card("x", additivity="sum", inputs={"x": "sum(week.x)"}), []),
    ],
)
def test_a_questionable_additivity_is_found(text, codes):
    (found,) = library(text).cards("weekly")
    assert [finding.code for finding in check_additivity(found)] == codes


# -- files ----------------------------------------------------------------------------------------------------


def test_a_folder_of_cards_is_read_in_order_of_names(tmp_path):
    (tmp_path / "b.yaml").write_text(f"metrics:\n{card()}")
    (tmp_path / "a.yml").write_text(FULL)
    (tmp_path / "notes.txt").write_text("not a card")
    assert list(load_cards(tmp_path).sets) == ["b", "flights_weekly"]


def test_recorded_texts_give_the_same_library_after_the_files_changed(tmp_path):
    folder = tmp_path / "metrics"
    folder.mkdir()
    (folder / "weekly.yaml").write_text(f"metrics:\n{card()}")
    before, texts = load_cards(folder), read_card_texts(folder)
    (folder / "weekly.yaml").write_text("metrics: []")
    assert list(texts) == ["metrics/weekly.yaml"]
    assert library_of(texts) == before


def test_no_folder_is_no_cards(tmp_path):
    assert load_cards(tmp_path / "metrics").sets == {}


def test_one_set_in_two_files_is_refused(tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(f"set: s\nmetrics:\n{card()}")
    with pytest.raises(CardError, match=r"b\.yaml: the set 's' is already defined in .*a\.yaml"):
        load_cards(tmp_path)


def test_a_file_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CardError, match=r"a\.yaml: the file cannot be read"):
        load_cards(tmp_path)
