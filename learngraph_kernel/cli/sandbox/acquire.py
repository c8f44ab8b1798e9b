"""`learngraph sandbox acquire`: the host fetches a file for the box, once a person has allowed exactly that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from learngraph_kernel.cli.common import json_option, print_json, workspace_option
from learngraph_kernel.cli.sandbox.acquiring import acquiring, asking_options, pin, show_receipt, show_request
from learngraph_kernel.errors import BadInput, LearnGraphError

if TYPE_CHECKING:
    from learngraph_kernel.sandbox.asking import Acquiring
    from learngraph_kernel.sandbox.receipts import Receipt

MIB = 1 << 20


@click.command("acquire")
@click.argument("urls", metavar="URL…", nargs=-1, required=True)
@click.option("--image", is_flag=True, help="PNG, JPEG or WebP: decoded and written anew; up to 8 at once.")
@click.option("--max-mib", type=click.IntRange(min=1), default=64, show_default=True, help="MiB received at most.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Accept this media type only (text/csv); repeat.")
@asking_options
@workspace_option
@json_option
def command(
    urls: tuple[str, ...],
    image: bool,
    max_mib: int,
    types: tuple[str, ...],
    digests: tuple[str, ...],
    dry_run: bool,
    name: str | None,
    workspace: Path | None,
    as_json: bool,
) -> int:
    """Fetch files from URLs for the closed box and store them by their hash.

    Each request is shown with its digest and has to be allowed; a redirect to another host is a request of its own.
    `lg.acquired(NAME)` gives what was pinned with --as to notebooks, read-only.
    """
    from learngraph_kernel.sandbox.acquire import file_request, image_request
    from learngraph_kernel.sandbox.acquisition import ImageLimits, Limits

    if name is not None and len(urls) > 1:
        raise BadInput("one name for several URLs", remedy="give --as with one URL at a time")
    limits = Limits(wire_bytes=max_mib * MIB, types=tuple(sorted(types)) or None)
    picture = ImageLimits(wire_bytes=min(max_mib, 16) * MIB)
    requests = [image_request(url, limits=picture) if image else file_request(url, limits=limits) for url in urls]
    if dry_run:
        return _shown(requests, as_json)
    with acquiring(digests) as person:
        answers: list[Receipt | LearnGraphError]
        answers = person.images(requests, picture) if image else [_one(person, it, limits) for it in requests]
    for answer in answers:
        if not isinstance(answer, LearnGraphError):
            pin(answer, name, workspace)
    return _told(urls, answers, as_json)


def _one(person: Acquiring, request: Any, limits: Any) -> Receipt | LearnGraphError:
    try:
        return person.file(request, limits)
    except LearnGraphError as error:
        return error


def _shown(requests: list[Any], as_json: bool) -> int:
    if as_json:
        print_json({"requests": [{"digest": request.digest, "request": request.as_json()} for request in requests]})
    else:
        for request in requests:
            show_request(request)
    return 0


def _told(urls: tuple[str, ...], answers: list[Receipt | LearnGraphError], as_json: bool) -> int:
    """Prints every answer; the exit code is 0 when all came, else that of the first that did not."""
    failed = [(url, it) for url, it in zip(urls, answers, strict=True) if isinstance(it, LearnGraphError)]
    came = [answer for answer in answers if not isinstance(answer, LearnGraphError)]
    if as_json and len(urls) == 1 and failed:
        raise failed[0][1]
    if as_json:
        body = [{"url": url, "error": error.as_json()} for url, error in failed]
        print_json({"receipts": [receipt.as_json() for receipt in came], "failed": body})
    else:
        for receipt in came:
            show_receipt(receipt)
        for _, error in failed:
            click.echo(f"learngraph: {error}", err=True)
            if "digest" in error.details:
                click.echo(f"digest         {error.details['digest']}", err=True)
    return int(failed[0][1].exit_code) if failed else 0
