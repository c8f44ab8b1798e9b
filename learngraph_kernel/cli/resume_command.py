"""`learngraph resume`: go on with a run that was killed, interrupted or failed."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("resume")
@click.argument("run")
@json_option
def command(run: str, as_json: bool) -> int:
    """Continue RUN: the notebook runs again from the top in a fresh kernel, and every recorded call is answered from
    the ledger instead of happening again. A run that had completed and only lacks its seal is sealed.
    """
    from learngraph_kernel.cli.running import describe, execute, quick_imports

    quick_imports()
    from learngraph_kernel.runs.again import finish_closed, plan_of_run
    from learngraph_kernel.runs.launch import current_actor

    outcome = finish_closed(run, actor=current_actor())
    if outcome is None:
        outcome = execute(plan_of_run(run), as_json=as_json, run_id=run)
    elif not as_json:
        describe(outcome)
    if as_json:
        print_json(outcome.as_json())
    return outcome.exit_code
