"""`learngraph export`: a sealed run as a folder, an HTML report, a bundle, or an RO-Crate."""

from __future__ import annotations

from pathlib import Path

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.errors import BadInput


@click.command()
@click.argument("run")
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Write the self-contained sealed folder.")
@click.option("--html", "report", type=click.Path(path_type=Path, dir_okay=False), help="Write the HTML report.")
@click.option("--bundle", type=click.Path(path_type=Path, dir_okay=False), help="Write the page that verifies itself.")
@click.option("--crate", type=click.Path(path_type=Path), help="Write an RO-Crate (Workflow Run profile).")
@json_option
def command(
    run: str, folder: Path | None, report: Path | None, bundle: Path | None, crate: Path | None, as_json: bool
) -> None:
    """Write a sealed RUN in one or several forms.

    RUN is a run's id; a folder or a bundle exported before does as well. The run is verified first: what is not what
    was sealed is not exported (exit code 5).
    """
    if not (folder or report or bundle or crate):
        raise BadInput(
            "nothing to write", where="export", remedy="name at least one of --to, --html, --bundle, --crate"
        )
    from learngraph_kernel.runs.export import Destinations, export
    from learngraph_kernel.store.home import Home

    written = export(run, Destinations(folder, report, bundle, crate), home=Home.default())
    if as_json:
        print_json({"run_id": written.run, **{form: str(path) for form, path in written.paths.items()}})
        return
    for form, path in written.paths.items():
        click.echo(f"{form}: {path}")
