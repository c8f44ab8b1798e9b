"""`learngraph query SOURCE SQL`: one guarded query, for a person or a script."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option

if TYPE_CHECKING:
    from learngraph_kernel.data.snapshots import ArrowSnapshot

SHOWN_ROWS = 50  # for a person; --json prints all


@click.command("query")
@click.argument("source")
@click.argument("sql")
@click.option("--limit", type=click.IntRange(min=1), default=None, help="Store and print at most this many rows.")
@workspace_option
@json_option
def command(source: str, sql: str, limit: int | None, workspace: Path | None, as_json: bool) -> None:
    """Run one guarded, read-only query against a SOURCE of the workspace and store its result.

    SQL is the statement; `-` reads it from standard input.
    """
    from dataclasses import replace

    from learngraph_kernel.data.snapshots import take_snapshot
    from learngraph_kernel.data.workspace import find_workspace
    from learngraph_kernel.store.artifacts import ArtifactStore
    from learngraph_kernel.store.home import Home

    if sql == "-":
        sql = sys.stdin.read()
    home = Home.default()
    space = find_workspace(workspace)
    space.source(source)  # a wrong name is said before a home folder is made
    home.ensure()
    opened = space.open_source(source, home.root)
    try:
        limits = opened.limits if limit is None else replace(opened.limits, rows=min(limit, opened.limits.rows))
        snapshot = take_snapshot(opened, sql, artifacts=ArtifactStore(home.artifacts), ref="Q1", limits=limits)
    finally:
        space.close()
    if as_json:
        print_json(as_document(snapshot))
    else:
        print_table(snapshot)


def as_document(snapshot: ArrowSnapshot) -> dict[str, Any]:
    """What `--json` prints: columns, rows, row_count, truncated, snapshot."""
    from learngraph_kernel.data.cells import json_value

    info = snapshot.info
    return {
        "columns": [column.name for column in info.columns],
        "rows": [[json_value(value) for value in row] for row in snapshot.rows(0, info.row_count)],
        "row_count": info.row_count,
        "truncated": info.truncated,
        "snapshot": info.artifact,
    }


def print_table(snapshot: ArrowSnapshot) -> None:
    """The first rows in columns, then what was stored."""
    from learngraph_kernel.data.textual import text_table

    info = snapshot.info
    shown = list(snapshot.rows(0, SHOWN_ROWS))
    click.echo(text_table([column.name for column in info.columns], shown))
    more = f", {len(shown)} shown" if len(shown) < info.row_count else ""
    cut = f", cut by the limit on {info.truncated}" if info.truncated else ""
    click.echo(f"{info.row_count} row{'' if info.row_count == 1 else 's'}{more}{cut} · snapshot {info.artifact}")
