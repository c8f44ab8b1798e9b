"""`learngraph models list|probe`: the declared models, and what their endpoints understand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option

if TYPE_CHECKING:
    from learngraph_kernel.models.capabilities import Capabilities
    from learngraph_kernel.models.port import ModelAdapter


@click.group("models")
def command() -> None:
    """The models of a workspace."""


@command.command("list")
@workspace_option
@json_option
def list_models(workspace: Path | None, as_json: bool) -> None:
    """The declared models, their addresses and their capability snapshots."""
    from learngraph_kernel.accounts.hosts import host_resolver
    from learngraph_kernel.accounts.snapshots import Snapshots
    from learngraph_kernel.data.workspace import find_workspace
    from learngraph_kernel.models.config import parse_models
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    space = find_workspace(workspace)
    declared = parse_models(space.models, root=space.root)
    with Store.open(Home.default()) as store:
        found = {name: Snapshots(store).of(config) for name, config in declared.items()}
    rows = [
        {
            "name": name,
            "adapter": config.adapter,
            "model": config.model,
            "base_url": config.base_url,
            "key": f"secret:{config.secret}" if config.secret else config.api_key_env,
            "capabilities": "declared" if config.capabilities is not None else None,
            "snapshot": None if (snapshot := found[name]) is None else snapshot.as_json(),
        }
        for name, config in declared.items()
    ]
    if as_json:
        print_json({"models": rows, "addresses": host_resolver().status()})
        return
    for row in rows:
        probed: Any = row["snapshot"]
        known = f"probed {probed['probed_at'][:10]}" if probed else row["capabilities"] or "not probed"
        click.echo(f"{row['name']}\t{row['adapter']}\t{row['model'] or ''}\t{row['base_url'] or ''}\t{known}")
    if not rows:
        click.echo("no models are declared; add [models.default] to learngraph.toml")
    click.echo(f"loopback addresses: {host_resolver().status()['guidance']}")


@command.command("probe")
@click.argument("name", default="default")
@workspace_option
@json_option
def probe(name: str, workspace: Path | None, as_json: bool) -> None:
    """Ask the endpoint of the model NAME what it understands (some ten small requests), and keep the answer."""
    import asyncio

    from learngraph_kernel.accounts.opening import open_declared
    from learngraph_kernel.accounts.probing import probe as ask_endpoint
    from learngraph_kernel.accounts.snapshots import Snapshots
    from learngraph_kernel.actor import current_actor
    from learngraph_kernel.data.workspace import find_workspace
    from learngraph_kernel.models.config import choose_model, parse_models
    from learngraph_kernel.models.errors import ModelMisconfigured
    from learngraph_kernel.models.litellm_adapter import known_windows
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    space, home = find_workspace(workspace), Home.default()
    config = choose_model(parse_models(space.models, root=space.root), name)
    if config.adapter != "litellm":
        reason = f"a model of the adapter {config.adapter} has no endpoint"
        raise ModelMisconfigured(reason, where=f"[models.{name}]", remedy='probe one with adapter = "litellm"')
    with Store.open(home) as store:

        def opened(capabilities: Capabilities) -> ModelAdapter:
            return open_declared(replace(config, capabilities=capabilities), store, home)

        async def windows() -> tuple[int | None, int | None]:
            return await asyncio.to_thread(known_windows, config.model or "")

        found = asyncio.run(ask_endpoint(opened, known_windows=windows))
        kept = Snapshots(store).keep(config, found.capabilities, found.seen, actor=current_actor())
    if as_json:
        print_json({"name": name, **kept.as_json()})
        return
    for question, answer in kept.seen.items():
        click.echo(f"{question}\t{answer}")
    body: dict[str, Any] = kept.capabilities.as_json()
    click.echo(", ".join(f"{key} = {value}" for key, value in body.items() if key != "format"))
