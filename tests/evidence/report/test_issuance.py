"""Which tier a run gets: the contract, the evidence, and everything that keeps the tier down."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from learngraph_kernel.evidence.document import ReportDocument, build_document
from learngraph_kernel.evidence.issuance import BadContract, Contract, Issuance, issue
from learngraph_kernel.evidence.values import Book, MetricInput
from tests.evidence.report.report_samples import ListSnapshot, book, metric


def sound() -> Book:
    """A run in which nothing is missing."""
    run = book()
    del run.metrics["weather_share"]
    return run


def report(run: Book, text: str = "There were [[m:flights]] flights.") -> ReportDocument:
    return build_document(text, run, formal=True)


def decide(contract: dict[str, Any], run: Book | None = None, result: Any = None, *, formal: bool = True) -> Issuance:
    run = run or sound()
    return issue(contract, run, report(run), result, formal=formal)


def test_a_run_that_keeps_its_contract_is_formal() -> None:
    outcome = decide({"required_metrics": ["flights"], "required_rows": {"Q1": 1}, "report": True})
    assert (outcome.status, outcome.tier, outcome.missing, outcome.reasons) == ("issued", "formal", (), ())


def test_an_exploratory_run_has_no_tier_but_all_reasons() -> None:
    outcome = decide({"required_rows": {"Q1": 5}}, formal=False)
    assert (outcome.status, outcome.tier) == ("issued", None)
    assert [reason.code for reason in outcome.reasons] == ["required_rows"]


def test_too_few_rows_withhold_the_report_with_the_reason() -> None:
    run = sound()
    run.snapshots["Q3"] = ListSnapshot("Q3", [("n", "int64")], [])
    outcome = decide({"required_rows": {"Q3": 1}}, run)
    assert (outcome.status, outcome.tier) == ("withheld", "withheld")
    assert outcome.reasons[0].message == "Q3 has no rows; the contract asks for at least 1"


def test_a_query_that_never_ran_withholds() -> None:
    assert decide({"required_rows": {"Q7": 1}}).tier == "withheld"


def test_a_required_metric_without_a_value_degrades_and_is_named() -> None:
    outcome = decide({"required_metrics": ["flights", "weather_share"]}, book())
    assert (outcome.tier, outcome.missing) == ("degraded", ("weather_share",))
    assert "no weather record" in outcome.reasons[0].message


def test_a_required_metric_that_was_never_evaluated_degrades() -> None:
    assert decide({"required_metrics": ["nothing"]}).missing == ("nothing",)


def test_a_card_that_says_required_counts_without_the_contract() -> None:
    assert decide({}, book()).missing == ("weather_share",)


def test_an_incomparable_required_metric_degrades() -> None:
    run = book(metrics={"x": metric("x", None, state="incomparable", required=True, reason="2.0.0 is newer")})
    outcome = issue({}, run, report(run, "Nothing to say."), None, formal=True)
    assert (outcome.tier, outcome.reasons[0].code) == ("degraded", "incomparable_metric")


def test_blocking_violations_fail_a_formal_run() -> None:
    run = sound()
    outcome = issue({}, run, report(run, "Up 12 %."), None, formal=True)
    assert (outcome.status, outcome.tier) == ("failed", None)
    assert outcome.reasons[0].code == "bare_number"


def test_blocking_violations_do_not_fail_an_exploratory_run() -> None:
    run = sound()
    assert issue({}, run, report(run, "Up 12 %."), None, formal=False).status == "issued"


def test_violations_handed_in_replace_those_of_the_document() -> None:
    run = sound()
    assert issue({}, run, report(run, "Up 12 %."), None, formal=True, violations=[]).tier == "formal"


@pytest.mark.parametrize("document", [None, ""])
def test_a_promised_report_that_is_not_there_withholds(document: str | None) -> None:
    run = sound()
    given = None if document is None else report(run, document)
    outcome = issue({"report": True}, run, given, None, formal=True)
    assert (outcome.tier, outcome.reasons[0].code) == ("withheld", "no_report")


def test_no_report_is_fine_when_none_was_promised() -> None:
    assert issue({}, sound(), None, None, formal=True).tier == "formal"


def test_a_truncated_snapshot_under_a_metric_withholds() -> None:
    run = sound()
    run.snapshots["Q1"] = ListSnapshot("Q1", [("flights", "int64")], [(1903,)], truncated="rows")
    outcome = decide({"required_metrics": ["flights"]}, run)
    assert (outcome.tier, outcome.reasons[0].code, outcome.reasons[0].about) == ("withheld", "truncated_snapshot", "Q1")


def test_a_truncated_snapshot_under_a_merged_one_withholds() -> None:
    run = sound()
    run.snapshots["Q2"] = ListSnapshot("Q2", [("n", "int64")], [(1,)], truncated="bytes")
    run.snapshots["Q3"] = ListSnapshot("Q3", [("flights", "int64")], [(1,)], derived_from=("Q2",))
    run.metrics["flights"] = metric("flights", "1", inputs=(MetricInput("n", "cell(w.r0.n)", ("Q3.r0.flights",), 1),))
    assert decide({}, run).reasons[0].code == "truncated_snapshot"


@pytest.mark.parametrize("ref", ["Q9.r0.n", "Q1.r7.flights", "Q1.nothing", "i:nothing", "m:nothing"])
def test_an_input_that_leads_nowhere_withholds(ref: str) -> None:
    run = sound()
    run.metrics["flights"] = metric("flights", "1", inputs=(MetricInput("n", "…", (ref,), 1),))
    outcome = decide({"required_metrics": ["flights"]}, run)
    assert (outcome.tier, outcome.reasons[0].code) == ("withheld", "untraced_input")
    assert ref in outcome.reasons[0].message


def test_an_input_is_traced_through_other_metrics() -> None:
    run = sound()
    run.metrics["base"] = metric("base", "1", inputs=(MetricInput("n", "…", ("Q9.r0.n",), 1),))
    run.metrics["flights"] = metric("flights", "1", inputs=(MetricInput("b", "metric(base)", ("m:base",), 1),))
    assert decide({"required_metrics": ["flights"]}, run).reasons[0].about == "m:base"


def test_metrics_that_nothing_rests_on_are_not_held_against_the_run() -> None:
    run = sound()
    run.metrics["aside"] = metric("aside", "1", inputs=(MetricInput("n", "…", ("Q9.r0.n",), 1),))
    assert decide({}, run).tier == "formal"


SCHEMA = {"type": "object", "required": ["flights"], "properties": {"flights": {"type": "integer"}}}


def test_a_result_that_keeps_its_schema_is_fine() -> None:
    assert decide({"output_schema": SCHEMA}, result={"flights": 1903}).tier == "formal"


@pytest.mark.parametrize("formal", [True, False])
def test_a_result_that_breaks_its_schema_fails_with_the_path(formal: bool) -> None:
    outcome = decide({"output_schema": SCHEMA}, result={"flights": "many"}, formal=formal)
    assert (outcome.status, outcome.tier) == ("failed", None)
    assert outcome.reasons[0].about == "result.flights"


def test_a_promised_result_that_is_not_there_fails() -> None:
    missing = decide({"output_schema": SCHEMA}, result=None)
    assert missing.status == "failed"
    assert [reason.message for reason in missing.reasons] == [
        "the contract asks for a result, and lg.output was not called"
    ]


@pytest.mark.parametrize(
    ("result", "tier"),
    [
        ({"flights": 1903, "rate": 82.16455, "nested": {"list": [780, 79.1]}}, "formal"),
        ({"revenue": {"$decimal": "1234567.80"}}, "formal"),
        ({"note": "no numbers", "ok": True, "none": None}, "formal"),
        ({"rows": 6}, "formal"),
        ({"flights": 1904}, "withheld"),
        ({"nested": {"list": [1903, 12345]}}, "withheld"),
    ],
)
def test_numbers_of_the_result_must_be_values_of_the_run(result: Any, tier: str) -> None:
    outcome = decide({"uncited_outputs": "refuse"}, result=result)
    assert outcome.tier == tier
    assert all(reason.code == "uncited_output" for reason in outcome.reasons)


def test_withheld_is_worse_than_degraded_and_both_are_listed() -> None:
    outcome = decide({"required_rows": {"Q7": 1}}, book())
    assert outcome.tier == "withheld"
    assert [reason.code for reason in outcome.reasons] == ["required_rows", "missing_metric"]


def test_the_outcome_stands_in_the_document() -> None:
    run = book()
    document = report(run)
    issued = issue({}, run, document, None, formal=True).apply(document)
    assert (issued.tier, issued.missing) == ("degraded", ("weather_share",))
    assert issued.as_json()["reasons"][0]["code"] == "missing_metric"


@pytest.mark.parametrize(
    ("contract", "word"),
    [
        ({"required_metric": []}, "required_metrics"),
        ({"required_metrics": "flights"}, "required_metrics"),
        ({"required_rows": {"Q1": -1}}, "required_rows"),
        ({"required_rows": {"Q1": True}}, "required_rows"),
        ({"report": "yes"}, "report"),
        ({"uncited_outputs": "maybe"}, "uncited_outputs"),
        ({"output_schema": {"type": "no such type"}}, "output_schema"),
    ],
)
def test_a_contract_that_cannot_be_read_names_the_key(contract: dict[str, Any], word: str) -> None:
    with pytest.raises(BadContract) as caught:
        decide(contract)
    assert word in str(caught.value)


def test_a_contract_object_is_taken_as_it_is() -> None:
    assert issue(Contract(required_metrics=("flights",)), sound(), None, None, formal=True).tier == "formal"


@pytest.mark.parametrize("text", ["It was [[v:Q1.r0.share]].", "[[table:Q1]]", "[[table:Q1 cols=share]]"])
def test_a_cited_number_that_the_statement_itself_states_withholds(text: str) -> None:
    run = sound()
    run.snapshots["Q1"] = typed_in()
    outcome = decide_on(run, text)
    assert (outcome.tier, outcome.reasons[0].code, outcome.reasons[0].about) == (
        "withheld",
        "untraced_input",
        "Q1.share",
    )


def test_a_metric_over_a_number_that_the_statement_states_withholds() -> None:
    run = sound()
    run.snapshots["Q1"] = typed_in()
    entry = MetricInput("n", "cell(week.r0.share)", ("Q1.r0.share",), 45)
    run.metrics["flights"] = replace(run.metrics["flights"], inputs=(entry,))
    outcome = decide_on(run, "[[m:flights]]")
    assert (outcome.tier, outcome.reasons[0].code) == ("withheld", "untraced_input")


def test_a_label_and_the_data_beside_a_typed_number_may_be_cited() -> None:
    run = sound()
    run.snapshots["Q1"] = typed_in()
    assert decide_on(run, "[[v:Q1.r0.flights]] [[v:Q1.r0.label]] [[table:Q1 cols=label,flights]]").tier == "formal"


def typed_in() -> ListSnapshot:
    columns = [("flights", "int64"), ("share", "int32"), ("label", "string")]
    snapshot = ListSnapshot("Q1", columns, [(1903, 45, "all")])
    snapshot.info = replace(snapshot.info, constants=("share", "label"))
    return snapshot


def decide_on(run: Book, text: str) -> Issuance:
    return issue({}, run, build_document(text, run, formal=True), None, formal=True)
