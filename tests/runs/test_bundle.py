"""The bundle: one page that holds the run, checks itself in a browser, and is checked byte for byte by us."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.runs import bundle as bundle_module
from learngraph_kernel.runs.bundle import BundleTooLarge, parts_of_bundle, write_bundle
from learngraph_kernel.runs.folder import RunParts, holds
from learngraph_kernel.runs.seal import Envelope
from learngraph_kernel.runs.targets import NothingToVerify, verify
from learngraph_kernel.runs.verify import Verification
from learngraph_kernel.store.home import Home
from tests.runs.sample_run import RUN, SIGNER

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def page(sealed_parts: RunParts, tmp_path: Path) -> Path:
    path = tmp_path / "run.html"
    write_bundle(sealed_parts, path)
    return path


def checked(path: Path) -> Verification:
    return verify(str(path), home=Home(path.parent / "no home"))


def replaced_in(page: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    """Changes an embedded file as someone would who re-encodes it."""
    old = parts_of_bundle(page).read(name)
    element = b'data-name="%b">%b</script>'
    before, after = (element % (name.encode(), base64.b64encode(data)) for data in (old, change(old)))
    assert before in page.read_bytes()
    page.write_bytes(page.read_bytes().replace(before, after))


def flipped_in(page: Path, name: str, at: int) -> None:
    """Changes one byte of an embedded file."""
    replaced_in(page, name, lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_a_bundle_holds_every_file_and_verifies(page: Path, pristine: dict[str, dict[str, bytes]]) -> None:
    parts = parts_of_bundle(page)
    assert {name: parts.read(name) for name in parts.files} == pristine[RUN]
    assert checked(page).findings == ()


def test_the_same_run_gives_the_same_page(page: Path, tmp_path: Path) -> None:
    write_bundle(parts_of_bundle(page), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_flipped_bytes_anywhere_in_the_page_are_found_and_named(page: Path) -> None:
    """Every 37th byte of the whole page, script, style and displayed report included."""
    data = page.read_bytes()
    places = set()
    for at in range(0, len(data), 37):
        flipped = bytearray(data)
        flipped[at] ^= (0x01, 0x20, 0x80)[at % 3]
        page.write_bytes(bytes(flipped))
        verification = checked(page)
        assert not verification.ok, at
        places |= {finding.where.split(",")[0] for finding in verification.findings}
    assert {"viewer", "report.html as shown", "seal.dsse.json", "ledger.jsonl", "key.pub", "notebook.ipynb"} <= places


@pytest.mark.parametrize("name", ["ledger.jsonl", "report.html", "key.pub", "after_seal.jsonl"])
def test_a_changed_embedded_file_is_named(page: Path, name: str) -> None:
    flipped_in(page, name, 40)
    assert name in {finding.where.split(",")[0] for finding in checked(page).findings}


def test_a_changed_script_is_found(page: Path) -> None:
    page.write_bytes(page.read_bytes().replace(b"findings.length) show", b"findings.length > 99) show"))
    (finding,) = checked(page).findings
    assert (finding.code, finding.where) == ("bundle_altered", "viewer")


def test_bytes_after_the_end_are_found(page: Path) -> None:
    page.write_bytes(page.read_bytes() + b"<script>alert(1)</script>")
    assert {finding.code for finding in checked(page).findings} == {"bundle_altered"}


def test_another_html_file_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "x.html").write_text("<!doctype html><p>hello")
    with pytest.raises(NothingToVerify):
        checked(tmp_path / "x.html")


def test_a_run_too_large_for_a_page_is_refused_with_the_way_out(
    sealed_parts: RunParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_module, "MAX_BYTES", 1000)
    with pytest.raises(BundleTooLarge, match="--to DIR"):
        write_bundle(sealed_parts, tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_a_report_cannot_break_out_of_its_frame(sealed_parts: RunParts, tmp_path: Path) -> None:
    hostile = b"\"></iframe><script>alert(1)</script><!-- ' & &quot; {{script}} -->"
    write_bundle(RunParts("x", {**sealed_parts.files, "report.html": holds(hostile)}), tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "<script>alert" not in page
    assert page.count('<script type="module">') == 1


def test_a_run_without_a_report_says_so(sealed_parts: RunParts, tmp_path: Path) -> None:
    files = {name: opener for name, opener in sealed_parts.files.items() if name != "report.html"}
    write_bundle(RunParts("x", files), tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "no report" in page
    assert "<iframe" not in page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("NOT TESTED: the bundle's script, because there is no Chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-background-networking"]
        )
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Any) -> Iterator[Callable[[Path], Any]]:
    """Opens a page from its file, and fails on any request but for the page itself."""
    context = browser.new_context()
    requests: list[str] = []
    problems: list[str] = []

    def open_page(path: Path) -> Any:
        tab = context.new_page()
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto(path.as_uri())
        tab.wait_for_function("!document.getElementById('verdict').textContent.endsWith('…')")
        return tab

    yield open_page
    assert all(url.startswith(("file:", "data:", "about:")) for url in requests), requests
    assert problems == []
    context.close()


def findings_in(tab: Any) -> list[str]:
    texts: list[str] = tab.locator("#findings li").all_inner_texts()
    return texts


def test_the_page_finds_itself_whole(
    page: Path, show: Callable[[Path], Any], pristine: dict[str, dict[str, bytes]]
) -> None:
    tab = show(page)
    assert findings_in(tab) == []
    assert tab.locator("#verdict").get_attribute("data-state") == "good"
    assert SIGNER.public.keyid in tab.locator("dl").inner_text()
    states = tab.locator("tr[data-name]").evaluate_all("rows => rows.map(row => row.dataset.state)")
    assert states == ["good"] * len(pristine[RUN])
    assert "6,077 flights" in tab.frame_locator("iframe").locator("p").inner_text()


@pytest.mark.parametrize(
    "name", ["ledger.jsonl", "after_seal.jsonl", "report.html", "result.json", "notebook.ipynb", "content.json"]
)
def test_the_page_names_an_embedded_file_with_a_flipped_byte(
    page: Path, show: Callable[[Path], Any], name: str
) -> None:
    flipped_in(page, name, 60 if name.endswith("jsonl") else 5)
    tab = show(page)
    assert tab.locator("#verdict").get_attribute("data-state") == "bad"
    assert any(text.startswith(name) for text in findings_in(tab))
    assert tab.locator(f'tr[data-name="{name}"]').get_attribute("data-state") == "bad"


def test_the_page_finds_a_signature_that_is_not_valid(page: Path, show: Callable[[Path], Any]) -> None:
    def forge(data: bytes) -> bytes:
        seal = Envelope.from_bytes(data)
        return Envelope(seal.payload, seal.keyid, bytes([seal.signature[0] ^ 1]) + seal.signature[1:]).to_bytes()

    replaced_in(page, "seal.dsse.json", forge)
    assert any("signature is not valid" in text for text in findings_in(show(page)))


def test_the_page_finds_that_another_report_is_on_show(page: Path, show: Callable[[Path], Any]) -> None:
    page.write_bytes(page.read_bytes().replace(b"6,077 flights", b"9,999 flights"))
    assert findings_in(show(page)) == ["report.html: the report on show is not the sealed report"]


def test_a_browser_without_ed25519_says_what_it_did_not_check(page: Path, browser: Any) -> None:
    context = browser.new_context()
    context.add_init_script(
        "crypto.subtle.importKey = async () => { throw new DOMException('no Ed25519', 'NotSupportedError'); };"
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_function("document.getElementById('verdict').textContent.includes('cannot check Ed25519')")
    assert tab.locator("#verdict").get_attribute("data-state") == "unchecked"
    assert tab.locator("tr[data-state=bad]").count() == 0
    context.close()


def test_the_page_finds_that_another_tier_is_on_show(page: Path, show: Callable[[Path], Any]) -> None:
    page.write_bytes(page.read_bytes().replace(b'"tier">formal<', b'"tier">golden<'))
    assert findings_in(show(page)) == ["page: the tier on show is not the sealed one, which is formal"]


def test_the_report_reads_without_javascript(page: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.as_uri())
    assert "6,077 flights" in tab.frame_locator("iframe").locator("p").inner_text()
    assert "Not checked yet" in tab.locator("#verdict").inner_text()
    context.close()
