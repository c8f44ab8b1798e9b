"""The only two ways in which text becomes HTML here: `text` for content, `attribute` for attribute values.

Both make unseen characters visible first (`display.safe_text`), so that neither markup nor a bidirectional override
gets from data into the page.
"""

from __future__ import annotations

import html

from learngraph_kernel.evidence.display import safe_text


def text(value: str, *, limit: int = 100_000) -> str:
    """Content: `&`, `<`, `>` and both quotes escaped, cut to `limit` characters."""
    return html.escape(safe_text(value, limit=limit), quote=True)


def attribute(value: str, *, limit: int = 1_000) -> str:
    """An attribute value for use between double quotes; line breaks become spaces."""
    return html.escape(safe_text(value, limit=limit).replace("\n", " ").replace("\t", " "), quote=True)
