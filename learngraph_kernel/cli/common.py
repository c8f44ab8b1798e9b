"""What every command shares: printing JSON, printing errors, the `--json` and workspace options."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from learngraph_kernel.errors import LearnGraphError

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """`--json`: print one JSON document on standard output and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")(function)


def workspace_option(function: F) -> F:
    """`--workspace DIR`: where learngraph.toml lies; default: found upwards from here."""
    return click.option(
        "--workspace",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        help="Folder with learngraph.toml (default: found upwards from here).",
    )(function)


def print_json(value: Any) -> None:
    """One JSON document, readable, UTF-8, on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def report_error(error: LearnGraphError, *, as_json: bool) -> None:
    """A LearnGraphError for a person (standard error) or a program (`{"error": …}` on standard output)."""
    if as_json:
        print_json({"error": error.as_json()})
    else:
        click.echo(f"learngraph: {error}", err=True)
