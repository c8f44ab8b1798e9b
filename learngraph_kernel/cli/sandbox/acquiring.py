"""What `sandbox acquire` and `sandbox acquire-git` share: showing a request, asking, and saying what came."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from learngraph_kernel.sandbox.acquire import Gate
    from learngraph_kernel.sandbox.acquisition import Request
    from learngraph_kernel.sandbox.asking import Acquiring
    from learngraph_kernel.sandbox.receipts import Receipt
    from learngraph_kernel.store.database import Store

F = TypeVar("F", bound=Callable[..., Any])


def asking_options(function: F) -> F:
    """`--approve DIGEST`, `--dry-run`, `--as NAME`."""
    approve = click.option(
        "--approve",
        "digests",
        metavar="SHA256",
        multiple=True,
        help="Allow the request of this digest (as --dry-run shows it); for scripts. Without it a person is asked.",
    )
    dry = click.option("--dry-run", is_flag=True, help="Show what would have to be allowed; send nothing.")
    name = click.option("--as", "name", metavar="NAME", default=None, help="Pin it in learngraph.toml under this name.")
    return approve(dry(name(function)))


def gate_of(store: Store, actor: str) -> Gate:
    """The real network."""
    from learngraph_kernel.sandbox.acquire import Gate
    from learngraph_kernel.sandbox.approvals import StoredApprovals

    return Gate(store, StoredApprovals(store, actor), actor)


@contextmanager
def acquiring(digests: tuple[str, ...]) -> Iterator[Acquiring]:
    """Downloads into this user's store; who is asked is whoever sits at the terminal, or the digests on the command."""
    from learngraph_kernel.actor import current_actor
    from learngraph_kernel.sandbox.asking import Acquiring, by_digests
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    actor = current_actor()
    with Store.open(Home.default()) as store:
        ask = by_digests(digests) if digests or not sys.stdin.isatty() else _at_the_terminal
        yield Acquiring(replace(gate_of(store, actor), progress=Progress()), actor, ask)


class Progress:
    """Says on standard error how much of a URL has come: with the first bytes, and then once a second at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._came: dict[str, int] = {}
        self._said: dict[str, float] = {}

    def __call__(self, url: str, count: int) -> None:
        with self._lock:
            self._came[url] = self._came.get(url, 0) + count
            now = time.monotonic()
            if now - self._said.get(url, float("-inf")) >= 1:
                self._said[url] = now
                click.echo(f"receiving {url}: {self._came[url]:,} bytes so far", err=True)


def _at_the_terminal(request: Request, redirected_from: str | None) -> bool:
    if redirected_from is not None:
        click.echo(f"{redirected_from} redirects to another host:", err=True)
    show_request(request, err=True)
    return click.confirm("Fetch exactly this, once?", default=False, err=True)


def show_request(request: Request, *, err: bool = False) -> None:
    """A request for a person, with the digest that stands for it."""
    body = request.as_json()
    rows = [("kind", body["kind"]), ("url", body["url"])]
    rows += [("commit", body["ref"])] if body["ref"] else []
    rows += [(key, value) for key, value in body["limits"].items() if value is not None]
    for key, value in [*rows, ("digest", request.digest)]:
        click.echo(f"{key:<14} {value}", err=err)


def show_receipt(receipt: Receipt) -> None:
    """What came, for a person."""
    rows = [
        ("url", receipt.final_url),
        ("type", receipt.detected_type),
        ("bytes", receipt.stored_bytes),
        ("sha256", receipt.sha256),
        ("receipt", receipt.id),
    ]
    for key, value in rows:
        click.echo(f"{key:<14} {value}")


def pin(receipt: Receipt, name: str | None, workspace: Path | None) -> None:
    """Writes the entry that `lg.acquired(name)` reads."""
    if name is None:
        return
    from learngraph_kernel.data.acquired import Acquired
    from learngraph_kernel.data.workspace import find_workspace, pin_acquired

    root = find_workspace(workspace).root
    entry = Acquired(name, receipt.kind, receipt.requested_url, receipt.sha256, receipt.commit, receipt.id)
    pin_acquired(root, entry)
    click.echo(f'lg.acquired("{name}") gives it to notebooks of {root}', err=True)
