"""A report that a model had to repair: the repair is paid once, whatever is resumed or run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

Command = Callable[..., Any]
MODEL = """
model: scripted
rules:
  - name: repair
    match: {last: characters}
    steps: [{text: "Revenue was [[m:revenue]]."}]
  - name: first
    steps: [{text: "Revenue was 5 million."}]
"""


def test_a_rerun_and_a_resume_use_the_repair_on_record(
    learngraph: Command, write_notebook: Command, workspace: Path, home: Path
) -> None:
    with (workspace / "learngraph.toml").open("a") as file:
        file.write('[models.default]\nadapter = "scripted"\nscript = "model.yaml"\n')
    (workspace / "model.yaml").write_text(MODEL)
    path = write_notebook(
        "import learngraph_kernel as lg, pathlib",
        'q = lg.query("shop", "select * from orders order by id"); lg.metrics("shop", {"orders": q})',
        'lg.report(lg.ask("what was the revenue?"))',
        "1 / int(pathlib.Path('n').exists())",
    )
    failed = learngraph("run", path, "--formal", "--json").json
    with Store.open(Home(home)) as store:
        started = [e.data for e in store.ledger.events(failed["run_id"], types=["call.started"])]
    assert [call["effect"] for call in started] == ["read", "read", "model", "model"]
    (workspace / "model.yaml").write_text("model: gone\nrules: []\n")
    (workspace / "n").touch()
    resumed = learngraph("resume", failed["run_id"], "--json")
    assert resumed.code == 0, resumed.out
    again = learngraph("rerun", failed["run_id"], "--json")
    assert again.code == 0, again.out
