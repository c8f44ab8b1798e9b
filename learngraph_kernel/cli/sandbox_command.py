"""`learngraph sandbox …`: the closed box. Its subcommands live in `cli/sandbox/`, imported when they run."""

from __future__ import annotations

import importlib

import click

SUBCOMMANDS: dict[str, str] = {
    "ls": "Your workspaces and running kernels.",
    "logs": "The commands of a workspace, and what they printed.",
    "stop": "End a workspace's container or a kernel; files stay.",
    "gc": "Apply time-outs and remove leftovers now.",
    "check-url": "Say which URLs the box may be handed, without a packet.",
}


class _Subcommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module = importlib.import_module(f"learngraph_kernel.cli.sandbox.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.short_help = SUBCOMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.command("sandbox", cls=_Subcommands)
def command() -> None:
    """The closed box: what may enter it, and what runs in it."""
