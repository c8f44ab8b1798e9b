"""`learngraph sandbox …`: the closed box. Its subcommands live in `cli/sandbox/`, imported when they run."""

from __future__ import annotations

import click

from learngraph_kernel.cli.lazy import LazyGroup

SUBCOMMANDS: dict[str, str] = {
    "build": "Make the sandbox image, or take it from a registry.",
    "ls": "Your workspaces and running kernels.",
    "logs": "The commands of a workspace, and what they printed.",
    "stop": "End a workspace's container or a kernel; files stay.",
    "shutdown": "End the sandboxd that was started for you; files stay.",
    "gc": "Apply time-outs and remove leftovers now.",
    "acquire": "Fetch files for the box, once a person has allowed exactly that.",
    "acquire-git": "Fetch the files of one commit for the box.",
    "fetch": "Fetch a page inside the box, from hosts you name.",
    "acquisitions": "What was taken in from outside.",
    "check-url": "Say which URLs the box may be handed, without a packet.",
}


@click.command("sandbox", cls=LazyGroup, helps=SUBCOMMANDS, module="learngraph_kernel.cli.sandbox.{}")
def command() -> None:
    """The closed box: what may enter it, and what runs in it."""
