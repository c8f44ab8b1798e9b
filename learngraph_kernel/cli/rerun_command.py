"""`learngraph rerun`: the same run again, from recorded inputs alone."""

from __future__ import annotations

import asyncio
import sys

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.cli.running import cell_limits, describe, limit_options, quick_imports
from learngraph_kernel.errors import ExitCode


@click.command("rerun")
@click.argument("run")
@limit_options
@json_option
def command(run: str, execution_timeout: float, max_output: int, as_json: bool) -> int:
    """Run RUN again with the answers its ledger holds (no source and no model is asked) and compare the content hash.

    Exit code 0 when the hashes agree, 5 when they do not, 1 when the rerun failed.
    """
    quick_imports()
    from learngraph_kernel.runs.again import plan_of_run
    from learngraph_kernel.runs.progress import progress_for
    from learngraph_kernel.runs.rerun import rerun

    plan = plan_of_run(run, rerun=True, limits=cell_limits(execution_timeout, max_output))
    comparison = asyncio.run(rerun(plan, progress=progress_for(sys.stderr, quiet=as_json)))
    outcome = comparison.outcome
    if as_json:
        print_json(comparison.as_json())
    else:
        describe(outcome)
        click.echo(f"{'same as' if comparison.same else 'DIFFERENT':<10} {'' if comparison.same else 'from '}{run}")
        for line in comparison.differences:
            click.echo(f"{'':<10} {line}")
    if outcome.status in ("failed", "cancelled"):
        return outcome.exit_code
    return ExitCode.COMPLETED if comparison.same else ExitCode.MISMATCH
