"""`learngraph sandbox ls`: the caller's workspaces and running kernels."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("ls")
@click.option("--all", "everything", is_flag=True, help="Also workspaces that have expired.")
@json_option
def command(everything: bool, as_json: bool) -> None:
    """Your workspaces and running kernels."""
    from learngraph_kernel.sandbox.client import connected

    with connected() as client:
        sandboxes, kernels = client.overview()
    shown = [sandbox for sandbox in sandboxes if everything or sandbox.state != "expired"]
    if as_json:
        rows = [{name: str(v) if name.endswith(_PLACES) else v for name, v in asdict(k).items()} for k in kernels]
        print_json({"sandboxes": [asdict(sandbox) for sandbox in shown], "kernels": rows})
        return
    for sandbox in shown:
        age = int(time.time() - sandbox.active)
        reason = f"  {sandbox.reason}" if sandbox.reason else ""
        click.echo(f"{sandbox.id}  {sandbox.state:<9}  {sandbox.policy}  {sandbox.session}  active {age} s ago{reason}")
    for kernel in kernels:
        click.echo(f"{kernel.id}  {kernel.state:<9}  kernel of {kernel.run}")
    if not shown and not kernels:
        click.echo("no workspaces and no kernels")


_PLACES = ("folder", "granted", "_file", "_socket")
