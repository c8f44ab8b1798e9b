"""`learngraph sandbox acquire-git`: the files of one commit, once a person has allowed exactly that."""

from __future__ import annotations

from pathlib import Path

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.cli.sandbox.acquiring import acquiring, asking_options, pin, show_receipt, show_request


@click.command("acquire-git")
@click.argument("url", metavar="REPOSITORY")
@click.option("--ref", required=True, metavar="COMMIT", help="All 40 hex digits of the commit.")
@click.option("--path", "paths", multiple=True, metavar="PATH", help="Keep this file or folder only; repeat.")
@asking_options
@workspace_option
@json_option
def command(
    url: str,
    ref: str,
    paths: tuple[str, ...],
    digests: tuple[str, ...],
    dry_run: bool,
    name: str | None,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Fetch the files of one commit for the closed box; every file is verified before any is stored.

    `lg.acquired(NAME, "path/in/repository.csv")` gives a file of what was pinned with --as to notebooks, read-only.
    """
    from learngraph_kernel.sandbox.acquire import git_request
    from learngraph_kernel.sandbox.acquisition import GitLimits

    limits = GitLimits(paths=tuple(sorted({path.rstrip("/") for path in paths})) or None)
    request = git_request(url, ref, limits=limits)
    if dry_run:
        if as_json:
            print_json({"requests": [{"digest": request.digest, "request": request.as_json()}]})
        else:
            show_request(request)
        return 0
    with acquiring(digests) as person:
        receipt = person.git(request, limits)
    pin(receipt, name, workspace)
    if as_json:
        print_json({"receipts": [receipt.as_json()], "failed": []})
    else:
        show_receipt(receipt)
    return 0
