"""`learngraph doctor`: every component, its state, and the remedy for what fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option

if TYPE_CHECKING:
    from learngraph_kernel.doctor import CheckResult

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "unavailable": "cyan"}


@click.command("doctor")
@click.option("--deep", is_flag=True, help="Also start a kernel and re-hash every artifact.")
@workspace_option
@json_option
def command(deep: bool, workspace: Path | None, as_json: bool) -> int:
    """Every component, its state, and the remedy for what fails. Exit code 1 when something failed."""
    import os

    from learngraph_kernel.doctor import Surroundings, diagnose
    from learngraph_kernel.errors import ExitCode
    from learngraph_kernel.store.home import Home

    around = Surroundings(Home.default().root, workspace or Path.cwd(), os.environ, deep)
    results = diagnose(around)
    fine = not any(result.state == "failed" for result in results)
    if as_json:
        print_json({"ok": fine, "checks": [result.as_json() for result in results]})
    else:
        _print(results)
    return ExitCode.COMPLETED if fine else ExitCode.FAILED


def _print(results: list[CheckResult]) -> None:
    width = max(len(result.name) for result in results)
    for result in results:
        state = click.style(f"{result.state:<11}", fg=_COLOURS[result.state])
        click.echo(f"{state}  {result.name:<{width}}  {result.detail}")
        if result.remedy is not None:
            click.echo(f"{'':<11}  {'':<{width}}  → {result.remedy}")
    counts = {state: sum(result.state == state for result in results) for state in _COLOURS}
    click.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count))
