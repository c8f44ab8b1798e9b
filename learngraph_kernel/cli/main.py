"""The command group: names, one-line helps, and where each command's module is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from learngraph_kernel.cli.common import report_error
from learngraph_kernel.cli.lazy import LazyGroup
from learngraph_kernel.errors import BadInput, ExitCode, LearnGraphError

COMMANDS: dict[str, str] = {
    "run": "Run a notebook, seal the run, print its tier and seal.",
    "ask": "Ask a question; a notebook that ran in the closed box answers.",
    "resume": "Continue a run that was stopped or killed; recorded calls do not happen again.",
    "rerun": "Run again from the recorded inputs alone and compare the content hash.",
    "verify": "Check a run, an exported folder or a bundle, offline.",
    "show": "One run with its events and calls.",
    "list": "The runs, newest first.",
    "diff": "What differs between two runs: inputs, metrics, cells.",
    "export": "Write a run as a folder, HTML report, bundle or RO-Crate.",
    "audit": "Check every number of a text against tables.",
    "lint": "What the SQL of files gets wrong about its data, by the catalogue.",
    "query": "Run one guarded query against a source.",
    "source": "Add, list, test or remove data sources.",
    "models": "The declared models, and what their endpoints understand.",
    "secret": "Keep keys of models, encrypted.",
    "sandbox": "The closed box: what may enter it, and what runs in it.",
    "gc": "Remove artifacts that nothing refers to.",
    "sandboxd": "Run the sandbox daemon in the foreground.",
    "doctor": "Every component, its state, and the remedy for what fails.",
}


@click.group(
    cls=LazyGroup,
    helps=COMMANDS,
    module="learngraph_kernel.cli.{}_command",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="learngraph")
def group() -> None:
    """Notebooks whose numbers can be trusted.

    Exit codes: 0 completed, 1 failed, 2 usage or bad input, 3 withheld or ungrounded, 4 waiting for a person,
    5 verification mismatch; 130 stopped by Ctrl-C before a run began.
    """


class WrongUsage(BadInput):
    """The words after `learngraph` are not what a command takes."""

    code = "usage"


def _usage_error(error: click.ClickException) -> WrongUsage:
    context = error.ctx if isinstance(error, click.UsageError) else None
    place = "learngraph" if context is None else context.command_path
    return WrongUsage(error.format_message(), where=place, remedy=f"{place} --help")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs a command and exits with its documented code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = group.main(args=argv, prog_name="learngraph", standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        if "--json" in argv:
            report_error(_usage_error(error), as_json=True)
        else:
            error.show()
        sys.exit(ExitCode.USAGE)
    except LearnGraphError as error:
        report_error(error, as_json="--json" in argv)
        sys.exit(error.exit_code)
    sys.exit(int(result) if isinstance(result, int) else ExitCode.COMPLETED)
