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

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.notebook import api
from learngraph_kernel.notebook.client import client
from learngraph_kernel.notebook.handles import Metric, Metrics, Shown, Snapshot


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
        count = line.strip() or "10"
        if not count.isdecimal():
            raise UsageError("%runs [N]: N is how many runs to show")
        return Shown(client.call("lookup.runs", limit=int(count))["bundle"])

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
    first, *below = context.full_text.split("\n")
    if not _CELL.match(first):
        return NOTHING
    typed = context.text_until_cursor
    try:
        if context.cursor_line == 0:
            wanted = typed.split(" ")[-1]
            names = _sources(typed[: len(typed) - len(wanted)])
        else:
            source = _source_of(first)
            names, wanted = _names_here(source, "\n".join(below), typed) if source else ([], "")
    except LearnGraphError:
        # No such source, or a run that answers no look-ups: nothing to offer, and a trace would only be in the way.
        return NOTHING
    found = [
        SimpleCompletion(text=_quoted(name) if kind != "source" else name, type=kind)
        for name, kind in names
        if name.casefold().startswith(wanted.casefold())
    ]
    return {"completions": found, "suppress": bool(found), "matched_fragment": wanted}


NOTHING: dict[str, Any] = {"completions": [], "suppress": False}
_CELL = re.compile(r"%%sql(\s|$)")
_DOTTED = re.compile(r"""((?:(?:\w+|"[^"]*")\.)*)(\w*)$""")
_NAMED = re.compile(
    r"""\b(?:from|join)\s+((?:\w+|"[^"]*")(?:\.(?:\w+|"[^"]*"))*)(?:\s+(?:as\s+)?(\w+))?""", re.IGNORECASE
)


def _source_of(line: str) -> str | None:
    """The source on a `%%sql` line: its first word that is neither an option nor an option's value."""
    words = iter(line.split()[1:])
    for word in words:
        if word in _OPTIONS:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


_OPTIONS = {"-o", "--output", "-p", "--parameter"}


def _sources(before: str) -> list[tuple[str, str]]:
    """Sources, where one may stand: as long as none is given, and not as the value of an option."""
    words = before.split()
    if not words or words[-1] in _OPTIONS or _source_of(before) is not None:
        return []
    return [(name, "source") for name in client.call("lookup.sources")["sources"]]


def _names_here(source: str, statement: str, typed: str) -> tuple[list[tuple[str, str]], str]:
    """All tables and columns and what is typed of a name; after `table.` or `alias.` the columns of that table."""
    tables: dict[str, list[str]] = client.call("lookup.tables", source=source)["tables"]
    match = _DOTTED.search(typed)
    path, wanted = ("", "") if match is None else match.groups()
    if path:
        return [(column, "column") for column in _columns(tables, path.rstrip("."), statement)], wanted
    columns = sorted({column for columns in tables.values() for column in columns})
    return [(name, "table") for name in sorted(tables)] + [(column, "column") for column in columns], wanted


def _columns(tables: dict[str, list[str]], path: str, statement: str) -> list[str]:
    aliases = {alias.casefold(): table for table, alias in _NAMED.findall(statement) if alias}
    full = aliases.get(path.casefold(), path).replace('"', "").casefold()
    for name, columns in tables.items():
        if name.casefold() in (full, full.rpartition(".")[2]):
            return columns
    return []


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def register(shell: Any) -> None:
    """Adds the magics and the completion to an IPython shell."""
    shell.register_magics(LearnGraphMagics)
    if complete_sql not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.append(complete_sql)
