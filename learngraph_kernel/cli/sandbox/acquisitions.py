"""`learngraph sandbox acquisitions`: what was taken in from outside."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("acquisitions")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@json_option
def command(limit: int, as_json: bool) -> None:
    """The receipts of downloads, newest first."""
    from learngraph_kernel.data.textual import text_table
    from learngraph_kernel.sandbox.receipts import receipts
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        found = receipts(store, limit)
    if as_json:
        print_json([receipt.as_json() for receipt in found])
    elif not found:
        click.echo("nothing was acquired; learngraph sandbox acquire URL --as NAME")
    else:
        rows = [(item.at, item.kind, str(item.stored_bytes), item.sha256[:16], item.final_url) for item in found]
        click.echo(text_table(("at", "kind", "bytes", "sha256", "url"), rows))
