"""What was typed instead of cited: numbers, changes to cited numbers, invented names. The reader is the real one."""

from __future__ import annotations

import time

import pytest

from learngraph_kernel.evidence.document import build_document
from learngraph_kernel.evidence.violations import Violation
from tests.evidence.report.report_samples import book


def violations(source: str, language: str = "en") -> list[Violation]:
    return list(build_document(source, book(), language=language).violations)


def found(source: str, language: str = "en") -> list[tuple[str, str]]:
    return [(violation.code, violation.text) for violation in violations(source, language)]


BARE = [
    "Delays rose 4.5 % this week.",
    "# Revenue up 12 percent",
    "| a | b |\n|---|---|\n| x | 3,000 |",
    "[up 50 %](https://example.org)",
    "![sales up 50 %](https://example.org/a.png)",
    "Five hundred flights left.",
    "延误增长了五成。",
    "共有三千架次。",
    "收入为 1.2亿 元",
    "- item with 42 flights",
    "**7**0 flights",
    "<b>50 %</b> more",
    "<!-- 50 % -->",
    "It is [[50 %]] up",
    "# a ` b\nSales rose 50 % ` c",
    "text\n\n    50 % more in an indented line",
    "sales of `42 %`",
    "exactly `1,234`",
    "&#53;0 % more",
    "٥٠ percent more",
    "५० flights",
]


@pytest.mark.parametrize("source", BARE)
def test_a_typed_number_is_found(source: str) -> None:
    assert "bare_number" in [code for code, _ in found(source, "zh" if not source.isascii() else "en")]


FINE = [
    "In week [[i:week]] there were [[m:flights]] flights.",
    "On 11 February 2013 snow fell.",
    "It opened in 2013.",
    "1. first\n2. second",
    "```sql\nselect 42 from t limit 10\n```",
    "as in `count(*) > 5`",
    "a link to [the page](https://example.org/2013/42)",
    "[[q:K1|Snow closed two runways until noon]]",
    "一个问题十分重要。",
    "截至 2013年2月11日，三季度",
    "one of the carriers",
    "",
    "   \n",
]


@pytest.mark.parametrize("source", FINE)
def test_what_states_nothing_is_left_alone(source: str) -> None:
    assert found(source, "zh" if not source.isascii() else "en") == []


def test_a_bare_number_has_its_place_and_offers_the_citation_with_that_value() -> None:
    source = "There were [[m:flights]] flights; yes, 1,903 flights."
    (violation,) = violations(source)
    assert source[violation.start : violation.end].startswith("1,903")
    assert violation.suggestion == "[[m:flights]]"


ALTERED = [
    ("[[m:revenue]]万", "[[m:revenue|万]]"),
    ("[[m:revenue]] million", "[[m:revenue|M]]"),
    ("[[m:revenue]]000", "[[m:revenue]]"),
    ("[[m:revenue]].5", "[[m:revenue]]"),
    ("[[m:flights]]k", "[[m:flights|k]]"),
    ("-[[m:revenue]]", "[[m:revenue]]"),
    ("−[[m:revenue]]", "[[m:revenue]]"),
    ("负[[m:revenue]]", "[[m:revenue]]"),
    ("about 1[[m:flights]]", "[[m:flights]]"),
    ("$[[m:revenue]]", "[[m:revenue]]"),
    ("[[m:on_time_rate]] %", "[[m:on_time_rate]]"),
    ("[[m:on_time_rate]]个百分点", "[[m:on_time_rate]]"),
    ("[[m:carrier_mean]]%", "[[m:carrier_mean|%]]"),
    ("[[v:Q2.r0.flights]] thousand", "[[v:Q2.r0.flights|k]]"),
]


@pytest.mark.parametrize(("source", "suggestion"), ALTERED)
def test_text_that_changes_a_cited_number_is_found(source: str, suggestion: str) -> None:
    altered = [violation for violation in violations(f"it was {source} here") if violation.code == "altered_number"]
    assert altered, source
    assert altered[0].suggestion == suggestion


@pytest.mark.parametrize(
    "source",
    [
        "[[m:flights]] flights",
        "[[m:flights]], then",
        "[[m:flights]]. Next",
        "([[m:flights]])",
        "**[[m:flights]]**",
        "- [[m:flights]] flights",
        "[[v:Q2.r0.flights]]–[[v:Q2.r1.flights]] flights",
        "[[v:Q2.r0.on_time_share]] %",
        "JFK-[[m:flights]]",
        "[[i:week]]-[[i:airport]]",
        "[[m:flights]] times",
        "[[m:flights]] minutes",
        "共[[m:flights]]个航班",
    ],
)
def test_ordinary_neighbours_change_nothing(source: str) -> None:
    assert found(f"Text {source}") == []


@pytest.mark.parametrize("name", ["flight_dates", "ordrs", "flights.arrival", "delay_minutes", "订单表"])
def test_a_name_that_exists_nowhere_may_be_invented(name: str) -> None:
    (violation,) = violations(f"taken from `{name}` here")
    assert violation.code == "invented_name"
    assert "may be invented" in violation.message
    assert violation.suggestion is not None
    assert len(violation.suggestion.split(", ")) == 3


@pytest.mark.parametrize(
    "name",
    [
        "flights",
        "flights.arr_delay",
        "arr_delay",
        "Q1",
        "Q2.carrier",
        "on_time_rate",
        "week",
        "SELECT",
        "int64",
        "None",
        "lg.query",
        "report.html",
        "a + b",
        "count(*)",
    ],
)
def test_a_name_that_exists_or_is_none_is_left_alone(name: str) -> None:
    assert found(f"taken from `{name}` here") == []


def test_a_thousand_numbers_are_checked_within_a_second() -> None:
    source = " ".join("the carrier flew [[m:flights]] flights and 12.5 % more," for _ in range(1_000))
    start = time.perf_counter()
    document = build_document(source, book())
    assert time.perf_counter() - start < 5  # about 0.6 s alone on this machine
    assert len(document.violations) == 1_000
