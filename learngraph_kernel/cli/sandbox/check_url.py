"""`learngraph sandbox check-url`: the URL policy as a filter, for people and for tests. Sends nothing, asks no DNS.

Every line of standard input is one URL, also an empty one; only the line feed is taken off, so that a carriage return
counts as what it is. Answers are ASCII JSON: hostile text cannot reach the terminal as anything but escapes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command("check-url")
@click.option(
    "--resolver",
    "hosts",
    metavar="HOSTS.json",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help='Answers for names, {"name": ["address", …]}; without it no name can be allowed.',
)
@click.option("--json", "as_json", is_flag=True, help='Print {"url", "allowed", "reason"}, one object a line.')
def command(hosts: Path | None, as_json: bool) -> None:
    """Read URLs from standard input, one a line; say for each whether it may be fetched, and why.

    The exit code is 0 also when URLs are refused: read `allowed`.
    """
    from learngraph_kernel.sandbox.resolvers import read_hosts
    from learngraph_kernel.sandbox.urls import NoResolver, Resolver, check_url

    resolver: Resolver = NoResolver() if hosts is None else read_hosts(hosts)
    for line in sys.stdin.buffer:
        decision = check_url(line.removesuffix(b"\n").decode("utf-8", "replace"), resolver)
        if as_json:
            answer = {"url": decision.url, "allowed": decision.allowed, "reason": decision.reason}
            sys.stdout.write(json.dumps(answer) + "\n")
        else:
            mark = "allowed" if decision.allowed else "refused"
            sys.stdout.write(f"{mark}  {ascii(decision.url)[1:-1]}  {ascii(decision.reason)[1:-1]}\n")
        sys.stdout.flush()
