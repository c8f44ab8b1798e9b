"""`learngraph resume`: go on with a run that was killed, interrupted or failed."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.cli.running import cell_limits, describe, execute, limit_options, quick_imports


@click.command("resume")
@click.argument("run")
@limit_options
@json_option
def command(run: str, execution_timeout: float, max_output: int, as_json: bool) -> int:
    """Continue RUN: the notebook runs again from the top in a fresh kernel, and every recorded call is answered from
    the ledger instead of happening again. A run that had completed and only lacks its seal is sealed.
    """
    quick_imports()
    from learngraph_kernel.actor import current_actor
    from learngraph_kernel.runs.again import finish_closed, plan_of_run

    outcome = finish_closed(run, actor=current_actor())
    if outcome is None:
        plan = plan_of_run(run, limits=cell_limits(execution_timeout, max_output))
        outcome = execute(plan, as_json=as_json, run_id=run)
    elif not as_json:
        describe(outcome)
    if as_json:
        print_json(outcome.as_json())
    return outcome.exit_code
