"""`learngraph sandbox fetch`: one page, fetched inside the box, from hosts that are named on the command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("fetch")
@click.argument("url")
@click.option(
    "--allow", "hosts", metavar="HOST", multiple=True, required=True, help="An exact host name that may be reached."
)
@click.option("--session", default="terminal", show_default=True, help="The chat session whose box fetches.")
@click.option(
    "--ttl", type=click.IntRange(min=60, max=86_400), default=600, show_default=True, help="Seconds it holds."
)
@click.option("--to", "target", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to this file.")
@json_option
def command(url: str, hosts: tuple[str, ...], session: str, ttl: int, target: Path | None, as_json: bool) -> None:
    """Fetch a page in the closed box, through a door to the hosts you name and to nothing else.

    Naming a host with --allow is your approval: it is recorded, for this session and this time.
    """
    from learngraph_kernel.canonical import sha256_hex
    from learngraph_kernel.sandbox.on_demand import running_client

    client = running_client()
    try:
        box = client.create(session)
        policy = client.allow_egress(box.id, hosts, ttl=ttl)
        page = client.fetch(box.id, url, policy["policy"])
    finally:
        client.close()
    if target is not None:
        target.write_bytes(page.data)
    if as_json:
        print_json(
            {
                "status": page.status,
                "url": page.url,
                "redirects": list(page.redirects),
                "type": page.type,
                "bytes": len(page.data),
                "sha256": sha256_hex(page.data),
                "policy": policy["policy"],
            }
        )
    elif target is None:
        sys.stdout.buffer.write(page.data)
    else:
        click.echo(f"{page.status}  {len(page.data)} bytes of {page.type} from {page.url}")
