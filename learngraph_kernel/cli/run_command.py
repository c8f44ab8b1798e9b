"""`learngraph run`: execute a notebook as a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.cli.running import cell_limits, execute, limit_options, quick_imports


class PapermillOptions(click.Command):
    """Accepts papermill's two-word `-p name value` and our one-word `-p name=value` alike."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_two_words(args)))


def _two_words(args: list[str]) -> list[str]:
    words: list[str] = []
    remaining = list(args)
    while remaining:
        word = remaining.pop(0)
        words.append(word)
        if word == "--":
            return words + remaining
        if word in ("-p", "--parameters", "-r", "--parameters_raw") and remaining:
            name, equals, value = remaining[0].partition("=")
            if equals and name.isidentifier():
                remaining.pop(0)
                words += [name, value]
            elif len(remaining) > 1:
                if remaining[1].startswith("--"):
                    # A forgotten value would swallow the next option: `-p month --formal` would run without --formal.
                    raise click.UsageError(
                        f"{word} {remaining[0]} has no value; a value that begins with -- is {word} NAME=--…"
                    )
                words += [remaining.pop(0), remaining.pop(0)]
    return words


@click.command("run", cls=PapermillOptions)
@click.argument("notebook", type=click.Path(path_type=Path))
@click.argument("output_path", required=False, type=click.Path(path_type=Path))
@click.option("-p", "--parameters", nargs=2, multiple=True, metavar="NAME VALUE", help="A parameter; also NAME=VALUE.")
@click.option("-r", "--parameters_raw", nargs=2, multiple=True, metavar="NAME TEXT", help="A parameter kept as text.")
@click.option(
    "-f", "--parameters_file", multiple=True, type=click.Path(path_type=Path), help="YAML file of parameters."
)
@click.option("-y", "--parameters_yaml", multiple=True, help="YAML text of parameters.")
@click.option("-b", "--parameters_base64", multiple=True, help="Base64 of YAML text of parameters.")
@click.option("-k", "--kernel", default=None, help="Kernel to run in (default: the notebook's own).")
@click.option("--cwd", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Folder to run in.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the executed notebook here."
)
@limit_options
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "docker", "host"]),
    default="auto",
    show_default=True,
    help="Where to run: the closed box if there is one, the box or nothing, or a kernel of this machine's.",
)
@click.option("--formal", is_flag=True, help="Hold the run to its contract; every number needs its evidence.")
@workspace_option
@json_option
def command(
    notebook: Path,
    output_path: Path | None,
    parameters: tuple[tuple[str, str], ...],
    parameters_raw: tuple[tuple[str, str], ...],
    parameters_file: tuple[Path, ...],
    parameters_yaml: tuple[str, ...],
    parameters_base64: tuple[str, ...],
    kernel: str | None,
    cwd: Path | None,
    output: Path | None,
    execution_timeout: float,
    max_output: int,
    sandbox: Literal["auto", "docker", "host"],
    formal: bool,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Run NOTEBOOK, seal the run, print its tier and seal.

    Parameters are given as papermill takes them. The executed notebook and the HTML report are kept with the run; -o
    (or a second path, as papermill has it) writes the notebook to a place of yours as well.
    """
    quick_imports()
    from learngraph_kernel.runs.parameter_options import collect
    from learngraph_kernel.runs.plan import plan_notebook

    given: dict[str, Any] = collect(
        base64_yaml=parameters_base64,
        files=parameters_file,
        yaml_texts=parameters_yaml,
        pairs=parameters,
        raw_pairs=parameters_raw,
    )
    plan = plan_notebook(
        notebook,
        given,
        formal=formal,
        kernel=kernel,
        cwd=cwd,
        workspace=workspace,
        limits=cell_limits(execution_timeout, max_output),
        sandbox=sandbox,
    )
    outcome = execute(plan, as_json=as_json, copy_to=output or output_path)
    if as_json:
        print_json(outcome.as_json())
        sys.stdout.flush()
    return outcome.exit_code
