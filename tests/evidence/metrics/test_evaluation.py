"""Evaluating cards: values, nulls, zero divisions, lineage, versions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learngraph_kernel.errors import ExitCode
from learngraph_kernel.evidence.metrics import (
    BindingError,
    CardError,
    InexactInput,
    MetricFailed,
    MetricVersionConflict,
    TruncatedInput,
    evaluate_set,
)
from learngraph_kernel.evidence.metrics.inputs import exact_sum
from learngraph_kernel.evidence.values import MetricInput

from .conftest import Table, book, card, library

WEEK = Table("Q1", {"on_time": [5012, 7], "flown": [6000, 77], "amount": [Decimal("0.10"), Decimal("0.20")]})
PREV = Table("Q2", {"flown": [6000]})


def run(lib, bindings=None, tables=(WEEK, PREV), **options):
    inputs = options.pop("inputs", {})
    bindings = {"week": "Q1"} if bindings is None else bindings
    return {r.name: r for r in evaluate_set(lib, "weekly", bindings, book=book(*tables, **inputs), **options)}


def column(aggregate, values, **fields):
    lib = library(card("x", inputs={"x": f"{aggregate}(week.v)"}, **fields))
    return run(lib, tables=(Table("Q1", {"v": values}),))["m"]


def test_a_result_keeps_everything_a_reader_opens():
    lib = library(
        card("n", name="flights", inputs={"n": "sum(week.flown)"}, unit="flights", precision=0),
        card(
            "100 * on_time / flown",
            name="rate",
            title={"zh": "准点率"},
            unit="%",
            precision=1,
            additivity="ratio",
            required=True,
            inputs={"on_time": "cell(week.r0.on_time)", "flown": "metric(flights)", "target": "input(target)"},
        ),
    )
    result = run(lib, inputs={"target": 80})["rate"]
    assert result.value == Decimal(501200) / 6077 or abs(result.value - Decimal(501200) / 6077) < Decimal("1e-20")
    assert (result.expression, result.substituted) == ("100 * on_time / flown", "100 * 5012 / 6077")
    assert (result.unit, result.precision, result.state, result.reason, result.required) == ("%", 1, "ok", None, True)
    assert (result.set, result.additivity, result.version, result.title) == (
        "weekly",
        "ratio",
        "1.0.0",
        {"zh": "准点率"},
    )
    assert result.inputs == (
        MetricInput("on_time", "cell(week.r0.on_time)", ("Q1.r0.on_time",), 5012),
        MetricInput("flown", "metric(flights)", ("m:flights",), Decimal(6077)),
        MetricInput("target", "input(target)", ("i:target",), 80),
    )


def test_results_come_in_file_order_whatever_depends_on_what():
    lib = library(card("x", name="b", inputs={"x": "metric(a)"}), card("1", name="a", inputs={}))
    assert list(run(lib, {})) == ["b", "a"]


def test_two_logical_names_lead_to_two_snapshots_and_a_ref_stands_for_itself():
    lib = library(card("a - b + c", inputs={"a": "sum(week.flown)", "b": "sum(prev.flown)", "c": "cell(Q2.r0.flown)"}))
    result = run(lib, {"week": "Q1", "prev": "Q2"})["m"]
    assert result.value == 6077
    assert [item.refs for item in result.inputs] == [("Q1.flown",), ("Q2.flown",), ("Q2.r0.flown",)]


# -- aggregates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "values", "expected"),
    [
        ("sum", [1, 2, 3], 6),
        ("sum", [0.1, 0.2], Decimal("0.3")),
        ("sum", [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("sum", [1, None, float("nan"), 2], 3),
        ("sum", [True, False, True], 2),
        ("sum", [1e16, 1.0, -1e16], 1),
        ("sum", [], None),
        ("sum", [None], None),
        ("count", [1, None, "text", float("nan")], 2),
        ("count", [], 0),
        ("min", [3, None, -1], -1),
        ("max", [3, None, 2.5], 3),
        ("min", [], None),
        ("mean", [1, 2], Decimal("1.5")),
        ("mean", [None, 4], 4),
        ("mean", [], None),
    ],
)
def test_an_aggregate_leaves_nulls_out(aggregate, values, expected):
    assert column(aggregate, values).value == expected


def test_count_of_a_snapshot_counts_its_rows():
    result = run(library(card("n", inputs={"n": "count(week)"})))["m"]
    assert (result.value, result.inputs[0].refs) == (2, ("Q1",))


def test_an_empty_sum_is_missing_with_the_reason():
    result = column("sum", [])
    assert (result.state, result.reason) == ("missing", "input x: Q1.v holds no values")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_a_sum_of_floats_does_not_depend_on_their_order(values):
    numbers = [Decimal(repr(value)) for value in values]
    assert exact_sum(numbers) == exact_sum(reversed(numbers))
    assert Fraction(exact_sum(numbers)) == sum((Fraction(repr(value)) for value in values), Fraction(0))


# -- nulls and zero divisions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("null", [None, float("nan"), float("inf"), Decimal("NaN")])
def test_a_null_gives_no_value_and_says_which_input(one, null):
    result = one("x + y", {"x": null, "y": 2})
    assert (result.state, result.value) == ("missing", None)
    assert result.reason.startswith("input x: Q1.r0.x is ")
    assert result.substituted == "null + 2"
    assert result.inputs[0].value is None


def test_a_null_counts_as_zero_when_the_card_says_so(one):
    result = one("x + y", {"x": None, "y": 2}, on_null="zero")
    assert (result.state, result.value) == ("ok", 2)


def test_a_null_stops_when_the_card_says_so(one):
    with pytest.raises(
        MetricFailed, match=r"weekly\.yaml:2: metric m 1\.0\.0: input x: Q1\.r0\.x is null: null \+ 2"
    ) as e:
        one("x + y", {"x": None, "y": 2}, on_null="error")
    assert e.value.exit_code == ExitCode.FAILED


def test_an_unused_null_does_no_harm(one):
    assert one("y", {"x": None, "y": 2}, on_null="error").value == 2


def test_a_null_that_the_card_handles_is_no_null(one):
    assert one("coalesce(x, y)", {"x": None, "y": 2}, on_null="error").value == 2


def test_a_written_null_is_a_missing_value(one):
    result = one("x / y if y >= 30 else None", {"x": 1, "y": 2})
    assert (result.state, result.reason) == ("missing", "the expression gives null")


def test_a_zero_division_gives_no_value_and_says_where(one):
    result = one("100 * x / y - 1", {"x": 1, "y": 0})
    assert (result.state, result.value, result.reason) == ("missing", None, "`100 * x / y` divides by zero")


def test_a_zero_division_makes_the_metric_zero_when_the_card_says_so(one):
    result = one("x / y - 1", {"x": 1, "y": 0}, on_zero_division="zero")
    assert (result.state, result.value, result.reason) == ("ok", 0, "`x / y` divides by zero; the card says 0")


def test_a_zero_division_stops_when_the_card_says_so(one):
    with pytest.raises(MetricFailed, match=r"divides by zero: 1 / 0"):
        one("x / y", {"x": 1, "y": 0}, on_zero_division="error")


def test_null_and_zero_division_are_told_apart(one):
    assert one("x / y", {"x": 1, "y": None}, on_zero_division="error").state == "missing"
    assert one("x / y", {"x": 1, "y": 0}, on_null="error").state == "missing"


def test_a_root_of_a_negative_number_is_missing_with_the_reason(one):
    result = one("sqrt(x)", {"x": -1})
    assert (result.state, result.reason) == ("missing", "sqrt(-1) has no value")


def test_a_metric_that_rests_on_a_missing_one_says_so():
    lib = library(card("x / 0", name="a", inputs={"x": "count(week)"}), card("x", name="b", inputs={"x": "metric(a)"}))
    assert run(lib)["b"].reason == "input x: metric a has no value (`x / 0` divides by zero)"


def test_a_cell_of_a_snapshot_without_rows_is_null():
    result = run(library(card("x")), tables=(Table("Q1", {"x": [], "y": []}),))["m"]
    assert (result.state, result.reason) == ("missing", "input x: Q1 has no rows")


# -- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e22, "10000000000000000000000"),
        (5e-324, "5E-324"),
        (True, "1"),
        (2**70, str(2**70)),
        (Decimal("1.10"), "1.10"),
        (-0.0, "0.0"),
    ],
)
def test_a_cell_goes_in_as_the_digits_a_person_sees(one, value, text):
    assert str(one("x", {"x": value}).value) == text


@pytest.mark.parametrize("value", ["12", dt.date(2013, 2, 11), dt.timedelta(1), b"1"])
def test_what_is_no_number_is_refused(one, value):
    with pytest.raises(BindingError, match=r"Q1\.r0\.x holds \w+ .*, not a number"):
        one("x", {"x": value})


def test_an_exact_card_refuses_a_float(one):
    with pytest.raises(InexactInput, match=r"Q1\.r0\.x holds the float 0\.1.*CAST"):
        one("x", {"x": 0.1}, exact=True)
    with pytest.raises(InexactInput, match=r"Q1\.r1\.v holds the float"):
        column("sum", [1, 2.5], exact=True)
    with pytest.raises(InexactInput, match="i:rate"):
        run(library(card("r", exact=True, inputs={"r": "input(rate)"})), {}, inputs={"rate": 0.1})


def test_an_exact_card_takes_integers_decimals_and_nulls(one):
    assert str(one("x * y", {"x": Decimal("19.99"), "y": 3}, exact=True).value) == "59.97"
    assert one("x", {"x": None}, exact=True).state == "missing"


# -- bindings that lead nowhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("binding", "words"),
    [
        ("cell(week.r0.flwn)", "Q1 has no column 'flwn' — did you mean 'flown'"),
        ("sum(week.flwn)", "Q1 has no column 'flwn'"),
        ("cell(week.r2.flown)", "Q1 has no row 2 — rows are r0 to r1"),
        ("sum(prev.flown)", "nothing is bound to the snapshot name 'prev'"),
        ("input(targt)", "the run has no input 'targt' — did you mean 'target'"),
    ],
)
def test_a_binding_that_leads_nowhere_is_named(binding, words):
    with pytest.raises(BindingError) as caught:
        run(library(card("z", inputs={"z": binding, "w": "count(week)"})), inputs={"target": 1})
    assert words in str(caught.value)
    assert f"metric m 1.0.0, input z = {binding}" in str(caught.value)


def test_a_snapshot_of_another_run_is_no_snapshot_of_this_one():
    with pytest.raises(BindingError, match="'week' is bound to 'Q9', which is no snapshot of this run"):
        run(library(card("x")), {"week": "Q9"})


def test_a_binding_nobody_reads_is_a_slip():
    with pytest.raises(BindingError, match=r"'wek' is bound, but no metric.*did you mean 'week'"):
        run(library(card("x")), {"wek": "Q1"})


@pytest.mark.parametrize("binding", ["cell(week.r0.v)", "sum(week.v)", "count(week)"])
def test_a_truncated_snapshot_cannot_feed_a_metric(binding):
    cut = Table("Q1", {"v": [1]}, truncated="rows")
    with pytest.raises(TruncatedInput, match=r"Q1 is truncated \(limit on rows\)"):
        run(library(card("x", inputs={"x": binding})), tables=(cut,))


# -- versions -----------------------------------------------------------------------------------------------------

VERSIONS = library(
    card("n", name="flights", version="1.0.0", inputs={"n": "sum(week.flown)"}),
    card("n - 77", name="flights", version="1.1.0", inputs={"n": "sum(week.flown)"}),
    card("2 * f", name="double", inputs={"f": "metric(flights)"}),
    card("n", name="rows", inputs={"n": "count(week)"}),
)
OLD = {"flights": "1.0.0"}


def test_the_newest_version_is_used_without_pins():
    found = run(VERSIONS)
    assert (found["flights"].version, found["flights"].value, found["double"].value) == ("1.1.0", 6000, 12000)


def test_a_pin_on_the_newest_version_is_no_conflict():
    assert run(VERSIONS, pins={"flights": "1.1.0"}, formal=True)["flights"].value == 6000


def test_a_newer_version_stops_a_formal_run_that_has_no_rule():
    with pytest.raises(MetricVersionConflict) as caught:
        run(VERSIONS, pins=OLD, formal=True)
    assert "flights: pinned 1.0.0, newest 1.1.0" in str(caught.value)
    assert "recompute, dual or incomparable" in str(caught.value)
    assert caught.value.details["flights"]["pinned"] == "1.0.0"


def test_an_exploratory_run_without_a_rule_uses_the_pinned_version_and_says_so():
    found = run(VERSIONS, pins=OLD)
    assert (found["flights"].version, found["flights"].value, found["double"].value) == ("1.0.0", 6077, 12154)
    assert found["flights"].reason == "pinned to version 1.0.0; version 1.1.0 exists"


@pytest.mark.parametrize("formal", [True, False])
def test_recompute_uses_the_new_version(formal):
    found = run(VERSIONS, pins=OLD, rule="recompute", formal=formal)
    assert (found["flights"].version, found["flights"].value, found["flights"].also) == ("1.1.0", 6000, None)


def test_dual_gives_both_and_carries_on_to_what_depends_on_it():
    found = run(VERSIONS, pins=OLD, rule="dual", formal=True)
    assert (found["flights"].value, found["flights"].also.value, found["flights"].also.version) == (6000, 6077, "1.0.0")
    assert (found["double"].value, found["double"].also.value) == (12000, 12154)
    assert found["rows"].also is None


def test_incomparable_gives_no_value_and_carries_on_to_what_depends_on_it():
    found = run(VERSIONS, pins=OLD, rule="incomparable", formal=True)
    assert (found["flights"].state, found["flights"].value) == ("incomparable", None)
    assert found["flights"].reason == "version 1.1.0 is not comparable with the pinned version 1.0.0"
    assert (found["double"].state, found["rows"].state) == ("incomparable", "ok")


def test_a_pinned_version_that_is_gone_matters_only_where_it_is_needed():
    gone = {"flights": "0.9.0"}
    assert run(VERSIONS, pins=gone, rule="recompute", formal=True)["flights"].value == 6000
    for options in ({"rule": "dual"}, {}):
        with pytest.raises(CardError, match=r"pinned to version 0\.9\.0, which does not exist"):
            run(VERSIONS, pins=gone, **options)


@pytest.mark.parametrize(
    ("pins", "words"),
    [({"flight": "1.0.0"}, "did you mean 'flights'"), ({"flights": "3.0.0"}, "version 3.0.0, which does not exist")],
)
def test_a_pin_on_nothing_is_an_error(pins, words):
    with pytest.raises(CardError) as caught:
        run(VERSIONS, pins=pins)
    assert words in str(caught.value)


def test_the_book_is_left_alone():
    given = book(WEEK, PREV)
    evaluate_set(VERSIONS, "weekly", {"week": "Q1"}, book=given)
    assert given.metrics == {}
