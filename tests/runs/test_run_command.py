"""`learngraph run` end to end: real kernels, a real source, a real seal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

IMPORT = "import learngraph_kernel as lg"
ORDERS = 'orders = lg.query("shop", "select region, amount from orders order by id")'
REVENUE = 'm = lg.metrics("shop", {"orders": orders})'
Command = Callable[..., Any]


def test_a_formal_run_is_issued_sealed_and_says_so_in_one_json_object(
    learngraph: Command, write_notebook: Command
) -> None:
    path = write_notebook(
        IMPORT,
        ORDERS,
        REVENUE,
        'lg.report("Revenue was [[m:revenue]] in region [[v:Q1.r0.region]].")',
        'lg.output(revenue=m["revenue"])',
        metadata={"contract": {"required_metrics": ["revenue"], "report": True, "uncited_outputs": "refuse"}},
    )
    said = learngraph("run", path, "--formal", "--json")
    assert said.code == 0, said.err
    body = said.json
    keys = "run_id status tier content_hash seal isolation notebook report result violations".split()
    assert set(keys) <= set(body)
    assert (body["status"], body["tier"], body["isolation"]) == ("completed", "formal", "host")
    assert body["result"] == {"revenue": 1000.5}
    assert body["violations"] == []
    html = Path(body["report"]).read_text()
    assert "1,000.50" in html and "<script" not in html
    executed = nbformat.read(body["notebook"], as_version=4)
    assert executed.cells[1].outputs == []
    verified = learngraph("verify", body["run_id"], "--json")
    assert verified.code == 0 and verified.json["ok"] is True
    assert verified.json["content_hash"] == body["content_hash"]


def test_two_runs_of_the_same_notebook_have_the_same_content_hash(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(IMPORT, ORDERS, REVENUE, "object()", "{'b', 'a', 'c'}", "print('x', end='\\r'); print('y')")
    first, second = (learngraph("run", path, "--json").json for _ in range(2))
    assert first["content_hash"] == second["content_hash"]
    assert first["seal"] != second["seal"]


def test_a_rerun_needs_no_source_and_gives_the_same_content(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    path = write_notebook(IMPORT, ORDERS, REVENUE, 'lg.report("Revenue was [[m:revenue]].")')
    run = learngraph("run", path, "--formal", "--json").json
    (workspace / "shop.duckdb").unlink()
    (workspace / "metrics" / "shop.yaml").write_text("set: shop\nmetrics: []\n")
    path.unlink()
    again = learngraph("rerun", run["run_id"], "--json")
    assert again.code == 0, again.out
    assert again.json["same"] is True
    assert again.json["content_hash"] == run["content_hash"]


def test_a_rerun_that_comes_out_differently_names_the_cell(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(IMPORT, "import time; time.time_ns()")
    run = learngraph("run", path, "--json").json
    again = learngraph("rerun", run["run_id"], "--json")
    assert again.code == 5
    assert any("c1" in line for line in again.json["differences"])


def test_a_bare_number_fails_a_formal_run_and_is_marked_in_an_exploratory_one(
    learngraph: Command, write_notebook: Command
) -> None:
    path = write_notebook(IMPORT, 'lg.report("Revenue was 1,000.50.")')
    formal = learngraph("run", path, "--formal", "--json")
    assert formal.code == 1
    assert formal.json["violations"][0]["text"] == "1,000.50"
    assert formal.json["tier"] is None and formal.json["seal"] is None
    exploratory = learngraph("run", path, "--json")
    assert exploratory.code == 0
    assert exploratory.json["violations"][0]["code"] == "bare_number"
    assert exploratory.json["tier"] is None


def test_a_citation_to_a_snapshot_the_run_does_not_have_is_refused(
    learngraph: Command, write_notebook: Command
) -> None:
    path = write_notebook(IMPORT, ORDERS, 'lg.report("It was [[v:Q7.r0.amount]].")')
    said = learngraph("run", path, "--formal", "--json")
    assert said.code == 1
    assert "Q7" in said.json["violations"][0]["message"]


def test_too_few_rows_withhold_the_report_with_exit_code_3(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(
        IMPORT,
        'orders = lg.query("shop", "select region, amount from orders where id > 99")',
        'lg.report("Nothing to see.")',
        metadata={"contract": {"required_rows": {"Q1": 1}}},
    )
    said = learngraph("run", path, "--formal", "--json")
    assert said.code == 3
    assert (said.json["status"], said.json["tier"]) == ("withheld", "withheld")
    assert "Q1 has no rows" in said.json["reasons"][0]


def test_a_missing_required_metric_degrades_the_report_and_is_printed_on_it(
    learngraph: Command, write_notebook: Command
) -> None:
    path = write_notebook(
        IMPORT,
        'orders = lg.query("shop", "select region, amount from orders where id > 99")',
        REVENUE,
        'lg.report("Nothing to see.")',
        metadata={"contract": {"required_metrics": ["revenue"]}},
    )
    said = learngraph("run", path, "--formal", "--json")
    assert said.code == 0
    assert (said.json["tier"], said.json["missing"]) == ("degraded", ["revenue"])
    assert "revenue" in Path(said.json["report"]).read_text()


def test_an_output_that_breaks_its_schema_fails_with_the_path(learngraph: Command, write_notebook: Command) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string"}}}
    path = write_notebook(IMPORT, "lg.output(region=3)", metadata={"contract": {"output_schema": schema}})
    said = learngraph("run", path, "--json")
    assert said.code == 1
    assert said.json["error"]["code"] == "contract_broken"
    assert "region" in said.json["error"]["reason"]


def test_an_uncited_number_in_the_output_withholds_a_formal_run(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(IMPORT, "lg.output(total=42.5)", metadata={"contract": {"uncited_outputs": "refuse"}})
    said = learngraph("run", path, "--formal", "--json")
    assert said.code == 3
    assert "total" in said.json["reasons"][0]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-p", "weeek", "7"], 2, ["weeek", "week"]),
        (["-p", "week=seven"], 2, ["week", "integer"]),
        (["-p", "week", "99"], 2, ["week", "53"]),
        ([], 2, ["missing", "week"]),
        (["-p", "week=7"], 0, []),
        (["-y", "{week: 7}"], 0, []),
        (["-b", "d2VlazogNwo="], 0, []),
    ],
)
def test_parameters_are_checked_before_anything_runs(
    learngraph: Command, write_notebook: Command, options: list[str], code: int, words: list[str]
) -> None:
    schema = {
        "type": "object",
        "required": ["week"],
        "additionalProperties": False,
        "properties": {"week": {"type": "integer", "minimum": 1, "maximum": 53}},
    }
    path = write_notebook(
        IMPORT, 'assert week == lg.input("week") == 7', metadata={"parameters": schema}, parameters="week = 1"
    )
    said = learngraph("run", path, *options, "--json")
    assert said.code == code, said.out
    if code:
        assert all(word in said.json["error"]["reason"] + str(said.json["error"]["remedy"]) for word in words)
        assert learngraph("list", "--json").json == []


def test_a_parameter_file_and_an_output_path_work_as_in_papermill(
    learngraph: Command, write_notebook: Command, workspace: Path
) -> None:
    path = write_notebook("print(city)", parameters="city = 'x'")
    (workspace / "p.yaml").write_text("city: 北京\n")
    said = learngraph("run", path, workspace / "out.ipynb", "-f", workspace / "p.yaml", "--cwd", workspace)
    assert said.code == 0, said.err
    out = nbformat.read(workspace / "out.ipynb", as_version=4)
    assert out.cells[-1].outputs[0].text == "北京\n"
    assert out.cells[1].metadata.tags == ["injected-parameters"]


def test_progress_is_one_line_a_cell_when_nobody_watches(learngraph: Command, write_notebook: Command) -> None:
    said = learngraph("run", write_notebook("1", "2"))
    assert [line.split()[:2] for line in said.err.splitlines()] == [["cell", "1/2"], ["cell", "2/2"]]
    assert f"{'verify':<10} learngraph verify r_" in said.out


def test_a_failed_cell_has_one_number_whether_or_not_text_stands_before_it(
    learngraph: Command, workspace: Path
) -> None:
    cells = [nbformat.v4.new_markdown_cell("# Title", id="t"), nbformat.v4.new_code_cell("1 / 0", id="c")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), workspace / "n.ipynb")
    said = learngraph("run", workspace / "n.ipynb")
    assert said.err.startswith("cell 1/1  c  failed:")
    assert "learngraph: cell 1 (c): ZeroDivisionError" in said.err
    assert "a fault in the notebook: mend it and run it anew" in said.err


def test_a_typed_number_is_told_where_and_what_to_write(learngraph: Command, write_notebook: Command) -> None:
    path = write_notebook(IMPORT, "x = lg.input('n')\nlg.report('All.\\n\\nIt was 7.')", parameters="n = 7")
    said = learngraph("run", path, "--formal")
    assert said.code == 1
    assert "report, line 3, column 8:" in said.err
    assert "no evidence: the number '7' was typed, not cited (characters 13–14)" in said.out


def test_show_list_and_diff_tell_the_story(learngraph: Command, write_notebook: Command) -> None:
    first = learngraph("run", write_notebook(IMPORT, ORDERS, name="a.ipynb"), "--json").json["run_id"]
    second = learngraph("run", write_notebook(IMPORT, ORDERS + "\n1 + 1", name="b.ipynb"), "--json").json["run_id"]
    listed = learngraph("list", "--json").json
    assert [run["run_id"] for run in listed] == [second, first]
    shown = learngraph("show", first, "--json").json
    assert [call["method"] for call in shown["calls"]] == ["query"]
    assert shown["events"][0]["type"] == "run.started" and shown["events"][-1]["type"] == "run.sealed"
    difference = learngraph("diff", first, second, "--json").json
    assert difference["same"] is False
    assert any("c1" in line for line in difference["differences"])


def test_the_saved_notebook_holds_no_address_and_no_absolute_path(
    learngraph: Command, write_notebook: Command, home: Path
) -> None:
    path = write_notebook(IMPORT, ORDERS, "orders", REVENUE, "m", 'lg.report("Revenue was [[m:revenue]].")')
    body = learngraph("run", path, "--formal", "--json").json
    text = Path(body["notebook"]).read_text()
    assert str(home) not in text and "0x" not in text
    outputs = [output for cell in json.loads(text)["cells"] for output in cell["outputs"]]
    assert all({"text/html", "text/plain"} <= set(output["data"]) for output in outputs)
    assert all("<script" not in "".join(output["data"]["text/html"]) for output in outputs)


def test_a_forgotten_parameter_value_does_not_swallow_the_next_option(
    learngraph: Command, write_notebook: Command
) -> None:
    path = write_notebook("print(city)", parameters="city = 'x'")
    said = learngraph("run", path, "-p", "city", "--formal", "--json")
    assert said.code == 2
    assert "city has no value" in said.json["error"]["reason"]
    assert learngraph("run", path, "-p", "city=--formal").code == 0
