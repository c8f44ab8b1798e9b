"""`learngraph secret set|list|remove`: keys of models, encrypted in the home; never on a command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from learngraph_kernel.cli.common import json_option, print_json

if TYPE_CHECKING:
    from learngraph_kernel.accounts.vault import Vault


@click.group("secret")
def command() -> None:
    """Keep keys of models encrypted; learngraph.toml names them as `api_key = "secret:NAME"`."""


@contextmanager
def _vault() -> Iterator[Vault]:
    from learngraph_kernel.accounts.vault import Vault
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    home = Home.default()
    with Store.open(home) as store:
        yield Vault(store, home)


@command.command("set")
@click.argument("name")
def set_secret(name: str) -> None:
    """Keep the secret NAME: typed at a prompt, or the first line of standard input."""
    from learngraph_kernel.actor import current_actor

    if sys.stdin.isatty():
        value = click.prompt(f"value of {name}", hide_input=True, confirmation_prompt=True)
    else:
        value = sys.stdin.readline().rstrip("\r\n")
    with _vault() as vault:
        vault.put(name, value, actor=current_actor())
    click.echo(f'kept {name}; use it as api_key = "secret:{name}"')


@command.command("list")
@json_option
def list_secrets(as_json: bool) -> None:
    """The names that are kept, and since when; no value is ever shown."""
    with _vault() as vault:
        found = vault.listed()
    if as_json:
        print_json({"secrets": list(found)})
    elif not found:
        click.echo("no secrets; learngraph secret set NAME")
    for row in [] if as_json else found:
        click.echo(f"{row['name']}\t{row['changed_at'][:19]}Z\t{row['changed_by']}")


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget the secret NAME."""
    from learngraph_kernel.actor import current_actor

    with _vault() as vault:
        vault.remove(name, actor=current_actor())
    click.echo(f"removed {name}")
