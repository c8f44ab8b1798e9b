"""`learngraph sandbox shutdown`: ends the private sandboxd; files and records stay."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("shutdown")
@json_option
def command(as_json: bool) -> None:
    """End the sandboxd that was started for you: its workspaces go cold, kernels of runs go on, files stay.

    The next run that needs the closed box starts it again.
    """
    import time

    from learngraph_kernel.errors import Unavailable
    from learngraph_kernel.sandbox.client import connected
    from learngraph_kernel.sandbox.place import default_socket, listening

    path = default_socket()
    if not listening(path):
        answer: dict[str, object] = {"state": "not_running", "kernels": []}
    else:
        with connected(path) as client:
            answer = {"state": "stopped", "kernels": client.shut_down()}
        deadline = time.monotonic() + 30
        while listening(path):
            if time.monotonic() > deadline:
                raise Unavailable("sandboxd did not end within 30 s", where=str(path), remedy="see its log")
            time.sleep(0.05)
    if as_json:
        print_json(answer)
    else:
        click.echo(str(answer["state"]).replace("_", " "))
        for kernel in answer["kernels"]:  # type: ignore[attr-defined]
            click.echo(f"{kernel}  goes on until its run ends")
