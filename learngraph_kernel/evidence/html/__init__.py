"""Static HTML of evidence: the report page and the outputs of notebook cells. No script, no request, everything
escaped.

`page.render_report` makes the self-contained page, `notebook.mimebundle_for_*` the outputs; both draw the same
`panel`s, dressed with classes (page) or inline styles (notebooks, whose sanitizers drop style sheets). Start reading
at `panel`.
"""

from __future__ import annotations

from learngraph_kernel.evidence.html.facts import Image, RunFacts, SealFacts
from learngraph_kernel.evidence.html.notebook import (
    CARD_MIME,
    mimebundle_for_metrics,
    mimebundle_for_report,
    mimebundle_for_snapshot,
)
from learngraph_kernel.evidence.html.page import render_report

__all__ = [
    "CARD_MIME",
    "Image",
    "RunFacts",
    "SealFacts",
    "mimebundle_for_metrics",
    "mimebundle_for_report",
    "mimebundle_for_snapshot",
    "render_report",
]
