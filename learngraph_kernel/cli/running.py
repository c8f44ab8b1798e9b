"""What `run`, `resume` and `rerun` share: quick imports, progress, and saying how it ended."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.limits import MIB, CellLimits

if TYPE_CHECKING:
    from learngraph_kernel.runs.outcome import RunOutcome
    from learngraph_kernel.runs.plan import RunPlan

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULT = CellLimits()


def limit_options(function: F) -> F:
    """`--execution-timeout` and `--max-output`: what one cell may use; `cell_limits` takes the two."""
    timeout = click.option(
        "--execution-timeout",
        type=click.FloatRange(min=0),
        default=_DEFAULT.seconds,
        show_default=True,
        help="Seconds for one cell; 0: none.",
    )
    output = click.option(
        "--max-output",
        type=click.IntRange(min=1),
        default=_DEFAULT.output_bytes // MIB,
        show_default=True,
        help="MiB that one cell may print.",
    )
    return timeout(output(function))


def cell_limits(execution_timeout: float, max_output: int) -> CellLimits:
    """The limits that `limit_options` were given."""
    return CellLimits(seconds=execution_timeout or None, output_bytes=max_output * MIB)


def quick_imports() -> None:
    """Keeps jsonschema from loading its IRI grammar, which costs more than a kernel's start.

    `rfc3987_syntax` builds a parser when imported and serves one JSON Schema format (`iri`) that no schema of ours
    uses. A None in `sys.modules` is Python's documented way to make an import fail, and jsonschema treats the module
    as optional. Only the command's own process is affected; kernels are not.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def execute(plan: RunPlan, *, as_json: bool, run_id: str | None = None, copy_to: Path | None = None) -> RunOutcome:
    """Runs a plan with progress on standard error; prints the outcome for a person unless `as_json`."""
    from learngraph_kernel.runs.launch import run_plan
    from learngraph_kernel.runs.progress import progress_for

    if copy_to is not None and not copy_to.parent.is_dir():
        raise BadInput("the output's folder does not exist", where=str(copy_to.parent), remedy="create it first")
    outcome = asyncio.run(run_plan(plan, progress=progress_for(sys.stderr, quiet=as_json), run_id=run_id))
    if copy_to is not None and outcome.notebook is not None:
        shutil.copyfile(outcome.notebook, copy_to)
    if not as_json:
        describe(outcome)
    return outcome


def describe(outcome: RunOutcome) -> None:
    """How a run ended, for a person."""
    rows = [
        ("run", outcome.run_id),
        ("status", outcome.status),
        ("tier", outcome.tier),
        ("isolation", outcome.isolation),
        ("content", outcome.content_hash),
        ("seal", outcome.seal),
        ("notebook", outcome.notebook),
        ("report", outcome.report),
    ]
    for name, value in rows:
        if value is not None:
            click.echo(f"{name:<10} {value}")
    for reason in [*outcome.reasons, *(f"missing: {item}" for item in outcome.missing)]:
        click.echo(f"{'':<10} {reason}")
    for violation in outcome.violations:
        line = f"{violation['message']} (characters {violation['start']}–{violation['end']})"
        if line not in outcome.reasons:
            click.echo(f"{'':<10} no evidence: {line}")
    if outcome.error is not None:
        error = outcome.error
        place = f"{error['place']}: " if error.get("place") else ""
        remedy = f" — {error['remedy']}" if error.get("remedy") else ""
        click.echo(f"learngraph: {place}{error['reason']}{remedy}", err=True)
        if outcome.status == "failed":
            # A resumed run uses the notebook as it was recorded: what was changed in the file needs a new run.
            click.echo(
                "a fault in the notebook: mend it and run it anew; a fault outside it, once mended:"
                f" learngraph resume {outcome.run_id}",
                err=True,
            )
    if outcome.seal is not None:
        click.echo(f"{'verify':<10} learngraph verify {outcome.run_id}")
