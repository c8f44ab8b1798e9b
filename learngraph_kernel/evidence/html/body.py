"""A document's body for page and notebook alike: citations that open, tables whose cells open, violations marked."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.canonical import decode_value
from learngraph_kernel.evidence.display import Style, display
from learngraph_kernel.evidence.document import ReportDocument, ResolvedCitation
from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.markdown import marked_violations, render_body
from learngraph_kernel.evidence.html.panel import Setting, numeric_columns, panel
from learngraph_kernel.evidence.openings import CONTEXT_ROWS, Opening
from learngraph_kernel.evidence.violations import Reason

MOST_FULL_CELLS = (
    400  # table cells of one report whose panel shows the rows around them; the rest shows value and query
)
OPENING_QUOTES = "“\"'„‘「『«"


def report_body(document: ReportDocument, setting: Setting) -> str:
    """The source as HTML with everything in place."""
    return _Body(document, setting).html()


def tier_banner(document: ReportDocument, setting: Setting) -> str:
    """What the report is worth, in words: the tier, what is missing, why it is withheld."""
    words, dress = setting.words, setting.dress
    tier = tier_word(document)
    name = f"<span{dress('tier')}>{escape.text(words(f'tier.{tier}'))}</span>"
    parts = [f"{name}{escape.text(words(f'tier.{tier}.text'))}"]
    reasons = [reason for reason in document.reasons if f"reason.{reason.code}" in words]
    if reasons:
        parts.append("<ul>" + "".join(_reason(reason, document, setting) for reason in reasons[:50]) + "</ul>")
    marks = len(marked_violations(document))
    if marks:
        text = words("tier.findings.one") if marks == 1 else words("tier.findings", n=marks)
        parts.append(f"<div{dress('caption')}>{escape.text(text)}</div>")
    return f'<div{dress(f"banner-{tier}")} role="note">{"".join(parts)}</div>'


def tier_word(document: ReportDocument) -> str:
    """`formal`, `degraded`, `withheld`; without a tier `exploratory`, or `pending` while a formal run goes on."""
    return document.tier or ("pending" if document.formal else "exploratory")


def number(
    shown: str, ref: str, inner: str, setting: Setting, *, group: str | None = None, kind: str = "number"
) -> str:
    """Text that opens: looks like the text around it, is a native disclosure, works without script."""
    dress = setting.dress
    label = escape.attribute(setting.words("open", value=shown), limit=200)
    name = f' name="{escape.attribute(group)}"' if group else ""
    return (
        f'<details{dress(kind)}{name}><summary{dress("summary")} title="{escape.attribute(ref)}" '
        f'aria-label="{label}">{escape.text(shown, limit=4_000)}</summary>{inner}</details>'
    )


class _Body:
    """One rendering of a document; counts the table cells drawn so far."""

    def __init__(self, document: ReportDocument, setting: Setting) -> None:
        self.document = document
        self.setting = setting
        self.cells_drawn = 0
        self.tables_drawn = 0

    def html(self) -> str:
        badge = self.setting.words("no_evidence")
        return render_body(self.document, self._citation, self.setting.dress, badge)

    def _citation(self, index: int) -> str:
        citation = self.document.citations[index]
        if citation.kind == "see":
            return ""
        if citation.opening is None:
            return f"<span>{escape.text(citation.display)}</span>"  # its violation marks and explains it
        if citation.kind == "table":
            return self._table(citation.opening)
        shown = self._quoted(citation) if citation.kind == "quote" else citation.display
        kind = {"quote": "words", "name": "words"}.get(citation.kind, "number")
        inner = panel(citation.opening, citation.display, self.setting)
        return number(shown, str(citation.opening["ref"]), inner, self.setting, kind=kind)

    def _quoted(self, citation: ResolvedCitation) -> str:
        """Quotation marks, unless the author has put some."""
        before = self.document.source[max(0, citation.start - 1) : citation.start]
        return citation.display if before and before in OPENING_QUOTES else f"“{citation.display}”"

    def _table(self, opening: Opening) -> str:
        dress, words = self.setting.dress, self.setting.words
        self.tables_drawn += 1
        numeric = numeric_columns(opening["rows"])
        heads = "".join(
            f"<th{dress('th-number' if index in numeric else 'th')}>{escape.text(name, limit=80)}</th>"
            for index, name in enumerate(opening["columns"])
        )
        body = "".join(self._table_row(opening, offset, numeric) for offset in range(len(opening["rows"])))
        first, count = opening["first_row"], opening["row_count"]
        last = first + len(opening["rows"]) - 1
        span = (
            words("rows", first=f"r{first}", last=f"r{last}", count=f"{count:,}")
            if last >= first
            else words("rows.none")
        )
        return (
            f"<div{dress('cited-table')}><div{dress('scroll')}><table{dress('table')}><thead><tr>{heads}</tr></thead>"
            f"<tbody>{body}</tbody></table></div>"
            f"<div{dress('caption')}>{escape.text(opening['ref'])} · {escape.text(span)}</div></div>"
        )

    def _table_row(self, opening: Opening, offset: int, numeric: set[int]) -> str:
        dress = self.setting.dress
        row = opening["first_row"] + offset
        cells = []
        for index, name in enumerate(opening["columns"]):
            shown = display(decode_value(opening["rows"][offset][index]), Style(self.setting.words.language))
            ref = f"{opening['ref']}.r{row}.{name}"
            self.cells_drawn += 1
            inner = panel(self._cell_opening(opening, offset, index, ref), shown, self.setting)
            role = "td-number" if index in numeric else "td"
            opened = number(shown, ref, inner, self.setting, group=f"table-{self.tables_drawn}", kind="cell")
            cells.append(f'<td{dress(role)} data-ref="{escape.attribute(ref)}">{opened}</td>')
        return f"<tr>{''.join(cells)}</tr>"

    def _cell_opening(self, opening: Opening, offset: int, index: int, ref: str) -> Opening:
        rows: list[Any] = opening["rows"]
        first = max(0, offset - CONTEXT_ROWS)
        window = {
            "ref": ref,
            "snapshot": opening["ref"],
            "columns": opening["columns"],
            "first_row": opening["first_row"] + first,
            "rows": rows[first : offset + CONTEXT_ROWS + 1],
            "row": opening["first_row"] + offset,
            "column": opening["columns"][index],
            "row_count": opening["row_count"],
            "column_count": len(opening["columns"]),
        }
        return {
            "ref": ref,
            "kind": "cell",
            "title": opening["columns"][index],
            "type": opening["types"][index],
            "value": rows[offset][index],
            "cells": [window] if self.cells_drawn <= MOST_FULL_CELLS else [],
            "queries": opening["queries"],
        }


def _reason(reason: Reason, document: ReportDocument, setting: Setting) -> str:
    """In the reader's language what is missing, then the recorded sentence."""
    opened = [item.opening for item in document.citations if item.opening is not None and item.kind == "metric"]
    titles = {str(opening["ref"]): str(opening["title"]) for opening in opened}
    about = titles.get(reason.about, reason.about)
    said = escape.text(setting.words(f"reason.{reason.code}", about=about), limit=200)
    return f"<li>{said} <span{setting.dress('quiet')}>— {escape.text(reason.message, limit=600)}</span></li>"
