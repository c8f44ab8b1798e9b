"""`learngraph sandbox logs ID`: a workspace's commands, or one command's output, or a kernel's own output."""

from __future__ import annotations

import sys
from typing import Any

import click

from learngraph_kernel.cli.common import json_option, print_json


@click.command("logs")
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """The commands of a workspace (sb_…), the output of one (x_…), or what a kernel (k_…) printed outside of cells."""
    from learngraph_kernel.errors import BadInput
    from learngraph_kernel.sandbox.client import connected

    with connected() as client:
        if identity.startswith("sb_"):
            _commands(client.commands(identity), as_json)
        elif identity.startswith("x_"):
            _output(client, identity, as_json)
        elif identity.startswith("k_"):
            found = [kernel for kernel in client.overview()[1] if kernel.id == identity]
            if not found:
                raise BadInput("there is no such running kernel of yours", where=identity)
            log = client.kernel_logs(found[0])
            print_json({"kernel": identity, "log": log}) if as_json else click.echo(log, nl=False)
        else:
            raise BadInput(
                "this is no id of a workspace, command or kernel", where=identity, remedy="see `learngraph sandbox ls`"
            )


def _commands(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"execs": rows})
        return
    for row in rows:
        code = "" if row["exit_code"] is None else f" {row['exit_code']}"
        reason = f"  ({row['reason']})" if row["reason"] else ""
        click.echo(f"{row['exec']}  {row['state']}{code}  {' '.join(row['argv'])}{reason}")


def _output(client: Any, identity: str, as_json: bool) -> None:
    out, err = bytearray(), bytearray()
    while True:
        now = client.poll(identity, stdout=len(out), stderr=len(err))
        out += now.stdout
        err += now.stderr
        if not now.stdout and not now.stderr:
            break
    if as_json:
        texts = {"stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}
        print_json(
            {"exec": identity, "state": now.state, "exit_code": now.exit_code, "truncated": now.truncated} | texts
        )
        return
    sys.stdout.buffer.write(bytes(out))
    sys.stdout.flush()
    sys.stderr.buffer.write(bytes(err))
    if now.truncated:
        click.echo("[output was cut here: it was longer than is kept]", err=True)
