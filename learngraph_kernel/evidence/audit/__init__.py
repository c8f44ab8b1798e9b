"""Checking the numbers of any text against any tables; the function behind `learngraph audit`.

The way of a number: `numerals` reads it → `sentences` finds which labels the text attaches to it → `claims` says what
it would have to match → `matching` looks for a cell that holds it → `derive` tries what the sentence licenses →
`chance` decides whether a match can mean anything. `tables`, `layout`, `cells`, `units`, `labels` and `words` read the
tables. Everything here is pure; `files` alone opens files, and only those it is handed. Start reading at `auditor`.
"""

from __future__ import annotations

from typing import Any

from learngraph_kernel.evidence.audit.auditor import Summary, audit_numerals

__all__ = ["Summary", "audit_numerals", "audit_text"]


def audit_text(text: str, tables: dict[str, list[list[str]]]) -> list[dict[str, Any]]:
    """Check every number of a text against tables.

    Takes the text and the tables: rows of cell texts by table name, header lines included. Returns one dict per number,
    in the order of the text: `text`; `start` and `end` in code points, end exclusive; `value` (a JSON number, or None
    where nothing single can be said) with scales applied; `unit` as the numeral reader gives it; `status`:

    - `grounded`: a cell holds it, and the text speaks of no other cell;
    - `derived`: it follows from cells by an operation the sentence names, and hardly by chance;
    - `ungrounded`: neither;
    - `not_a_conclusion`: a date, ordinal, list number, identifier, idiom, …

    and `candidates`: `ref` (`table!R3C2`, rows and columns from 1 as given; several, comma separated, for a
    derivation), `value` in base units, `how` (`identity`, `difference`, `ratio`, `percent_change`, `share`, `sum`,
    `mean`, `count`). A derivation adds `expected_chance_matches`. A candidate that does not count adds `rejected`:
    `label` (the text speaks of another cell), `small_integer` (in any table; needs a label or unit), `level` (a change
    was said, the cell holds none), `loose` (a wide hedge or range that nothing pins down) or `chance`.
    """
    from learngraph_kernel.evidence.numerals import read_numerals

    return audit_numerals(text, read_numerals(text), tables)
