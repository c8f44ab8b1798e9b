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
@click.option(
    "--strict/--no-strict",
    default=None,
    help="Start nothing on an engine with a known way out.",
)
@click.option(
    "--idle-end",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End when nothing ran and nobody called for so long (0: stay), unless the settings say otherwise.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning"]), default="info", show_default=True)
def command(
    config: Path | None,
    state: Path | None,
    socket: Path | None,
    strict: bool | None,
    idle_end: float | None,
    log_level: str,
) -> None:
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
    if idle_end is not None:
        settings = replace(settings, idle_end=idle_end)
    if config is not None:
        settings = load_settings(config, settings)
    chosen = socket or (Path(value) if (value := os.environ.get("LEARNGRAPH_SANDBOXD")) else None)
    if chosen is not None:
        settings = replace(settings, socket=chosen.absolute())
    if strict is not None:
        settings = replace(settings, strict=strict)
    asyncio.run(serve(settings, ready=lambda: click.echo(f"sandboxd: {settings.socket}")))
