"""The report page: one file, no script, no request; it reads the same in ten years and without a network.

The Content-Security-Policy in its head lets through nothing but its own styles and pictures inside the file, so that
even a mistake in escaping could not load or run anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from learngraph_kernel.evidence.display import Style, display
from learngraph_kernel.evidence.document import ReportDocument
from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.body import report_body, tier_banner
from learngraph_kernel.evidence.html.dress import by_class
from learngraph_kernel.evidence.html.facts import Image, RunFacts, SealFacts
from learngraph_kernel.evidence.html.markdown import starts_with_title
from learngraph_kernel.evidence.html.panel import Setting, facts, row_count, statement
from learngraph_kernel.evidence.html.strings import Words

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*\Z")


def render_report(
    document: ReportDocument,
    *,
    title: str | Mapping[str, str],
    run: RunFacts | str,
    seal: SealFacts | None = None,
    language: str | None = None,
    images: Sequence[Image] = (),
) -> str:
    """The whole page.

    Takes the document as issued, its title, the run, the seal if there is one, the language of the page's own words
    (default: the document's) and the run's pictures. Returns HTML.
    """
    words = Words(language or document.language)
    run_facts = RunFacts(run) if isinstance(run, str) else run
    name = title if isinstance(title, str) else title.get(words.language) or next(iter(title.values()), "")
    setting = Setting(by_class, words, run_facts.run_id, seal)
    heading = "" if starts_with_title(document) else f"<h1>{escape.text(name, limit=300)}</h1>\n"
    return (
        f'<!DOCTYPE html>\n<html lang="{escape.attribute(document.language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape.text(name, limit=300)}</title>\n<style>{_stylesheet()}</style>\n</head>\n<body>\n"
        f"{_header(name, run_facts, setting)}\n<main>\n{tier_banner(document, setting)}\n"
        f'<article class="lg-body">\n{heading}{report_body(document, setting)}</article>\n'
        f"{_figures(images, words)}{_queries(document, setting)}</main>\n"
        f"{_footer(run_facts, seal, setting)}\n</body>\n</html>\n"
    )


@cache
def _stylesheet() -> str:
    return files(__package__).joinpath("report.css").read_text("utf-8")


def _header(name: str, run: RunFacts, setting: Setting) -> str:
    words = setting.words
    facts_line = [run.finished_at or run.started_at or "", run.run_id]
    line = " · ".join(escape.text(fact, limit=120) for fact in facts_line if fact)
    parameters = "".join(
        f'<span class="lg-parameter"><span>{escape.text(key, limit=60)}</span> '
        f"{escape.text(_parameter(value, words.language), limit=80)}</span>"
        for key, value in run.parameters.items()
    )
    shown = f'<div class="lg-parameters">{parameters}</div>' if parameters else ""
    return (
        f'<header><div class="lg-brand"><span class="lg-sign" aria-hidden="true"></span>LearnGraph</div>'
        f'<div class="lg-line">{line}</div>{shown}</header>'
    )


def _parameter(value: Any, language: str) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else display(value, Style(language))


def _figures(images: Sequence[Image], words: Words) -> str:
    figures = []
    for image in images:
        if image.mime not in _IMAGE_TYPES or not _BASE64.match(image.base64):
            said = words("figure.unshown", mime=image.mime)
            figures.append(
                f"<figure><figcaption>{escape.text(f'{image.title} ({said})', limit=400)}</figcaption></figure>\n"
            )
            continue
        data = re.sub(r"\s+", "", image.base64)
        figures.append(
            f'<figure><img src="data:{image.mime};base64,{data}" alt="{escape.attribute(image.alt or image.title)}">'
            f"<figcaption>{escape.text(image.title, limit=400)}</figcaption></figure>\n"
        )
    return (
        f'<section class="lg-figures" aria-label="{words("figures")}">\n{"".join(figures)}</section>\n'
        if figures
        else ""
    )


def _queries(document: ReportDocument, setting: Setting) -> str:
    queries = {
        query["ref"]: query
        for citation in document.citations
        if citation.opening is not None
        for query in citation.opening.get("queries", [])
    }
    if not queries:
        return ""
    ordered = sorted(queries.values(), key=lambda query: (len(query["ref"]), query["ref"]))
    items = "".join(_query(query, setting) for query in ordered)
    return f'<section class="lg-queries"><h2>{escape.text(setting.words("queries"))}</h2>\n{items}</section>\n'


def _query(query: dict[str, Any], setting: Setting) -> str:
    about = f"{query['source']} · {row_count(query['row_count'], setting.words)}"
    return (
        f'<details class="lg-query"><summary>{escape.text(query["ref"])} '
        f'<span class="lg-quiet">{escape.text(about, limit=120)}</span></summary>'
        f"{statement(query, setting)}</details>\n"
    )


def _footer(run: RunFacts, seal: SealFacts | None, setting: Setting) -> str:
    words = setting.words
    rows = [(words("run"), run.run_id, "code")]
    optional = (
        ("content", run.content_hash, "code"),
        ("notebook", run.notebook, "code"),
        ("by", run.actor, "fact-text"),
        ("finished", run.finished_at, "fact-text"),
        ("isolation", run.isolation, "fact-text"),
    )
    rows += [(words(key), value, role) for key, value, role in optional if value]
    if seal is None:
        rows.append((words("seal"), words("unsealed"), "fact-text"))
    else:
        parts = [words("sealed" if seal.state == "sealed" else "unsealed"), seal.sealed_at, seal.envelope]
        rows.append((words("seal"), " · ".join(part for part in parts if part), "code"))
        if seal.key:
            rows.append((words("key"), seal.key, "code"))
    command = f"learngraph verify {run.run_id}"
    return (
        f'<footer>{facts(rows, setting)}<div class="lg-verify">{escape.text(words("verify.text"))} '
        f"<code>{escape.text(command)}</code></div></footer>"
    )
