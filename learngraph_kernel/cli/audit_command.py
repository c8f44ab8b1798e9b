"""`learngraph audit TEXT --facts FILE…`: every number of a text, and what in the tables bears it out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from learngraph_kernel.cli.common import json_option, print_json
from learngraph_kernel.errors import ExitCode

_MARKS = {"grounded": "✓", "derived": "✓", "ungrounded": "✗", "not_a_conclusion": "·"}


@click.command()
@click.argument("text", metavar="TEXT")
@click.argument("more", metavar="", nargs=-1)
@click.option(
    "--facts",
    "facts",
    metavar="FILE",
    multiple=True,
    required=True,
    help="CSV, TSV, Parquet, XLSX, JSON or JSON lines; several may follow.",
)
@json_option
def command(text: str, more: tuple[str, ...], facts: tuple[str, ...], as_json: bool) -> int:
    """Check every number of TEXT (a file, or - for standard input) against tables.

    Exit codes: 0 all numbers grounded or derived, 3 something ungrounded, 2 bad input.
    """
    from learngraph_kernel.evidence.audit import audit_text
    from learngraph_kernel.evidence.audit.files import decode, read_facts, read_text

    def notice(message: str) -> None:
        click.echo(f"learngraph: {message}", err=True)

    body = decode(sys.stdin.buffer.read(), "standard input", notice) if text == "-" else read_text(Path(text), notice)
    tables = read_facts([Path(name) for name in (*facts, *more)], notice)
    findings = audit_text(body, tables)
    if as_json:
        print_json(findings)
    else:
        _print_table(body, findings)
    ungrounded = any(finding["status"] == "ungrounded" for finding in findings)
    return ExitCode.WITHHELD if ungrounded else ExitCode.COMPLETED


def _print_table(text: str, findings: Sequence[Mapping[str, Any]]) -> None:
    from learngraph_kernel.evidence.audit import Summary

    rows = [("place", "number", "reading", "status", "where", "how")]
    starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
    for finding in findings:
        candidate = next(iter(finding["candidates"]), None)
        rows.append(
            (
                _place(starts, finding["start"]),
                _short(" ".join(finding["text"].split()), 24),
                _reading(finding),
                f"{_MARKS[finding['status']]} {finding['status'].replace('_', ' ')}",
                "" if candidate is None else _short(candidate["ref"], 44),
                "" if candidate is None else _how(candidate),
            )
        )
    if not findings:
        click.echo("no numbers: nothing to check")
        return
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    counts = Summary.of(findings)
    total = counts.grounded + counts.derived + counts.ungrounded
    aside = f" ({counts.not_a_conclusion} more are no conclusion)" if counts.not_a_conclusion else ""
    click.echo(
        f"\n{total} number{'' if total == 1 else 's'}: {counts.grounded} grounded, {counts.derived} derived,"
        f" {counts.ungrounded} ungrounded{aside}"
    )


def _place(starts: Sequence[int], offset: int) -> str:
    from bisect import bisect_right

    line = bisect_right(starts, offset)
    return f"{line}:{offset - starts[line - 1] + 1}"


def _reading(finding: Mapping[str, Any]) -> str:
    if finding["value"] is None:
        return ""
    value = f"{finding['value']:,}"
    return value if finding["unit"] is None else f"{value} {finding['unit']}"


def _how(candidate: Mapping[str, Any]) -> str:
    how = str(candidate["how"]).replace("_", " ")
    rejected = candidate.get("rejected")
    return how if rejected is None else f"{how}, but {_REASONS[rejected]}"


_REASONS = {
    "label": "the text names another cell",
    "small_integer": "too small a number to tell without a label",
    "level": "the text speaks of a change, the cell holds none",
    "loose": "too wide a range to tell without a label",
    "chance": "likely by chance",
}


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _width(text: str) -> int:
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
