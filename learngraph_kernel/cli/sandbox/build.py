"""`learngraph sandbox build`: makes (or takes) the sandbox image, and says how far it is."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.errors import ExitCode

POLL_S = 0.3


@click.command("build")
@click.option("--pull", is_flag=True, help="Take it from the registry in sandboxd's settings instead.")
@json_option
def command(pull: bool, as_json: bool) -> int:
    """Make the sandbox image by what is possible here and print its id. What is there already is not made again.

    Exit codes: 0 the image is there, 1 it could not be made.
    """
    from learngraph_kernel.sandbox.on_demand import running_client

    with contextlib.closing(running_client()) as client:
        job = client.pull_image() if pull else client.build_image()
        shown: tuple[Any, ...] = ()
        while job["state"] == "running":
            time.sleep(POLL_S)
            job = client.image_job(job["job"])
            now = (job["step"], int(job["progress"] * 100))
            if now != shown:
                click.echo(f"{now[1]:3d} %  {now[0]}", err=True)
                shown = now
    if as_json:
        print_json(job)
    elif job["state"] == "succeeded":
        click.echo(job["image"])
    else:
        click.echo(f"learngraph: {job['reason']}", err=True)
    return ExitCode.COMPLETED if job["state"] == "succeeded" else ExitCode.FAILED
