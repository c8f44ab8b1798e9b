"""`learngraph list`: the runs, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from learngraph_kernel.cli.common import json_option, print_json

if TYPE_CHECKING:
    from learngraph_kernel.store.run_record import RunRecord

STATUSES = ("running", "waiting", "completed", "failed", "withheld", "cancelled", "interrupted")


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only runs of this status.")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="At most so many.")
@json_option
def command(status: str | None, limit: int | None, as_json: bool) -> None:
    """The runs, newest first."""
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        runs = store.runs(status=status, limit=limit)  # type: ignore[arg-type]  # one of STATUSES
    if as_json:
        print_json([run.as_json() for run in runs])
    elif not runs:
        click.echo("No runs." if status is None else f"No runs are {status}.")
    else:
        for run in runs:
            click.echo(line(run))


def line(run: RunRecord) -> str:
    """A run on one line: id, status, tier, start in local time, what it is."""
    started = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
    name = run.title or run.notebook or ("formal run" if run.formal else "exploratory run")
    return f"{run.run_id}  {run.observed_status():<11}  {run.tier or '-':<8}  {started}  {name}"
