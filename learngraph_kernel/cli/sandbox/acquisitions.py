"""`learngraph sandbox acquisitions`: what was taken in from outside."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("acquisitions")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@json_option
def command(limit: int, as_json: bool) -> None:
    """What was taken in, by whose leave, newest first; and downloads that were interrupted."""
    from learngraph_kernel.data.textual import text_table
    from learngraph_kernel.sandbox.acquisitions import acquisitions
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        found = acquisitions(store, limit)
    if as_json:
        print_json([item.as_json() for item in found])
    elif not found:
        click.echo("nothing was acquired; learngraph sandbox acquire URL --as NAME")
    else:
        rows = [
            (
                item.at,
                item.allowed_by,
                item.request["kind"],
                item.state if item.receipt is None else item.receipt.sha256[:16],
                item.request["url"] if item.receipt is None else item.receipt.final_url,
            )
            for item in found
        ]
        click.echo(text_table(("at", "allowed by", "kind", "sha256", "url"), rows))
