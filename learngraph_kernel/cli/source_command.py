"""`learngraph source add|ls|test|rm`: the data sources of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.errors import ExitCode, LearnGraphError

if TYPE_CHECKING:
    from learngraph_kernel.data.source import Source, SourceConfig


@click.group("source")
def command() -> None:
    """Add, list, test or remove the data sources declared in learngraph.toml."""


@command.command("add")
@click.argument("name")
@click.option("--kind", required=True, help="duckdb, sqlite, folder, sample, or the kind of an installed plug-in.")
@click.option("--path", default=None, help="File or folder, relative to the workspace.")
@click.option("--dataset", default=None, help="For --kind sample: the data set, e.g. nycflights13.")
@workspace_option
@json_option
def add(name: str, kind: str, path: str | None, dataset: str | None, workspace: Path | None, as_json: bool) -> None:
    """Declare the source NAME; a learngraph.toml is made here if there is none above."""
    from learngraph_kernel.data.source import check_options
    from learngraph_kernel.data.workspace import add_source, find_workspace

    options = {key: value for key, value in (("path", path), ("dataset", dataset)) if value is not None}
    root = find_workspace(workspace).root
    check_options(name, kind, options, root)
    config = add_source(root, name, kind, options)
    if as_json:
        print_json(_config_json(config))
    else:
        click.echo(f"added {name} ({kind}) to {root / 'learngraph.toml'}")


@command.command("ls")
@workspace_option
@json_option
def ls(workspace: Path | None, as_json: bool) -> None:
    """The declared sources."""
    from learngraph_kernel.data.textual import text_table
    from learngraph_kernel.data.workspace import find_workspace

    space = find_workspace(workspace)
    if as_json:
        print_json([_config_json(config) for config in space.sources.values()])
    elif not space.sources:
        click.echo(f"no sources in {space.root}; learngraph source add NAME --kind … --path …")
    else:
        rows = [
            (config.name, config.kind, ", ".join(f"{key} = {value}" for key, value in config.options.items()))
            for config in space.sources.values()
        ]
        click.echo(text_table(("name", "kind", "options"), rows))


@command.command("test")
@click.argument("name")
@workspace_option
@json_option
def test(name: str, workspace: Path | None, as_json: bool) -> int:
    """Open the source NAME and list its tables."""
    from learngraph_kernel.data.workspace import find_workspace
    from learngraph_kernel.store.home import Home

    space = find_workspace(workspace)
    config = space.source(name)
    home = Home.default()
    home.ensure()
    try:
        source = space.open_source(name, home.root)
        source.test()
        tables = _tables_json(source)
    except LearnGraphError as error:
        if not as_json:
            raise
        print_json({**_config_json(config), "ok": False, "error": error.as_json()})
        return int(error.exit_code)
    finally:
        space.close()
    if as_json:
        print_json({**_config_json(config), "ok": True, "tables": tables})
    else:
        click.echo(f"{name} answers: {len(tables)} table{'' if len(tables) == 1 else 's'}")
        for table in tables:
            rows = "" if table["rows"] is None else f", {table['rows']} rows"
            click.echo(f"  {table['name']} ({len(table['columns'])} columns{rows})")
    return int(ExitCode.COMPLETED)


@command.command("rm")
@click.argument("name")
@workspace_option
@json_option
def rm(name: str, workspace: Path | None, as_json: bool) -> None:
    """Take the source NAME out of learngraph.toml; its data stays."""
    from learngraph_kernel.data.workspace import find_workspace, remove_source

    root = find_workspace(workspace).root
    config = remove_source(root, name)
    if as_json:
        print_json(_config_json(config))
    else:
        click.echo(f"removed {name} from {root / 'learngraph.toml'}; its data is untouched")


def _config_json(config: SourceConfig) -> dict[str, Any]:
    limits = config.limits
    return {
        "name": config.name,
        "kind": config.kind,
        **config.options,
        "limits": {"rows": limits.rows, "bytes": limits.bytes, "seconds": limits.seconds},
    }


def _tables_json(source: Source) -> list[dict[str, Any]]:
    return [
        {
            "name": table.name,
            "columns": [{"name": column.name, "type": column.type} for column in table.columns],
            "rows": table.rows,
        }
        for table in source.tables()
    ]
