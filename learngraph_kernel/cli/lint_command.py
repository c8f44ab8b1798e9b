"""`learngraph lint FILE…`: what the SQL of files gets wrong about its data, by the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.errors import ExitCode

if TYPE_CHECKING:
    from learngraph_kernel.data.catalogue import Catalogue
    from learngraph_kernel.data.workspace import Workspace

_DIALECTS = {"sqlite": "sqlite", "postgres": "postgres", "mysql": "mysql"}


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--source", metavar="S", help="Lint only what is sent to this source, by its catalogue.")
@click.option(
    "--catalog", metavar="F", type=click.Path(path_type=Path), help="Catalogue (default: catalog/SOURCE.yaml)."
)
@click.option("--dialect", metavar="D", help="As sqlglot calls it (default: the source's; without one, duckdb).")
@workspace_option
@json_option
def command(
    files: tuple[Path, ...],
    source: str | None,
    catalog: Path | None,
    dialect: str | None,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Check the SQL of .sql, .py and .ipynb files against the catalogue. No source is opened.

    Exit codes: 0 no error (warnings may be there), 3 an error, 2 bad input.
    """
    from learngraph_kernel.data.catalogue import load_catalogue
    from learngraph_kernel.data.lint.files import passages
    from learngraph_kernel.data.workspace import find_workspace

    found: list[dict[str, Any]] = []
    home = find_workspace(workspace)
    given = None if catalog is None else load_catalogue(catalog)
    for path in files:
        for passage in passages(path):
            name = passage.source or source
            if source is not None and name != source:
                continue
            known = given if given is not None else _catalogue(home, name)
            for finding in _lint(passage.text, known, dialect or _dialect(home, name)):
                shift = passage.start or 0
                finding["line"] += passage.line - 1
                finding["start"] += shift
                finding["end"] += shift
                found.append({"file": str(path), "cell": passage.cell, **finding})
    if as_json:
        print_json(found)
    else:
        _print(found)
    return ExitCode.WITHHELD if any(finding["severity"] == "error" for finding in found) else ExitCode.COMPLETED


def _catalogue(home: Workspace, source: str | None) -> Catalogue:
    from learngraph_kernel.data.catalogue import Catalogue, load_catalogue

    path = home.root / "catalog" / f"{source}.yaml"
    return load_catalogue(path) if source is not None and path.is_file() else Catalogue()


def _dialect(home: Workspace, source: str | None) -> str:
    config = home.sources.get(source) if source is not None else None
    return "duckdb" if config is None else _DIALECTS.get(config.kind, "duckdb")


def _lint(text: str, catalogue: Catalogue, dialect: str) -> list[dict[str, Any]]:
    from learngraph_kernel.data.lint import lint

    return [finding.as_json() for finding in lint(text, catalogue, dialect=dialect)]


def _print(found: Sequence[dict[str, Any]]) -> None:
    for finding in found:
        cell = f" cell {finding['cell']}" if finding["cell"] else ""
        click.echo(
            f"{finding['file']}{cell}:{finding['line']}: {finding['severity']} {finding['rule']}: {finding['message']}"
        )
        if finding["example"]:
            click.echo(f"    e.g. {finding['example']}")
        if finding["rewrite"]:
            click.echo("    rewrite:\n" + "\n".join(f"      {line}" for line in finding["rewrite"].splitlines()))
    if not found:
        click.echo("nothing found")
