"""`learngraph verify`: does what is here equal what was sealed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.errors import ExitCode

if TYPE_CHECKING:
    from learngraph_kernel.runs.verify import Finding, Verification

_TRUST = {
    "pinned": "the key you named",
    "own": "a key in this instance's keys folder",
    "none": "not pinned: anyone can sign, so compare the fingerprint, or pass --key",
}


@click.command()
@click.argument("target")
@click.option("--key", default=None, metavar="FILE|FINGERPRINT", help="The key that must have signed.")
@json_option
def command(target: str, key: str | None, as_json: bool) -> int:
    """Check a run, an exported folder or a bundle, offline.

    TARGET is a run's id, a folder written by `export --to`, or a file written by `export --bundle`. Exit code 0: it is
    what was sealed; 5: it is not, and every difference is named; 2: TARGET is nothing that could be verified.
    """
    from learngraph_kernel.runs.targets import pinned_key, verify
    from learngraph_kernel.store.home import Home

    verification = verify(target, home=Home.default(), pin=None if key is None else pinned_key(key))
    if as_json:
        print_json(verification.as_json())
    else:
        _print(verification)
    return ExitCode.COMPLETED if verification.ok else ExitCode.MISMATCH


def _print(verification: Verification) -> None:
    run = verification.run_id or "unknown run"
    if verification.ok:
        click.echo(f"verified: {run} is what was sealed ({verification.files} files, {verification.events} events)")
        click.echo(f"content hash: {verification.content_hash}")
    else:
        count = len(verification.findings)
        click.echo(f"MISMATCH: {run} is not what was sealed; {count} finding{'' if count == 1 else 's'}")
        for finding in verification.findings:
            click.echo(f"  {_line(finding)}")
    if verification.signer:
        click.echo(f"signed by {verification.signer} ({_TRUST[verification.trust]})")
    if verification.later_events > 1:
        click.echo(f"{verification.later_events} later events, outside the seal")


def _line(finding: Finding) -> str:
    values = (
        "" if finding.expected is None and finding.got is None else f" (sealed {finding.expected}, here {finding.got})"
    )
    return f"[{finding.code}] {finding.where}: {finding.what}{values}"
