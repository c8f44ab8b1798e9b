"""From a source with citations to a report document: resolution, violations, openings, stable bytes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.evidence.document import ReportDocument, ReportTooLong, build_document
from learngraph_kernel.evidence.values import MetricInput
from tests.evidence.report.report_samples import CHINESE, ENGLISH, ListSnapshot, book, metric


def codes(source: str, **options: object) -> list[str]:
    return [violation.code for violation in build_document(source, book(), **options).violations]  # type: ignore[arg-type]


def shown(source: str, language: str = "en") -> list[str]:
    return [citation.display for citation in build_document(source, book(), language=language).citations]


def test_the_english_sample_resolves_whole() -> None:
    document = build_document(ENGLISH, book(), language="en", formal=True)
    assert [violation.code for violation in document.violations] == ["missing_metric"]
    texts = [citation.display for citation in document.citations]
    assert texts[:7] == ["2013-W07", "1,903", "JFK", "82.2 %", "CN¥1,234,567.80", "CN¥1.23M", "318.2"]


def test_the_chinese_sample_resolves_whole() -> None:
    document = build_document(CHINESE, book(), language="zh", formal=True)
    assert [violation.code for violation in document.violations] == ["missing_metric"]
    assert "123.5万元" in [citation.display for citation in document.citations]


def test_places_are_in_code_points_of_the_source() -> None:
    document = build_document("航班 🛫 [[m:flights]] 架次", book(), language="zh")
    (citation,) = document.citations
    assert document.source[citation.start : citation.end] == citation.markup == "[[m:flights]]"


@pytest.mark.parametrize(
    ("markup", "nearest"),
    [
        ("[[m:flihgts]]", "m:flights"),
        ("[[i:weak]]", "i:week"),
        ("[[v:Q9.r0.flights]]", "Q1"),
        ("[[v:Q2.r0.carier]]", "Q2.carrier"),
        ("[[table:Q3]]", "Q1"),
        ("[[table:Q2 cols=carier]]", "Q2.carrier"),
        ("[[t:flight]]", "t:flights"),
        ("[[c:flights.arrdelay]]", "c:flights.arr_delay"),
        ("[[q:K2|words]]", "K1"),
        ("[[see:m:on_time]]", "m:on_time_rate"),
    ],
)
def test_an_unknown_name_is_a_violation_that_offers_the_nearest(markup: str, nearest: str) -> None:
    (violation,) = build_document(f"Text {markup} here.", book()).violations
    assert violation.code == "unresolvable_citation"
    assert violation.suggestion is not None
    assert nearest in violation.suggestion.split(", ")
    assert (violation.start, violation.end) == (5, 5 + len(markup))


def test_a_row_beyond_the_end_says_how_many_there_are() -> None:
    (violation,) = build_document("[[v:Q2.r6.carrier]]", book()).violations
    assert violation.code == "unresolvable_citation"
    assert "it has 6 (r0 to r5)" in violation.message


def test_a_snapshot_of_another_run_is_named_as_such() -> None:
    assert codes("[[v:r_OTHER/Q1.r0.flights]]") == ["foreign_run"]
    assert codes(f"[[v:{book().run_id}/Q1.r0.flights]]") == []


def test_a_quotation_must_be_verbatim() -> None:
    assert codes("[[q:K1|Snow closed two runways until noon]]") == []
    assert codes("[[q:K1|carriers consolidated short-haul rotations]]") == []  # over a line break of the document
    (violation,) = build_document("[[q:K1|Snow closed three runways]]", book()).violations
    assert violation.code == "quotation_not_verbatim"
    assert violation.suggestion is not None
    assert "Snow closed two runways" in violation.suggestion


def test_a_metric_without_a_value_is_a_dash_and_does_not_block() -> None:
    document = build_document("Weather: [[m:weather_share]].", book())
    assert document.citations[0].display == "—"
    (violation,) = document.violations
    assert (violation.code, violation.blocking) == ("missing_metric", False)
    assert "no weather record" in violation.message


def test_an_incomparable_metric_is_named() -> None:
    run = book(metrics={"x": metric("x", None, state="incomparable", reason="version 2.0.0 is newer than the pin")})
    (violation,) = build_document("[[m:x]]", run).violations
    assert (violation.code, violation.blocking) == ("incomparable_metric", False)


def test_a_format_that_does_not_fit_is_a_violation() -> None:
    assert codes("[[i:week|万]]") == ["bad_format"]
    assert codes("[[m:revenue|%]]") == ["bad_format"]


def test_a_table_that_is_too_large_is_refused() -> None:
    big = ListSnapshot("Q1", [("n", "int64")], [(number,) for number in range(500)])
    assert [
        item.code for item in build_document("[[table:Q1 rows=0-499]]", book(snapshots={"Q1": big})).violations
    ] == ["table_too_large"]
    document = build_document("[[table:Q1]]", book(snapshots={"Q1": big}))
    opening = document.citations[0].opening
    assert opening is not None
    assert (len(opening["rows"]), opening["row_count"]) == (20, 500)


def test_an_empty_snapshot_gives_an_empty_table() -> None:
    empty = ListSnapshot("Q1", [("n", "int64")], [])
    document = build_document("[[table:Q1]]", book(snapshots={"Q1": empty}))
    assert not document.violations
    assert document.citations[0].opening is not None
    assert document.citations[0].opening["rows"] == []


def test_the_opening_of_a_metric_holds_all_a_reader_asks_for() -> None:
    (citation,) = build_document("[[m:on_time_rate]]", book()).citations
    opening = citation.opening
    assert opening is not None
    assert opening["formula"] == "100 * on_time / flown"
    assert opening["substituted"] == "100 * 1488 / 1811"
    assert opening["value"] == {"$decimal": "82.164550"}
    assert [item["refs"] for item in opening["inputs"]] == [["Q1.r0.on_time"], ["Q1.r0.flown"]]
    assert [window["ref"] for window in opening["cells"]] == ["Q1.r0.on_time", "Q1.r0.flown"]
    assert opening["queries"][0]["sql"].startswith("-- one row")
    assert opening["queries"][0]["source"] == "flights"
    assert len(opening["queries"][0]["artifact"]) == 64
    assert opening["queries"][0]["truncated"] is None


def test_a_cell_opens_with_two_rows_on_either_side() -> None:
    (citation,) = build_document("[[v:Q2.r3.flights]]", book()).citations
    assert citation.opening is not None
    (window,) = citation.opening["cells"]
    assert (window["first_row"], len(window["rows"]), window["row"], window["column"]) == (1, 5, 3, "flights")
    assert window["rows"][2] == ["AA", 268, 86.2]


def test_a_column_read_whole_opens_with_its_first_rows() -> None:
    (citation,) = build_document("[[m:carrier_mean]]", book()).citations
    assert citation.opening is not None
    window = citation.opening["cells"][0]
    assert (window["row"], window["column"], window["row_count"], len(window["rows"])) == (None, "flights", 6, 5)


def test_a_metric_of_metrics_opens_down_to_the_cells() -> None:
    flights = metric("flights", "1903")
    double = metric("double", "3806", inputs=(MetricInput("f", "metric(flights)", ("m:flights",), Decimal(1903)),))
    (citation,) = build_document("[[m:double]]", book(metrics={"flights": flights, "double": double})).citations
    assert citation.opening is not None
    assert [window["ref"] for window in citation.opening["cells"]] == ["Q1.r0.flights"]


def test_the_dual_rule_shows_both_versions() -> None:
    old = metric("x", "2", version="1.0.0")
    new = metric("x", "3", version="2.0.0", also=old)
    (citation,) = build_document("[[m:x]]", book(metrics={"x": new})).citations
    assert citation.opening is not None
    assert citation.opening["also"]["version"] == "1.0.0"


def test_a_merged_snapshot_opens_with_the_queries_it_came_from() -> None:
    run = book()
    run.snapshots["Q3"] = ListSnapshot("Q3", [("n", "int64")], [(1,)], derived_from=("Q1", "Q2"))
    (citation,) = build_document("[[v:Q3.r0.n]]", run).citations
    assert citation.opening is not None
    assert [query["ref"] for query in citation.opening["queries"]] == ["Q3", "Q1", "Q2"]


def test_a_wide_snapshot_is_narrowed_round_the_cited_column() -> None:
    columns = [(f"c{number}", "int64") for number in range(40)]
    run = book(snapshots={"Q1": ListSnapshot("Q1", columns, [tuple(range(40))])})
    (citation,) = build_document("[[v:Q1.r0.c30]]", run).citations
    assert citation.opening is not None
    (window,) = citation.opening["cells"]
    assert window["columns"][0] == "c0"
    assert "c30" in window["columns"]
    assert len(window["columns"]) <= 8
    assert window["column_count"] == 40


def test_two_runs_of_the_same_notebook_give_the_same_bytes() -> None:
    first = build_document(ENGLISH, book(run_id="r_ONE"))
    second = build_document(ENGLISH, book(run_id="r_TWO"))
    assert first.to_bytes() == second.to_bytes()
    assert first.sha256 == second.sha256


def test_a_document_survives_being_stored() -> None:
    document = build_document(ENGLISH + "\nand 5 more `ordrs`", book(), formal=True).issued(
        "degraded", ["weather_share"]
    )
    assert ReportDocument.from_json(document.as_json()) == document


def test_another_format_is_refused() -> None:
    with pytest.raises(BadInput, match="not a report document"):
        ReportDocument.from_json({"format": "something-else"})


def test_a_source_beyond_any_report_is_refused() -> None:
    with pytest.raises(ReportTooLong):
        build_document("x" * 2_000_001, book())


def test_nested_and_very_long_cells_do_not_break_a_document() -> None:
    odd = ListSnapshot("Q1", [("a", "struct"), ("b", "string")], [({"$x": [1, 2]}, "y" * 1_000_000)])  # type: ignore[list-item]
    document = build_document("[[v:Q1.r0.a]] [[v:Q1.r0.b]] [[table:Q1]]", book(snapshots={"Q1": odd}))
    assert not document.violations
    assert len(document.to_bytes()) < 20_000
