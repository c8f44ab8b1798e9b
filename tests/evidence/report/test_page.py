"""The report page and the notebook outputs: what they say, and that they keep to what sanitizers let through."""

from __future__ import annotations

import base64
import json
import re

import pytest

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.evidence.document import ReportDocument, build_document
from learngraph_kernel.evidence.html import (
    CARD_MIME,
    Image,
    RunFacts,
    SealFacts,
    mimebundle_for_metrics,
    mimebundle_for_report,
    mimebundle_for_snapshot,
    render_report,
)
from learngraph_kernel.evidence.html.strings import CHINESE as CHINESE_WORDS
from learngraph_kernel.evidence.html.strings import ENGLISH as ENGLISH_WORDS
from learngraph_kernel.evidence.issuance import issue
from learngraph_kernel.evidence.openings import metric_opening
from tests.evidence.report.html_checks import LAB_STYLES, LAB_TAGS, Checked
from tests.evidence.report.report_samples import CHINESE, ENGLISH, ListSnapshot, book


def issued(source: str = ENGLISH, language: str = "en", *, formal: bool = True) -> ReportDocument:
    run = book()
    document = build_document(source, run, language=language, formal=formal)
    return issue({"required_metrics": ["flights"]}, run, document, None, formal=formal).apply(document)


def page(document: ReportDocument, **options: object) -> str:
    return render_report(document, title={"en": "Flights weekly", "zh": "航班周报"}, run="r_TEST", **options)  # type: ignore[arg-type]


def test_the_page_can_load_and_run_nothing() -> None:
    html = page(issued())
    checked = Checked(html)
    policy = next(value for tag, name, value in checked.attributes if tag == "meta" and name == "content")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not {"script", "link", "iframe", "form"} & set(checked.tags)
    assert "url(" not in html
    assert "@import" not in html


def test_every_citation_opens_in_place() -> None:
    document = issued()
    checked = Checked(page(document))
    cells = sum(
        len(item.opening["rows"]) * len(item.opening["columns"])
        for item in document.citations
        if item.kind == "table" and item.opening
    )
    opening = [item for item in document.citations if item.kind not in ("table", "see")]
    assert checked.tags.count("details") == len(opening) + cells + 2  # and one for each query at the foot


def test_an_opened_metric_says_how_it_came_about() -> None:
    html = page(issued("Rate [[m:on_time_rate]]."), seal=SealFacts(key="ed25519:abc"))
    text = Checked(html).text
    for words in (
        "82.2 %", "On-time rate", "m:on_time_rate · version 1.1.0", "100 * on_time / flown", "100 * 1488 / 1811",
        "82.164550 → 82.2 %", "cell(week.r0.on_time)", "Q1.r0.on_time", "count(*) filter", "source flights",
        "sha256:", "Run r_TEST · Seal: sealed · Key ed25519:abc",
    ):  # fmt: skip
        assert words in text, words
    assert len(re.findall('class="lg-cited-number"', html)) == 2  # both cells, in one table


def test_a_truncated_snapshot_says_so() -> None:
    run = book()
    run.snapshots["Q1"] = ListSnapshot("Q1", [("n", "int64")], [(1,)], truncated="rows")
    document = build_document("[[v:Q1.r0.n]]", run)
    assert "cut off at its limit on rows" in Checked(page(document)).text


def test_a_degraded_report_prints_what_is_missing() -> None:
    text = Checked(page(issued())).text
    assert "Degraded" in text
    assert "Share of delays with bad weather has no value" in text
    assert "no weather record covers these hours" in text


def test_a_withheld_report_prints_the_reason() -> None:
    run = book()
    document = build_document("Nothing.", run, formal=True)
    outcome = issue({"required_rows": {"Q7": 1}}, run, document, None, formal=True)
    text = Checked(page(outcome.apply(document))).text
    assert "Withheld" in text
    assert "Q7 was never queried; the contract asks for at least 1 rows" in text


def test_an_exploratory_report_marks_what_has_no_evidence() -> None:
    document = issued("Up 12 % to **[[m:flights]]**, see `ordrs` and [[m:gmv]].", formal=False)
    html = page(document)
    checked = Checked(html)
    assert checked.text.count("no evidence") == 1 + 3  # the banner speaks of it as well
    assert "3 places without evidence are marked" in checked.text
    assert re.search(r'<mark class="lg-mark" title="[^"]*typed, not cited">12 %</mark>', html)
    assert "<mark" in html.partition("ordrs</code>")[0].rpartition("see")[2]


def test_a_formal_report_says_so() -> None:
    run = book()
    del run.metrics["weather_share"]
    document = build_document("There were [[m:flights]] flights.", run, formal=True)
    text = Checked(page(issue({}, run, document, None, formal=True).apply(document))).text
    assert "Formal" in text
    assert "no evidence" not in text


def test_a_formal_run_that_goes_on_has_no_tier_yet() -> None:
    document = build_document("There were [[m:flights]] flights.", book(), formal=True)
    assert "The tier is decided when the run ends." in Checked(str(mimebundle_for_report(document)["text/html"])).text


def test_the_page_speaks_chinese() -> None:
    html = page(issued(CHINESE, "zh"))
    text = Checked(html).text
    assert '<html lang="zh">' in html
    for words in ("降级", "天气延误占比 没有数值", "代入数值", "82.2%", "123.5万元", "自行核对"):
        assert words in text, words


def test_the_title_is_not_printed_twice() -> None:
    assert Checked(page(issued("# Mine\n\ntext"))).tags.count("h1") == 1
    assert Checked(page(issued("text"))).tags.count("h1") == 1


def test_the_footer_identifies_the_run_and_says_how_to_verify() -> None:
    facts = RunFacts("r_TEST", "ab" * 32, actor="user:ana", isolation="host", parameters={"week": "2013-W07"})
    html = render_report(issued(), title="t", run=facts, seal=SealFacts(envelope="cd" * 32))
    text = Checked(html).text
    for words in ("r_TEST", "ab" * 32, "cd" * 32, "user:ana", "host", "learngraph verify r_TEST", "week 2013-W07"):
        assert words in text, words


def test_figures_stand_in_the_file() -> None:
    data = base64.b64encode(b"\x89PNG").decode()
    html = page(issued(), images=[Image("Flights by day", "image/png", data, "a bar chart")])
    checked = Checked(html)
    assert ("img", "src", f"data:image/png;base64,{data}") in checked.attributes
    assert ("img", "alt", "a bar chart") in checked.attributes
    assert "Flights by day" in checked.text


def test_a_picture_of_another_type_is_named_instead() -> None:
    checked = Checked(page(issued(), images=[Image("Chart", "text/html", "PGI+")]))
    assert "img" not in checked.tags
    assert "picture of type text/html not shown" in checked.text


def test_rendering_is_deterministic() -> None:
    assert page(issued()) == page(issued())


def test_both_languages_have_the_same_strings_and_slots() -> None:
    assert ENGLISH_WORDS.keys() == CHINESE_WORDS.keys()
    for key, english in ENGLISH_WORDS.items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", CHINESE_WORDS[key])), key


def test_a_table_cell_carries_its_reference() -> None:
    checked = Checked(page(issued("[[table:Q2 cols=flights rows=1-2]]")))
    references = [value for tag, name, value in checked.attributes if tag == "td" and name == "data-ref"]
    assert references == ["Q2.r1.flights", "Q2.r2.flights"]


def test_a_quotation_gets_marks_only_when_it_has_none() -> None:
    words = "Snow closed two runways until noon"
    assert f"“{words}”" in Checked(page(issued(f"said [[q:K1|{words}]]"))).text
    assert "“" not in Checked(page(issued(f'said "[[q:K1|{words}]]"'))).text


@pytest.mark.parametrize(
    ("source", "text"),
    [("一行，\n下一行", "一行，下一行"), ("words\nand more", "words\nand more"), ("词\nword", "词\nword")],
)
def test_chinese_lines_join_without_a_space(source: str, text: str) -> None:
    assert text in Checked(page(issued(source))).text


# --- notebooks ---


def bundles() -> dict[str, dict[str, object]]:
    run = book()
    openings = {name: metric_opening(result, run, "en") for name, result in run.metrics.items()}
    return {
        "report": mimebundle_for_report(issued()),
        "report, exploratory": mimebundle_for_report(issued("Up 12 % in [[i:week]].", formal=False)),
        "metrics": mimebundle_for_metrics(list(run.metrics.values()), openings),
        "snapshot": mimebundle_for_snapshot(run.snapshots["Q2"].info, run.snapshots["Q2"].rows(0, 9)),
    }


@pytest.mark.parametrize("name", sorted(bundles()))
def test_notebook_html_survives_the_sanitizer_of_jupyterlab(name: str) -> None:
    checked = Checked(str(bundles()[name]["text/html"]), LAB_TAGS)
    assert checked.styles() <= LAB_STYLES, checked.styles() - LAB_STYLES
    assert not {attribute for _, attribute, _ in checked.attributes} & {"class", "id"}  # nothing rests on a style sheet
    assert "details" in checked.tags


@pytest.mark.parametrize("name", sorted(bundles()))
def test_notebook_outputs_are_the_same_every_time(name: str) -> None:
    assert bundles()[name] == bundles()[name]
    plain = str(bundles()[name]["text/plain"])
    assert "0x" not in plain
    assert "object at" not in plain


@pytest.mark.parametrize("name", sorted(bundles()))
def test_cards_are_plain_data(name: str) -> None:
    card = bundles()[name][CARD_MIME]
    assert json.loads(canonical_json(card)) == json.loads(json.dumps(card))


def test_the_plain_text_of_a_report_carries_its_values() -> None:
    text = str(bundles()["report"]["text/plain"])
    assert "1,903 flights left **JFK** this week, and 82.2 % of those" in text
    assert re.search(r"B6 +780 +79\.1", text)
    assert "[[" not in text


def test_the_plain_text_of_a_snapshot_is_aligned() -> None:
    lines = str(bundles()["snapshot"]["text/plain"]).splitlines()
    assert lines[0] == "Q2 · flights · 6 rows"
    assert lines[1].split() == ["carrier", "flights", "on_time_share"]
    assert lines[2].split() == ["r0", "B6", "780", "79.1"]


def test_snapshot_cells_carry_their_reference() -> None:
    checked = Checked(str(bundles()["snapshot"]["text/html"]))
    assert ("td", "title", "Q2.r0.carrier") in checked.attributes
    assert ("td", "data-ref", "Q2.r5.on_time_share") in checked.attributes
