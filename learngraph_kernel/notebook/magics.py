"""`%load_ext learngraph_kernel`: `%%sql`, `%metric` and `%runs`, with completion of sources, tables and columns.

Magics are another spelling of `lg` calls, for a person at the keyboard: they make the same recorded calls and return
the same handles.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from learngraph_kernel.notebook import api
from learngraph_kernel.notebook.client import client
from learngraph_kernel.notebook.handles import Metric, Metrics, Shown, Snapshot

_WORD = re.compile(r"[\w.]*$")


@magics_class
class LearnGraphMagics(Magics):
    """The magics of one shell."""

    @magic_arguments()
    @argument("source", help="a source declared in learngraph.toml")
    @argument("-o", "--output", help="variable that gets the snapshot")
    @argument(
        "-p", "--parameter", action="append", default=[], help="variable whose value fills the :mark of that name"
    )
    @cell_magic
    def sql(self, line: str, cell: str) -> Snapshot | None:
        """`%%sql SOURCE [-o name] [-p variable]…`: runs the cell as a query."""
        arguments = parse_argstring(self.sql, line)
        values = {name: self._variable(name) for name in arguments.parameter}
        snapshot = api.query(arguments.source, cell, **values)
        if arguments.output:
            self._names()[arguments.output] = snapshot
        return snapshot

    @line_magic
    def metric(self, line: str) -> Metric | Metrics:
        """`%metric SET [NAME] logical=variable …`: evaluates a set of metric cards and shows one or all."""
        words = line.split()
        if not words:
            raise UsageError("%metric SET [NAME] logical=variable …")
        bindings = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        names = [word for word in words[1:] if "=" not in word]
        metrics = api.metrics(words[0], {logical: self._variable(name) for logical, name in bindings.items()})
        if not names:
            return metrics
        if names[0] not in metrics:
            raise UsageError(f"the set {words[0]} has no metric {names[0]}; it has {', '.join(metrics)}")
        return metrics[names[0]]

    @line_magic
    def runs(self, line: str) -> Shown:
        """`%runs [N]`: the newest runs."""
        count = int(line.strip() or 10)
        return Shown(client.call("lookup.runs", limit=count)["bundle"])

    def _names(self) -> dict[str, Any]:
        assert self.shell is not None
        names: dict[str, Any] = self.shell.user_ns
        return names

    def _variable(self, name: str) -> Any:
        if name not in self._names():
            raise UsageError(f"there is no variable {name}")
        return self._names()[name]


@context_matcher(identifier="learngraph.sql")
def complete_sql(context: CompletionContext) -> dict[str, Any]:
    """Completions inside a `%%sql` cell: sources on its first line, tables and columns below."""
    text = context.full_text
    if not text.startswith("%%sql"):
        return {"completions": [], "suppress": False}
    lines = text.split("\n")
    line_number = context.cursor_line
    prefix = _word_before(lines[line_number], context)
    first = lines[0].split()
    if line_number == 0:
        names = [(name, "source") for name in client.call("lookup.sources")["sources"]]
    elif len(first) > 1:
        tables: dict[str, list[str]] = client.call("lookup.tables", source=first[1])["tables"]
        names = _tables_and_columns(tables, prefix)
    else:
        names = []
    wanted = prefix.rsplit(".", 1)[-1].casefold()
    found = [SimpleCompletion(text=name, type=kind) for name, kind in names if name.casefold().startswith(wanted)]
    return {"completions": found, "suppress": bool(found), "matched_fragment": prefix.rsplit(".", 1)[-1]}


def _word_before(line: str, context: CompletionContext) -> str:
    column = getattr(context, "cursor_position", len(line))
    match = _WORD.search(line[:column] if column <= len(line) else line)
    return match.group() if match else ""


def _tables_and_columns(tables: dict[str, list[str]], prefix: str) -> list[tuple[str, str]]:
    """All tables and columns; after `table.` only the columns of that table."""
    table, dot, _ = prefix.rpartition(".")
    if dot and table in tables:
        return [(column, "column") for column in tables[table]]
    columns = sorted({column for columns in tables.values() for column in columns})
    return [(name, "table") for name in sorted(tables)] + [(column, "column") for column in columns]


def register(shell: Any) -> None:
    """Adds the magics and the completion to an IPython shell."""
    shell.register_magics(LearnGraphMagics)
    if complete_sql not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(complete_sql)
