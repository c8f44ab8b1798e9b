"""The page in a real browser with JavaScript off: numbers open, nothing is fetched, keyboard and phone work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.evidence.document import build_document
from learngraph_kernel.evidence.html import SealFacts, render_report
from tests.evidence.report.report_samples import CHINESE, ENGLISH, book

CHROMIUM = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a source as a page; remembers every request."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 900, "height": 900})

    def show(source: str, language: str = "en", width: int = 900) -> Any:
        document = build_document(source, book(), language=language)
        file = tmp_path / "report.html"
        file.write_text(render_report(document, title="Weekly", run="r_TEST", seal=SealFacts(key="k")), "utf-8")
        tab = context.new_page()
        tab.set_viewport_size({"width": width, "height": 900})
        tab.requests = []
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.goto(file.as_uri())
        return tab

    yield show
    context.close()


def test_clicking_a_number_opens_its_evidence_without_script(opened: Any) -> None:
    page = opened("The rate was [[m:on_time_rate]] this week.")
    formula = page.get_by_text("100 * 1488 / 1811")
    assert not formula.is_visible()
    page.locator("summary", has_text="82.2 %").first.click()
    assert formula.is_visible()
    assert page.locator(".lg-panel pre").first.is_visible()
    page.locator("summary", has_text="82.2 %").first.click()
    assert not formula.is_visible()


def test_nothing_is_fetched(opened: Any) -> None:
    page = opened(ENGLISH + "\n\n![far](https://example.org/track.png)\n")
    for number in range(page.locator("summary").count()):
        page.locator("summary").nth(number).click(force=True)
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_the_keyboard_opens_a_number(opened: Any) -> None:
    page = opened("The rate was [[m:on_time_rate]] this week.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_text("100 * 1488 / 1811").is_visible()


def test_closed_numbers_stand_in_the_line(opened: Any) -> None:
    page = opened("There were [[m:flights]] flights, [[m:on_time_rate]] of them on time.")
    first, second = (page.locator("summary").nth(at).bounding_box() for at in (0, 1))
    assert abs(first["y"] - second["y"]) < 2


def test_an_opened_number_leaves_its_sentence_whole(opened: Any) -> None:
    page = opened("There were [[m:flights]] flights, [[m:on_time_rate]] of them on time.")
    page.locator("summary").nth(0).click()
    first, second = (page.locator("summary").nth(at).bounding_box() for at in (0, 1))
    panel = page.locator(".lg-panel").first.bounding_box()
    assert abs(first["y"] - second["y"]) < 2
    assert panel["y"] > first["y"] + first["height"] - 2
    assert panel["width"] > 500


def test_a_table_cell_opens_over_the_width_of_the_text(opened: Any) -> None:
    page = opened("[[table:Q2]]")
    page.locator("summary", has_text="780").first.click()
    panel = page.locator(".lg-cell[open] .lg-panel").bounding_box()
    assert panel["width"] > 500
    assert page.locator(".lg-cell[open] pre").is_visible()


@pytest.mark.parametrize(("source", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_nothing_sticks_out_on_a_phone(opened: Any, source: str, language: str) -> None:
    page = opened(source, language, width=360)
    for number in range(page.locator("summary").count()):
        page.locator("summary").nth(number).click(force=True)
    box = page.locator("html").bounding_box()
    widest = max(page.locator(role).bounding_box()["width"] for role in ("main", "header", "footer", "article"))
    assert box["width"] <= 360
    assert widest <= 360
    for number in range(page.locator(".lg-panel").count()):
        panel = page.locator(".lg-panel").nth(number).bounding_box()
        assert panel is None or panel["x"] + panel["width"] <= 361
