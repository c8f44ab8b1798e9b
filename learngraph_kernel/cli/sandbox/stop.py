"""`learngraph sandbox stop ID…`: ends containers; the files of workspaces stay."""

from __future__ import annotations

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("stop")
@click.argument("identities", metavar="ID…", nargs=-1, required=True)
@click.option("--delete", is_flag=True, help="Also remove the workspace with its files.")
@json_option
def command(identities: tuple[str, ...], delete: bool, as_json: bool) -> None:
    """End a workspace's container (sb_…) or a kernel (k_…)."""
    from learngraph_kernel.errors import BadInput
    from learngraph_kernel.sandbox.client import connected

    done: list[dict[str, str]] = []
    with connected() as client:
        kernels = {kernel.id: kernel for kernel in client.overview()[1]}
        for identity in identities:
            if identity in kernels:
                client.stop_kernel(kernels[identity])
                done.append({"id": identity, "state": "stopped"})
            elif not identity.startswith("sb_"):
                raise BadInput(
                    "there is no such workspace or kernel", where=identity, remedy="see `learngraph sandbox ls`"
                )
            elif delete:
                client.delete(identity)
                done.append({"id": identity, "state": "expired"})
            else:
                done.append({"id": identity, "state": client.stop(identity).state})
    if as_json:
        print_json({"stopped": done})
    else:
        for row in done:
            click.echo(f"{row['id']}  {row['state']}")
