"""`learngraph sandboxd`: the daemon that runs containers, in the foreground."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("sandboxd")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with a [sandbox] table.")
@click.option("--state", type=click.Path(path_type=Path, file_okay=False), help="State folder (default: in the home).")
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help="Unix socket (default: LEARNGRAPH_SANDBOXD, or in the state folder).",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning"]), default="info", show_default=True)
def command(config: Path | None, state: Path | None, socket: Path | None, log_level: str) -> None:
    """Run the sandbox daemon in the foreground (systemd and the server extension start it this way)."""
    import asyncio
    import logging
    import os
    from dataclasses import replace

    from learngraph_kernel.errors import Unavailable
    from learngraph_kernel.sandboxd.settings import Settings, load_settings
    from learngraph_kernel.store.home import Home

    try:
        from learngraph_kernel.sandboxd.server import serve
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"sandboxd needs the package {error.name!r}", remedy="pip install 'learngraph[sandbox]'"
        ) from error

    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = Settings.under((state or Home.default().root / "sandboxd").absolute())
    if config is not None:
        settings = load_settings(config, settings)
    chosen = socket or (Path(value) if (value := os.environ.get("LEARNGRAPH_SANDBOXD")) else None)
    if chosen is not None:
        settings = replace(settings, socket=chosen.absolute())
    asyncio.run(serve(settings, ready=lambda: click.echo(f"sandboxd: {settings.socket}")))
