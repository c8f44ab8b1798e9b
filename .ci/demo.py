"""`make demo`: runs the flights workflow and says where everything lies, through the command line only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
HOME = CHECKOUT / ".learngraph"
RUN = ["run", "notebooks/flights_weekly.ipynb", "-p", "week=2013-W07", "-p", "airport=JFK", "--formal", "--json"]


def learngraph(*arguments: str) -> tuple[int, dict[str, Any]]:
    """One command's exit code and its JSON; its progress stays on the terminal."""
    command = [str(Path(sys.executable).with_name("learngraph")), *arguments]
    done = subprocess.run(
        command,
        cwd=CHECKOUT,
        env={**os.environ, "LEARNGRAPH_HOME": str(HOME)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        sys.exit(
            f"demo: `learngraph {arguments[0]}` printed no JSON (exit code {done.returncode}): {done.stdout[:500]}"
        )


def main() -> int:
    code, run = learngraph(*RUN)
    if "error" in run:
        error = run["error"]
        print(f"demo: {error['reason']} — {error.get('remedy')}", file=sys.stderr)
        return code or 1
    report = HOME / "demo" / f"{run['run_id']}.html"
    report.parent.mkdir(parents=True, exist_ok=True)
    exported, answer = learngraph("export", run["run_id"], "--html", str(report), "--json")
    if exported:
        print(f"demo: the report was not exported: {answer}", file=sys.stderr)
        return exported
    print(f"run      {run['run_id']}  ({run['status']})")
    print(f"report   {report}")
    print(f"tier     {run['tier']}")
    print(f"seal     {run['seal']}")
    print(f"content  {run['content_hash']}")
    print(f"verify   LEARNGRAPH_HOME={HOME} {Path(sys.executable).with_name('learngraph')} verify {run['run_id']}")
    return code


if __name__ == "__main__":
    sys.exit(main())
