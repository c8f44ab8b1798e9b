"""What opens when a number is selected: an opening (JSON) as HTML.

Top to bottom, the way a doubting reader asks: what is the value, how was it computed, from which inputs, which cells
were those, which query gave them, which run recorded it. The same for the page and for notebooks; only the dress
differs.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from learngraph_kernel.canonical import decode_value
from learngraph_kernel.evidence.display import NOTHING, Style, as_number, display, exact, noun_of
from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.dress import Dress
from learngraph_kernel.evidence.html.facts import SealFacts
from learngraph_kernel.evidence.html.sql import highlight
from learngraph_kernel.evidence.html.strings import Words
from learngraph_kernel.evidence.openings import Opening

SHOWN_DIGITS = 15  # of a computed value, when it has more
MOST_WINDOWS = 12


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a panel is drawn: dress, language, and the run it belongs to."""

    dress: Dress
    words: Words
    run: str | None = None
    seal: SealFacts | None = None


def panel(opening: Opening | None, shown: str, setting: Setting) -> str:
    """The block that opens under a citation.

    Takes the opening (None for an unresolved citation), the text shown for it, and the setting; returns HTML.
    """
    dress = setting.dress
    if opening is None:
        return f"<div{dress('panel')}>{escape.text(setting.words('unresolved'))}</div>"
    parts = [_head(opening, shown, setting)]
    if opening["kind"] == "metric":
        parts += _computation(opening, shown, setting)
    elif opening["kind"] == "quote":
        parts.append(_passage(opening, setting))
    elif opening["kind"] == "name":
        names = ", ".join(opening["columns"])
        parts.append(_section(setting.words("columns"), setting) + f"<div{dress('code')}>{escape.text(names)}</div>")
    parts += [cells(window, setting) for window in _merged(opening.get("cells", []))[:MOST_WINDOWS]]
    parts += [statement(query, setting) for query in opening.get("queries", [])]
    parts.append(_foot(setting))
    return f"<div{dress('panel')}>{''.join(parts)}</div>"


def cells(window: dict[str, Any], setting: Setting) -> str:
    """The rows round a cited cell, or the first rows of a column read whole; what was read is highlighted."""
    words, dress = setting.words, setting.dress
    caption = f"{window['snapshot']} · {_span(window, words)}"
    if window["column_count"] > len(window["columns"]):
        caption += " · " + words("columns_shown", shown=len(window["columns"]), count=window["column_count"])
    numeric = numeric_columns(window["rows"])
    heads = "".join(
        f"<th{dress('th-number' if index in numeric else 'th')}>{escape.text(name, limit=80)}</th>"
        for index, name in enumerate(window["columns"])
    )
    body = "".join(_row(window, number, row, numeric, setting) for number, row in enumerate(window["rows"]))
    table = f"<table{dress('table')}><thead><tr><th{dress('th')}></th>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return _section(caption, setting) + f"<div{dress('scroll')}>{table}</div>"


def _merged(windows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Windows on the same rows as one, with everything that was read highlighted (`read`: pairs of row and column)."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for window in windows:
        key = (window["snapshot"], window["first_row"], len(window["rows"]), *window["columns"])
        shown = merged.setdefault(key, {**window, "read": set()})
        shown["read"].add((window["row"], window["column"]))
    return list(merged.values())


def statement(query: dict[str, Any], setting: Setting) -> str:
    """A query: which source, how many rows, the SQL, the artifact."""
    words, dress = setting.words, setting.dress
    facts = [query["ref"], f"{words('source')} {query['source']}", row_count(query["row_count"], words)]
    if query["truncated"]:
        facts.append(words("truncated", what=words(f"truncated.{query['truncated']}")))
    if query["derived_from"]:
        facts.append(words("derived_from", refs=", ".join(query["derived_from"])))
    line = f"{words('query')} · " + " · ".join(facts)
    artifact = f"{words('artifact')} sha256:{query['artifact']}"
    return (
        _section(line, setting)
        + f"<pre{dress('sql')}>{highlight(inspect.cleandoc(query['sql']), dress)}</pre>"
        + f"<div{dress('caption')}>{escape.text(artifact)}</div>"
    )


def row_count(count: int, words: Words) -> str:
    """`1 row`, `1,234 rows`."""
    return words("row_count.one") if count == 1 else words("row_count", count=f"{count:,}")


def value_text(value: Any, language: str) -> str:
    """A JSON value of an opening as text."""
    return display(decode_value(value), Style(language))


def facts(rows: Sequence[tuple[str, str, str]], setting: Setting) -> str:
    """Label and value pairs; the third item is the role of the value."""
    dress = setting.dress
    body = "".join(
        f"<tr><th{dress('label')}>{escape.text(label)}</th>"
        f"<td{dress('fact')}><span{dress(role)}>{escape.text(value, limit=4_000)}</span></td></tr>"
        for label, value, role in rows
    )
    return f"<table{dress('facts')}><tbody>{body}</tbody></table>"


def _head(opening: Opening, shown: str, setting: Setting) -> str:
    dress = setting.dress
    tail = [opening["ref"]]
    if opening.get("version"):
        tail.append(f"{setting.words('version')} {opening['version']}")
    if opening.get("type"):
        tail.append(opening["type"])
    noun = noun_of(opening.get("unit"))
    title = opening.get("title") or ""
    big = f"{shown} {noun}" if noun and shown != NOTHING else shown
    return (
        f"<div{dress('head')}><span{dress('big')}>{escape.text(big, limit=400)}</span> "
        f"<span{dress('title')}>{escape.text(title, limit=200)}</span> "
        f"<span{dress('quiet')}>{escape.text(' · '.join(tail), limit=400)}</span></div>"
    )


def _computation(opening: Opening, shown: str, setting: Setting) -> list[str]:
    words = setting.words
    rows = [(words("formula"), opening["formula"], "code"), (words("substituted"), opening["substituted"], "code")]
    if opening["state"] == "ok":
        rows.append((words("result"), f"{_result(opening['value'])} → {shown}", "code"))
    else:
        rows.append((words("no_value"), opening["reason"] or opening["state"], "fact-text"))
    also = opening.get("also")
    if also:
        line = f"{also['formula']} = {also['substituted']} = {_result(also['value'])}"
        line += f" ({words('version')} {also['version']})"
        rows.append((words("also"), line, "code"))
    parts = [facts(rows, setting)]
    if opening["inputs"]:
        parts += [_section(words("inputs"), setting), _inputs(opening["inputs"], setting)]
    return parts


def _result(value: Any) -> str:
    number = as_number(decode_value(value))
    if number is None:
        return NOTHING
    digits = len(number.as_tuple().digits)
    if digits <= SHOWN_DIGITS:
        return exact(number)
    short: Decimal = Context(prec=SHOWN_DIGITS).plus(number)
    return exact(short) + ("…" if short != number else "")


def _inputs(inputs: Sequence[dict[str, Any]], setting: Setting) -> str:
    words, dress = setting.words, setting.dress
    heads = "".join(
        f"<th{dress('th-number' if key == 'input.value' else 'th')}>{escape.text(words(key))}</th>"
        for key in ("input.name", "input.value", "input.binding", "input.refs")
    )
    body = ""
    for item in inputs:
        value = decode_value(item["value"])
        body += (
            f"<tr><td{dress('td')}><span{dress('code')}>{escape.text(item['name'], limit=80)}</span></td>"
            f"<td{dress('td-number')}>{escape.text(_exact(value, words.language))}</td>"
            f"<td{dress('td')}><span{dress('code')}>{escape.text(item['binding'], limit=200)}</span></td>"
            f"<td{dress('td')}><span{dress('code')}>{escape.text(', '.join(item['refs']), limit=300)}</span></td></tr>"
        )
    table = f"<table{dress('table')}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div{dress('scroll')}>{table}</div>"


def _exact(value: Any, language: str) -> str:
    return _result(value) if isinstance(value, Decimal) else exact(value, language)


def _row(window: dict[str, Any], offset: int, row: Sequence[Any], numeric: set[int], setting: Setting) -> str:
    dress = setting.dress
    number = window["first_row"] + offset
    cells_html = []
    for index, (name, value) in enumerate(zip(window["columns"], row, strict=True)):
        whole, single = (None, name) in window["read"], (number, name) in window["read"]
        kind = "cited" if single else "column" if whole else "td"
        role = kind + ("-number" if index in numeric else "")
        ref = f"{window['snapshot']}.r{number}.{name}"
        text = escape.text(value_text(value, setting.words.language))
        cells_html.append(f'<td{dress(role)} title="{escape.attribute(ref)}">{text}</td>')
    return f"<tr><th{dress('td-row')}>r{number}</th>{''.join(cells_html)}</tr>"


def _span(window: dict[str, Any], words: Words) -> str:
    count, first, shown = window["row_count"], window["first_row"], len(window["rows"])
    if shown == 0:
        return words("rows.none")
    whole = [column for row, column in sorted(window["read"], key=str) if row is None]
    if whole:
        return words("column_whole", column=", ".join(whole), count=f"{count:,}", shown=shown)
    if shown == 1:
        return words("row", first=f"r{first}", count=f"{count:,}")
    return words("rows", first=f"r{first}", last=f"r{first + shown - 1}", count=f"{count:,}")


def _passage(opening: Opening, setting: Setting) -> str:
    dress, text = setting.dress, opening["text"]
    start, end = opening["start"], opening["end"]
    mark = f"<mark{dress('mark-quote')}>{escape.text(text[start:end])}</mark>"
    quoted = f"{escape.text(text[:start])}{mark}{escape.text(text[end:])}"
    place = f"{opening['title']} · {opening['place']}"
    return _section(f"{setting.words('passage')} · {place}", setting) + f"<div{dress('quote')}>{quoted}</div>"


def _section(text: str, setting: Setting) -> str:
    return f"<div{setting.dress('section')}>{escape.text(text, limit=400)}</div>"


def _foot(setting: Setting) -> str:
    words = setting.words
    parts = [f"{words('run')} {setting.run}"] if setting.run else []
    if setting.seal is None:
        parts.append(f"{words('seal')}: {words('recorded')}")
    else:
        key = f" · {words('key')} {setting.seal.key}" if setting.seal.key else ""
        parts.append(f"{words('seal')}: {words('sealed' if setting.seal.state == 'sealed' else 'unsealed')}{key}")
    return f"<div{setting.dress('foot')}>{escape.text(' · '.join(parts), limit=400)}</div>"


def numeric_columns(rows: Sequence[Sequence[Any]]) -> set[int]:
    """Which columns hold numbers and are set flush right."""
    columns = range(len(rows[0])) if rows else range(0)
    return {index for index in columns if any(as_number(decode_value(row[index])) is not None for row in rows)}
