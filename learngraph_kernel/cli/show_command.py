"""`learngraph show`: one run with its events and calls."""

from __future__ import annotations

from typing import Any

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("show")
@click.argument("run")
@click.option("--events/--no-events", default=True, help="With the ledger's events, not only the calls.")
@json_option
def command(run: str, events: bool, as_json: bool) -> int:
    """Show RUN: what it was, how it ended, its calls and its events."""
    from learngraph_kernel.runs.history import CALLS, calls_of
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        record = store.run(run).as_json()
        history = list(store.ledger.events(run, types=None if events else CALLS))
    calls = calls_of(history)
    if as_json:
        body: dict[str, Any] = {**record, "calls": calls}
        if events:
            body["events"] = [event.as_json() for event in history]
        print_json(body)
        return 0
    for name, value in record.items():
        if value not in (None, {}, []) and name != "process":
            click.echo(f"{name:<14} {value}")
    if calls:
        click.echo(f"\n{'cell':<18} {'call':<10} {'state':<10} rests on")
    for call in calls:
        rests = ", ".join(sha[:12] for sha in call["artifacts"])
        click.echo(f"{call['cell']:<18} {call['method']:<10} {call['state']:<10} {rests}")
    if events:
        click.echo(f"\n{'seq':>5} {'at':<28} event")
    for event in history if events else []:
        mark = "  (after the seal)" if event.after_seal else ""
        click.echo(f"{event.seq:>5} {event.at:<28} {event.type}{mark}")
    return 0
