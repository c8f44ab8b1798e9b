"""`learngraph gc`: remove artifacts that nothing refers to."""

from __future__ import annotations

import datetime as dt
from typing import Any

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Show what would go; remove nothing.")
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="Keep what was stored more recently than this.",
)
@json_option
def command(dry_run: bool, grace_hours: float, as_json: bool) -> None:
    """Remove artifacts that nothing refers to."""
    from learngraph_kernel.actor import current_actor
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.garbage import collect, garbage
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        plan = garbage(store, grace=dt.timedelta(hours=grace_hours))
        sizes = {candidate.sha256: candidate.size for candidate in plan.candidates}
        names, freed = list(sizes), plan.bytes
        if not dry_run:
            done = collect(store, plan, actor=current_actor())
            names, freed = list(done.removed), done.bytes
    result = {
        "dry_run": dry_run,
        "artifacts": [{"sha256": name, "size": sizes[name]} for name in names],
        "bytes": freed,
        "kept": plan.kept + len(sizes) - len(names),
        "young": plan.young,
    }
    if as_json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    for artifact in result["artifacts"]:
        click.echo(f"{artifact['sha256']}  {artifact['size']} bytes")
    verb = "would go" if result["dry_run"] else "removed"
    young = f", {result['young']} of them only for now (too young)" if result["young"] else ""
    click.echo(f"{len(result['artifacts'])} artifacts {verb}, {result['bytes']} bytes; {result['kept']} kept{young}")
