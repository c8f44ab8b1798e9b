"""Evidence in a real browser: a number is clicked and opens, wherever the notebook or the report is looked at.

JupyterLab cleans the HTML of a notebook it does not trust, nbconvert's page and the report are read with JavaScript
switched off; in all of them the opened number shows where it came from.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pytest
from nbformat.sign import NotebookNotary

from tests.conftest import COMMAND, notebook

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("LEARNGRAPH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
TOKEN = "token-of-the-test"
CARD = """
set: shop
metrics:
  - {name: share, version: 1.2.0, title: {en: Share of the fourth order}, unit: "%", precision: 1, additivity: ratio,
     inputs: {fourth: "cell(orders.r3.amount)", total: "sum(orders.amount)"}, expression: "100 * fourth / total",
     required: true}
"""


@dataclass(frozen=True)
class Executed:
    """What one run left: a folder with the executed notebook twice (one of them signed as trusted), and the report."""

    folder: Path
    environment: dict[str, str]
    report: Path


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Executed:
    root = tmp_path_factory.mktemp("browser")
    folder = root / "workspace"
    (folder / "metrics").mkdir(parents=True)
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        connection.execute("create table orders as select i as id, (100.25 * i)::decimal(18, 2) as amount "
                           "from range(1, 9) t(i)")  # fmt: skip
    (folder / "learngraph.toml").write_text('[sources.shop]\nkind = "duckdb"\npath = "shop.duckdb"\n')
    (folder / "metrics" / "shop.yaml").write_text(CARD)
    nb = notebook(
        "import learngraph_kernel as lg",
        'orders = lg.query("shop", "select id, amount from orders order by id")\norders',
        'm = lg.metrics("shop", {"orders": orders})\nm',
        'lg.report("# The fourth order\\n\\nIt was worth [[v:Q1.r3.amount]], a share of [[m:share]].")',
        metadata={"title": "Orders"},
    )
    nbformat.write(nb, folder / "nb.ipynb")
    environment = {**os.environ, "LEARNGRAPH_HOME": str(root / "home")}
    for name in ("DATA_DIR", "CONFIG_DIR", "RUNTIME_DIR"):
        environment[f"JUPYTER_{name}"] = str(root / name.lower())
    for name in ("SETTINGS_DIR", "WORKSPACES_DIR"):
        environment[f"JUPYTERLAB_{name}"] = str(root / name.lower())
    command = [*COMMAND, "run", str(folder / "nb.ipynb"), "--formal", "--json", "-o", str(folder / "untrusted.ipynb")]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    shutil.copyfile(folder / "untrusted.ipynb", folder / "trusted.ipynb")
    trusted = nbformat.read(folder / "trusted.ipynb", as_version=4)
    trusted.metadata["copy"] = "trusted"  # a signature is of the content: the other file must differ
    nbformat.write(trusted, folder / "trusted.ipynb")
    (root / "data_dir").mkdir(exist_ok=True)
    NotebookNotary(data_dir=environment["JUPYTER_DATA_DIR"]).sign(trusted)
    return Executed(folder, environment, Path(json.loads(said.stdout)["report"]))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        reason = "no Chromium found (set LEARNGRAPH_CHROMIUM): the evidence was NOT tried in a browser"
        warnings.warn(reason, stacklevel=1)
        pytest.skip(reason)
    with playwright_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def lab(executed: Executed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab that shows the workspace."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    log = tmp_path_factory.mktemp("lab") / "log"
    words = ["--no-browser", "--allow-root", "--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}"]
    words += [f"--ServerApp.root_dir={executed.folder}", "--LabApp.news_url=None"]
    environment = executed.environment
    with log.open("wb") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", *words], env=environment, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield address(server, Path(environment["JUPYTER_RUNTIME_DIR"]), log)
    finally:
        server.terminate()
        server.wait(timeout=30)


def address(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Where the server listens: it writes that into its runtime folder."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            text = file.read_text()
            if text.endswith("}") and json.loads(text)["pid"] == server.pid:
                return str(json.loads(text)["url"])
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def opened(scope: Any, shown: str) -> Any:
    """The panel behind a number, after a click on the number; it was closed before."""
    summary = scope.locator("summary").filter(has_text=shown).first
    summary.scroll_into_view_if_needed()
    details = summary.locator("xpath=..")
    assert not details.evaluate("element => element.open")
    summary.click()
    assert details.evaluate("element => element.open")
    return details


LOOK = """cell => {
    const {fontWeight, outlineStyle, boxShadow} = getComputedStyle(cell);
    return {fontWeight, outlineStyle, boxShadow};
}"""


def check_report(scope: Any) -> None:
    """Both numbers of the report open, and what they show can be read."""
    expect = playwright_api.expect
    cell = opened(scope, "401.00")
    for reference in ("r1", "r2", "r3", "r4", "r5", "select", "from orders order by id", "Q1"):
        expect(cell).to_contain_text(reference)
    expect(cell).not_to_contain_text("r6")
    cited = cell.locator("td").filter(has_text="401.00").first
    expect(cited).to_be_visible()
    beside = cell.locator("td").filter(has_text="300.75").first
    assert cited.evaluate(LOOK)["fontWeight"] >= "600"
    marks = {name for name, value in cited.evaluate(LOOK).items() if value != beside.evaluate(LOOK)[name]}
    assert marks & {"outlineStyle", "boxShadow"}, "the cited cell has no frame"
    metric = opened(scope, "11.1")
    for part in ("100 * fourth / total", "100 * 401.00 / 3609.00", "1.2.0", "sum(orders.amount)", "order by id"):
        expect(metric).to_contain_text(part)
    expect(metric.get_by_text("100 * 401.00 / 3609.00").first).to_be_visible()
    expect(metric.locator("td").filter(has_text="300.75").last).to_be_visible()


@pytest.mark.parametrize("name", ["trusted", "untrusted"])
def test_a_number_opens_in_jupyterlab(browser: Any, lab: str, name: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(f"{lab}lab/tree/{name}.ipynb?token={TOKEN}&reset")
    report = page.locator(".jp-RenderedHTML").filter(has=page.locator("h1"))
    report.wait_for(timeout=90_000)
    trust = {"trusted": "Notebook trusted: 4 of 4", "untrusted": "Notebook not trusted: 0 of 4"}[name]
    page.locator(f'#jp-main-statusbar [title^="{trust}"]').wait_for(timeout=30_000)
    check_report(report)
    page.close()


def test_a_number_opens_in_an_nbconvert_page_without_javascript(
    browser: Any, executed: Executed, tmp_path: Path
) -> None:
    words = ["nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(executed.folder / "untrusted.ipynb")]
    subprocess.run([sys.executable, "-m", "jupyter", *words], env=executed.environment, check=True, capture_output=True)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "untrusted.html").as_uri())
    check_report(page.locator(".jp-RenderedHTML").filter(has=page.locator("h1")))
    context.close()


def test_a_number_opens_in_the_report_without_javascript(browser: Any, executed: Executed) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(executed.report.as_uri())
    check_report(page.locator("body"))
    context.close()
