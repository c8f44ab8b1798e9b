"""`learngraph diff`: what differs between two runs."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.errors import BadInput


@click.command("diff")
@click.argument("first")
@click.argument("second")
@json_option
def command(first: str, second: str, as_json: bool) -> int:
    """Compare runs FIRST and SECOND: parameters, inputs, metrics, cells, report, result."""
    from learngraph_kernel.runs.content import explain_difference
    from learngraph_kernel.runs.rerun import content_of
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    with Store.open(Home.default()) as store:
        documents = []
        for run in (first, second):
            store.run(run)
            document = content_of(store, run)
            if document is None:
                raise BadInput(
                    f"run {run} never completed, so it has no content to compare", remedy=f"learngraph resume {run}"
                )
            documents.append(document)
        hashes = [store.run(run).content_hash for run in (first, second)]
    differences = explain_difference(documents[0], documents[1])
    if as_json:
        print_json(
            {
                "first": first,
                "second": second,
                "content_hashes": hashes,
                "same": not differences,
                "differences": differences,
            }
        )
    elif not differences:
        click.echo("same content")
    for line in [] if as_json else differences:
        click.echo(line)
    return 0
