"""A report's source as HTML, with every citation in its place and every violation marked.

Values never pass through Markdown. Before parsing, each citation becomes a placeholder of private-use characters,
which the renderer turns into the finished HTML of that citation; so nothing a database holds can become markup, a
link or a table. Private-use characters of the source itself are made visible first, so that nobody can forge a
placeholder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from learngraph_kernel.evidence.code_spans import parser
from learngraph_kernel.evidence.display import safe_text
from learngraph_kernel.evidence.document import ReportDocument
from learngraph_kernel.evidence.html import escape
from learngraph_kernel.evidence.html.dress import Dress
from learngraph_kernel.evidence.violations import Violation

_CITE, _CITE_END, _MARK, _MARK_ID, _MARK_END = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
_PLACEHOLDER = re.compile(f"{_CITE}(\\d+){_CITE_END}|{_MARK}(\\d+){_MARK_ID}|({_MARK_END})")
_PERCENT_ENCODED = re.compile("%EE%80%8[0-4](?:\\d+%EE%80%8[1-3])?")

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
IMAGE_DATA = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+\Z")

CitationHtml = Callable[[int], str]


def render_body(document: ReportDocument, citation_html: CitationHtml, dress: Dress, badge: str) -> str:
    """The body of a report.

    Takes the document, a function from a citation's index to its HTML, the dress, and the words that mark a place
    without evidence. Returns HTML.
    """
    drawing = _Drawing(document, citation_html, dress, badge)
    html = drawing.markdown.render(_with_placeholders(document))
    return _PERCENT_ENCODED.sub("", _PLACEHOLDER.sub(drawing.plain, html))


def marked_violations(document: ReportDocument) -> list[Violation]:
    """The violations that are marked in the text: in order, not overlapping, not those of citations without a value."""
    marked: list[Violation] = []
    for violation in sorted(document.violations, key=lambda item: (item.start, -item.end)):
        if violation.blocking and (not marked or violation.start >= marked[-1].end):
            marked.append(violation)
    return marked


def starts_with_title(document: ReportDocument) -> bool:
    """Whether the source brings its own first-level heading."""
    return re.match(r"\s*#\s", document.source) is not None


def _with_placeholders(document: ReportDocument) -> str:
    """The source with citations and marks as private-use characters."""
    inserts: list[tuple[int, int, int, str]] = []
    for index, citation in enumerate(document.citations):
        inserts.append((citation.start, 1, citation.end, f"{_CITE}{index}{_CITE_END}"))
    for index, violation in enumerate(marked_violations(document)):
        inserts.append((violation.start, 0, violation.start, f"{_MARK}{index}{_MARK_ID}"))
        inserts.append((violation.end, -1, violation.end, _MARK_END))
    pieces, position = [], 0
    for start, _, end, replacement in sorted(inserts):
        if start >= position:
            pieces.append(_clean(document.source[position:start]))
            position = max(position, end)
        pieces.append(replacement)
    pieces.append(_clean(document.source[position:]))
    return "".join(pieces)


def _clean(source: str) -> str:
    return safe_text(source, limit=len(source) + 1)


class _Drawing:
    """One rendering: the parser with our rules, and which mark is open."""

    def __init__(self, document: ReportDocument, citation_html: CitationHtml, dress: Dress, badge: str) -> None:
        self.document = document
        self.citation_html = citation_html
        self.dress = dress
        self.badge = badge
        self.violations = marked_violations(document)
        self.open: int | None = None
        self.in_link = 0
        self.dropped_links: list[bool] = []
        self.markdown = self._parser()

    def _parser(self) -> MarkdownIt:
        markdown = parser()
        markdown.validateLink = _is_allowed  # type: ignore[method-assign]
        rules = markdown.renderer.rules  # type: ignore[attr-defined]
        rules["text"] = self._text
        rules["softbreak"] = self._softbreak
        rules["code_inline"] = self._code_inline
        rules["fence"] = self._fence
        rules["paragraph_open"] = self._paragraph_open
        rules["paragraph_close"] = self._paragraph_close
        rules["link_open"] = self._link_open
        rules["link_close"] = self._link_close
        rules["image"] = self._image
        rules["table_open"] = lambda *_: f"<div{self.dress('scroll')}><table{self.dress('prose-table')}>"
        rules["table_close"] = lambda *_: "</table></div>\n"
        return markdown

    def plain(self, match: re.Match[str]) -> str:
        """What is left of a placeholder where no markup may stand: the displayed text, or nothing."""
        return escape.text(self.document.citations[int(match.group(1))].display) if match.group(1) else ""

    def _text(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        return self._pieces(tokens[index].content)

    def _softbreak(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        """A line end in the source is a space, but not next to Chinese, which is written without."""
        before = tokens[index - 1].content[-1:] if index else ""
        after = tokens[index + 1].content[:1] if index + 1 < len(tokens) else ""
        glued = (_is_wide(before) and (_is_wide(after) or after == _CITE)) or (before == _CITE_END and _is_wide(after))
        return "" if glued else "\n"

    def _pieces(self, content: str) -> str:
        pieces, position = [], 0
        for match in _PLACEHOLDER.finditer(content):
            pieces.append(self._in_mark(escape.text(content[position : match.start()])))
            position = match.end()
            if match.group(1):
                pieces.append(self._citation(int(match.group(1))))
            elif match.group(2):
                self.open = int(match.group(2))
            elif self.open is not None:
                pieces.append(self._badge(self.violations[self.open]))
                self.open = None
        pieces.append(self._in_mark(escape.text(content[position:])))
        return "".join(pieces)

    def _citation(self, index: int) -> str:
        citation = self.document.citations[index]
        if self.in_link:  # a link cannot hold another control
            return f"<span>{escape.text(citation.display)}</span>"
        return self.citation_html(index)

    def _in_mark(self, html: str) -> str:
        if self.open is None or not html.strip():
            return html
        title = escape.attribute(self.violations[self.open].message)
        return f'<mark{self.dress("mark")} title="{title}">{html}</mark>'

    def _badge(self, violation: Violation) -> str:
        title = escape.attribute(violation.message)
        return f'<span{self.dress("badge")} title="{title}">{escape.text(self.badge)}</span>'

    def _code_inline(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        return self._in_mark(f"<code{self.dress('name')}>{escape.text(tokens[index].content)}</code>")

    def _fence(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        return f"<pre{self.dress('sql')}>{escape.text(tokens[index].content)}</pre>\n"

    # A paragraph holds panels, which are blocks, so it is a div: `p` would be closed by the first of them.
    def _paragraph_open(
        self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]
    ) -> str:
        return "" if tokens[index].hidden else f"<div{self.dress('para')}>"

    def _paragraph_close(
        self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]
    ) -> str:
        return "" if tokens[index].hidden else "</div>\n"

    def _link_open(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        href = str(tokens[index].attrs.get("href", ""))
        dropped = urlsplit(href).scheme.lower() not in LINK_SCHEMES
        self.dropped_links.append(dropped)
        self.in_link += 1
        title = str(tokens[index].attrs.get("title", ""))
        shown = f' title="{escape.attribute(title)}"' if title else ""
        if dropped:
            return f"<span{shown}>"
        return f'<a href="{escape.attribute(href, limit=4_000)}" rel="noopener noreferrer nofollow"{shown}>'

    def _link_close(self, _tokens: Sequence[Token], _index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        self.in_link -= 1
        return "</span>" if self.dropped_links.pop() else "</a>"

    def _image(self, tokens: Sequence[Token], index: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        source = str(tokens[index].attrs.get("src", ""))
        words = _PLACEHOLDER.sub(self.plain_text, tokens[index].content)
        if not IMAGE_DATA.match(source):
            return f"<span{self.dress('alt')}>[{escape.text(words)}]</span>"
        return f'<img src="{source}" alt="{escape.attribute(words)}">'

    def plain_text(self, match: re.Match[str]) -> str:
        """Like `plain`, unescaped."""
        return self.document.citations[int(match.group(1))].display if match.group(1) else ""


def _is_wide(character: str) -> bool:
    return character != "" and unicodedata.east_asian_width(character) in "WF"


def _is_allowed(url: str) -> bool:
    """http, https and mailto links; images only as data. Anything else stays the text it was."""
    try:
        scheme = urlsplit(url.strip()).scheme.lower()
    except ValueError:
        return False
    return scheme in LINK_SCHEMES or IMAGE_DATA.match(url) is not None
