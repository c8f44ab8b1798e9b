"""A click group that is its own table of contents: help needs no command's module, a command is imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each a `command` in a module of its own.

    Args:
        helps: name → one-line help, in the order of the help.
        module: where a command lives; `{}` stands for its name, with `_` for `-`.
    """

    def __init__(self, *args: Any, helps: Mapping[str, str], module: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._helps = helps
        self._module = module

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._helps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._helps:
            return None
        module = importlib.import_module(self._module.format(cmd_name.replace("-", "_")))
        command: click.Command = module.command
        command.short_help = self._helps[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._helps.items()))
