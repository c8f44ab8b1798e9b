"""Gathers findings of one text: a rule says node and words, the place is worked out here, once each."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from learngraph_kernel.data.catalogue.values import Catalogue
from learngraph_kernel.data.lint.findings import Finding, Severity
from learngraph_kernel.data.lint.places import Places


@dataclass(slots=True)
class Report:
    """What the rules write to.

    Attributes:
        dialect: of the text, as sqlglot calls it.
        statement: the statement under the lint, for rewrites.
    """

    places: Places
    catalogue: Catalogue
    dialect: str
    statement: exp.Expr
    findings: list[Finding] = field(default_factory=list)
    _seen: set[tuple[str, int, int]] = field(default_factory=set)

    def add(
        self, rule: str, severity: Severity, node: exp.Expr, message: str, *, example: str | None = None,
        rewrite: str | None = None,
    ) -> None:  # fmt: skip
        """Adds a finding at a node; a rule says the same place once."""
        start, end = self.places.span(node)
        if (rule, start, end) in self._seen:
            return
        self._seen.add((rule, start, end))
        line = self.places.line(start)
        self.findings.append(Finding(rule, severity, line, start, end, message, example, rewrite))

    def with_replaced(self, node: exp.Expr, new: exp.Expr) -> str:
        """The whole statement with one node replaced, as SQL."""
        path: list[tuple[str, int | None]] = []
        part = node
        while part is not self.statement and part.parent is not None:
            path.append((str(part.arg_key), part.index))
            part = part.parent
        if part is not self.statement:
            raise ValueError("the node is not of this statement")
        copy = self.statement.copy()
        target = copy
        for key, index in reversed(path):
            value = target.args[key]
            target = value if index is None else value[index]
        if target is copy:
            return new.sql(dialect=self.dialect, pretty=True)
        target.replace(new)
        return copy.sql(dialect=self.dialect, pretty=True, copy=False)
