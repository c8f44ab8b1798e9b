"""`learngraph sandbox gc`: what the daemon does by itself every minute, now."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("gc")
@json_option
def command(as_json: bool) -> None:
    """Apply time-outs, remove orphan containers and contents that nothing names."""
    from learngraph_kernel.sandbox.client import connected

    with connected() as client:
        done = client.collect()
    if as_json:
        print_json(done)
    else:
        click.echo(
            f"{done['containers']} orphan containers removed, {done['cold']} workspaces made cold, "
            f"{done['contents']} unnamed contents removed"
        )
