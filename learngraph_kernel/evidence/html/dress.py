"""How an element looks: by class on the page, by inline style in a notebook.

JupyterLab's sanitizer drops `<style>`, GitHub's drops classes as well, so notebook outputs carry their look on each
element, in the properties that `@jupyterlab/apputils` lets through, with colours that work on light and dark themes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Dress: TypeAlias = Callable[[str], str]
"""A role (`panel`, `summary`, `cell-cited`, …) to the attribute text that goes into the tag, with a leading space."""


def by_class(role: str) -> str:
    """For the page: ` class="lg-role"`."""
    return f' class="lg-{role}"'


_MONO = "font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
_RULE = "rgba(128,128,128,0.35)"
_FAINT = "rgba(128,128,128,0.12)"
_ACCENT = "#0f8a7e"
_BANNER = f"margin: 0 0 0.8em 0; padding: 0.5em 0.8em; background-color: {_FAINT}; border-left: 3px solid"

STYLES: Mapping[str, str] = {
    "report": "max-width: 46em; line-height: 1.6",
    "para": "margin: 0.6em 0",
    "number": "display: inline-block; vertical-align: top; max-width: 100%",
    "words": "display: inline-block; vertical-align: top; max-width: 100%",
    "cell": "display: inline-block; vertical-align: top; max-width: 100%",
    "summary": f"display: inline; cursor: pointer; white-space: nowrap; border-bottom: 1px dotted {_ACCENT}",
    "panel": f"margin: 0.5em 0 0.9em 0; padding: 0.7em 0.9em; border: 1px solid {_RULE}; border-radius: 4px; "
    f"border-left: 3px solid {_ACCENT}; background-color: {_FAINT}; font-size: 0.9em; line-height: 1.45; "
    "white-space: normal; font-weight: 400; text-align: left",
    "head": "margin-bottom: 0.5em",
    "big": "font-size: 1.35em; font-weight: 600",
    "title": "font-weight: 600; margin-left: 0.5em",
    "quiet": "opacity: 0.7",
    "label": "opacity: 0.7; font-weight: 400; text-align: left; vertical-align: top; padding: 0.1em 0.9em 0.1em 0; "
    "white-space: nowrap; border: 0",
    "fact": "text-align: left; vertical-align: top; padding: 0.1em 0; border: 0",
    "facts": "border-collapse: collapse; margin: 0 0 0.6em 0",
    "section": "font-size: 0.85em; opacity: 0.7; margin: 0.7em 0 0.25em 0; font-weight: 600",
    "code": _MONO,
    "table": "border-collapse: collapse; margin: 0.25em 0 0.6em 0",
    "scroll": "overflow-x: auto; max-width: 100%",
    "th": f"text-align: left; padding: 0.2em 0.7em; border-bottom: 1px solid {_RULE}; font-weight: 600",
    "th-number": f"text-align: right; padding: 0.2em 0.7em; border-bottom: 1px solid {_RULE}; font-weight: 600",
    "td": "text-align: left; padding: 0.2em 0.7em",
    "td-number": "text-align: right; padding: 0.2em 0.7em",
    "td-row": "text-align: right; padding: 0.2em 0.7em; opacity: 0.55",
    "cited": f"text-align: left; padding: 0.2em 0.7em; font-weight: 700; outline: 2px solid {_ACCENT}",
    "cited-number": f"text-align: right; padding: 0.2em 0.7em; font-weight: 700; outline: 2px solid {_ACCENT}",
    "column-number": f"text-align: right; padding: 0.2em 0.7em; background-color: {_FAINT}",
    "column": f"text-align: left; padding: 0.2em 0.7em; background-color: {_FAINT}",
    "sql": f"{_MONO}; white-space: pre-wrap; overflow-x: auto; margin: 0.2em 0 0.4em 0; padding: 0.5em 0.7em; "
    f"background-color: {_FAINT}; border-radius: 3px",
    "sql-word": "font-weight: 600",
    "sql-text": f"color: {_ACCENT}",
    "sql-number": f"color: {_ACCENT}",
    "sql-comment": "opacity: 0.6; font-style: italic",
    "mark": "background-color: rgba(214,120,0,0.22); border-bottom: 2px solid #d67800",
    "badge": "font-size: 0.75em; color: #b35f00; margin-left: 0.25em; white-space: nowrap",
    "quote": f"margin: 0.3em 0; padding: 0.4em 0.8em; border-left: 3px solid {_RULE}; white-space: pre-wrap",
    "banner-formal": f"{_BANNER} #1d8a4e",
    "banner-degraded": f"{_BANNER} #d67800",
    "banner-withheld": f"{_BANNER} #c0392b",
    "banner-pending": f"{_BANNER} {_RULE}",
    "banner-exploratory": f"{_BANNER} {_RULE}",
    "tier": "font-weight: 700; margin-right: 0.5em",
    "foot": "margin-top: 0.4em; font-size: 0.9em; opacity: 0.7",
    "caption": "opacity: 0.7; font-size: 0.9em; margin-top: 0.2em",
    "nothing": "opacity: 0.6",
    "name": _MONO,
    "alt": "opacity: 0.7; font-style: italic",
}


def by_style(role: str) -> str:
    """For notebooks: ` style="…"`; a role without a style gets nothing."""
    style = STYLES.get(role)
    return f' style="{style}"' if style else ""
