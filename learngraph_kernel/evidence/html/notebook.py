"""What a notebook cell shows: mime bundles whose HTML is static and survives the sanitizers of Lab, nbviewer and
GitHub.

Inline styles only, no ids, nothing that differs between two runs of the same notebook; `text/plain` carries the same
facts for terminals and diffs; the card MIME type carries them as data for richer views.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from learngraph_kernel.canonical import encode_value
from learngraph_kernel.evidence.display import NOTHING, Style, as_number, display, noun_of, safe_text
from learngraph_kernel.evidence.document import ReportDocument
from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.body import number, report_body, tier_banner, tier_word
from learngraph_kernel.evidence.html.dress import by_style
from learngraph_kernel.evidence.html.facts import SealFacts
from learngraph_kernel.evidence.html.panel import Setting, panel, row_count, statement
from learngraph_kernel.evidence.html.strings import Words
from learngraph_kernel.evidence.openings import Opening, query, title_of
from learngraph_kernel.evidence.values import MetricResult, SnapshotInfo, Value

CARD_MIME = "application/vnd.learngraph.card+json"
MOST_ROWS_SHOWN = 20
MimeBundle = dict[str, Any]


def mimebundle_for_report(
    document: ReportDocument, *, run: str | None = None, seal: SealFacts | None = None
) -> MimeBundle:
    """A report document as a cell output."""
    setting = _setting(document.language, run, seal)
    body = tier_banner(document, setting) + report_body(document, setting)
    return {
        "text/html": f'<div{by_style("report")} lang="{escape.attribute(document.language)}">{body}</div>',
        "text/plain": report_text(document),
        CARD_MIME: _card("report", document.as_json()),
    }


def mimebundle_for_metrics(
    results: Sequence[MetricResult],
    openings: Mapping[str, Opening],
    *,
    language: str = "en",
    run: str | None = None,
    seal: SealFacts | None = None,
) -> MimeBundle:
    """Metric results as a cell output; `openings` by metric name, from `openings.metric_opening`."""
    setting = _setting(language, run, seal)
    rows, lines, data = [], [], []
    for result in results:
        shown = _metric_text(result, language)
        title = title_of(result, language)
        opened = number(shown, f"m:{result.name}", panel(openings.get(result.name), shown, setting), setting)
        unit = noun_of(result.unit) or ""
        rows.append(
            f"<tr><td{by_style('td')}>{escape.text(title, limit=200)}</td>"
            f"<td{by_style('td-number')}>{opened}</td><td{by_style('td')}>{escape.text(unit, limit=40)}</td>"
            f"<td{by_style('td')}><span{by_style('quiet')}>m:{escape.text(result.name)} · {escape.text(result.version)}"
            f"</span></td></tr>"
        )
        lines.append([title, shown, unit, f"m:{result.name}"])
        data.append({"name": result.name, "display": shown, "opening": openings.get(result.name)})
    heads = [setting.words("metric"), setting.words("value"), "", setting.words("reference")]
    header = "".join(
        f"<th{by_style('th-number' if at == 1 else 'th')}>{escape.text(head)}</th>" for at, head in enumerate(heads)
    )
    table = f"<table{by_style('table')}><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return {
        "text/html": f"<div{by_style('report')}>{table}</div>",
        "text/plain": text_table(heads, lines),
        CARD_MIME: _card("metrics", {"metrics": data}),
    }


def mimebundle_for_snapshot(
    info: SnapshotInfo,
    rows: Iterable[Sequence[Value]],
    *,
    language: str = "en",
    first_row: int = 0,
    run: str | None = None,
) -> MimeBundle:
    """The first rows of a snapshot as a cell output; every cell carries its reference."""
    setting = _setting(language, run, None)
    kept = [list(row) for _, row in zip(range(MOST_ROWS_SHOWN), rows, strict=False)]
    names = [column.name for column in info.columns]
    shown = [[display(value, Style(language)) for value in row] for row in kept]
    numeric = {at for at in range(len(names)) if any(as_number(row[at]) is not None for row in kept)}
    heads = "".join(
        f'<th{by_style("th-number" if at in numeric else "th")} title="{escape.attribute(column.type)}">'
        f"{escape.text(column.name, limit=120)}</th>"
        for at, column in enumerate(info.columns)
    )
    body = []
    for offset, row in enumerate(shown):
        label = f"r{first_row + offset}"
        cells = "".join(
            _snapshot_cell(f"{info.ref}.{label}.{names[at]}", text, at in numeric) for at, text in enumerate(row)
        )
        body.append(f"<tr><th{by_style('td-row')}>{label}</th>{cells}</tr>")
    words = setting.words
    caption = f"{info.ref} · {info.source} · {row_count(info.row_count, words)}"
    if info.truncated:
        caption += " · " + words("truncated", what=words(f"truncated.{info.truncated}"))
    table = (
        f"<table{by_style('table')}><thead><tr><th{by_style('th')}></th>{heads}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    opened = number(caption, info.ref, f"<div{by_style('panel')}>{statement(query(info), setting)}</div>", setting)
    return {
        "text/html": f"<div{by_style('scroll')}>{table}</div><div{by_style('caption')}>{opened}</div>",
        "text/plain": caption
        + "\n"
        + text_table(["", *names], [[f"r{first_row + at}", *row] for at, row in enumerate(shown)]),
        CARD_MIME: _card(
            "snapshot",
            {"snapshot": info.as_json(), "first_row": first_row, "rows": [encode_value(_short(row)) for row in kept]},
        ),
    }


def report_text(document: ReportDocument) -> str:
    """The report as plain text: Markdown with the values in place; tables spelled out; violations in brackets."""
    words = Words(document.language)
    pieces, position = [], 0
    for citation in document.citations:
        pieces.append(document.source[position : citation.start])
        position = citation.end
        if citation.kind == "table" and citation.opening is not None:
            rows = [
                [display(_decoded(value), Style(document.language)) for value in row]
                for row in citation.opening["rows"]
            ]
            pieces.append("\n" + text_table(citation.opening["columns"], rows))
        elif citation.kind == "quote" and citation.opening is not None:
            pieces.append(f"“{citation.display}”")
        else:
            pieces.append(citation.display)
    pieces.append(document.source[position:])
    tier = words(f"tier.{tier_word(document)}")
    lines = [f"[{tier}]", *(f"- {reason.message}" for reason in document.reasons), "".join(pieces).strip()]
    lines += [f"[{words('no_evidence')}: {item.text}]" for item in document.violations if item.blocking]
    return safe_text("\n".join(lines), limit=500_000)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns set side by side; East Asian characters count two."""
    table = [[safe_text(cell, limit=60).replace("\n", " ") for cell in row] for row in [heads, *rows]]
    widths = [max(_width(row[at]) for row in table) for at in range(len(heads))]
    lines = [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)) for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _snapshot_cell(ref: str, text: str, numeric: bool) -> str:
    style = by_style("td-number" if numeric else "td")
    name = escape.attribute(ref)
    return f'<td{style} title="{name}" data-ref="{name}">{escape.text(text)}</td>'


def _metric_text(result: MetricResult, language: str) -> str:
    if result.state != "ok":
        return NOTHING
    return display(result.value, Style(language, result.unit, result.precision))


def _setting(language: str, run: str | None, seal: SealFacts | None) -> Setting:
    return Setting(by_style, Words(language), run, seal)


def _card(component: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {"component": f"learngraph.{component}", "version": "1", "data": dict(data)}


def _short(row: Sequence[Value]) -> list[Value]:
    return [safe_text(value) if isinstance(value, str) else value for value in row]


def _decoded(value: Any) -> Any:
    from learngraph_kernel.canonical import decode_value

    return decode_value(value)
