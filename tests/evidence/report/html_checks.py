"""What every piece of evidence HTML must keep to, checked by parsing it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img"})
TAGS = frozenset(
    word
    for line in (
        "html head meta title style body header main footer article section div span p h1 h2 h3 h4 h5 h6 ul",
        "ol li table thead tbody tr th td details summary pre code mark strong em s a img figure figcaption",
        "blockquote br hr",
    )
    for word in line.split()
)
ATTRIBUTES = frozenset(
    word
    for line in (
        "class style title lang role name href rel src alt start charset http-equiv content data-ref",
        "aria-label aria-hidden",
    )
    for word in line.split()
)

# From @jupyterlab/apputils 4.6 (sanitizer.ts): what its default sanitizer lets through, as far as we use it.
LAB_TAGS = TAGS - {"html", "head", "meta", "title", "style", "body", "main"}
LAB_STYLES = frozenset(
    word
    for line in (
        "background-color border border-bottom border-collapse border-left border-radius color cursor display",
        "font-family font-size font-style font-weight line-height margin margin-bottom margin-left margin-right",
        "margin-top max-width opacity outline overflow-x padding text-align vertical-align white-space",
    )
    for word in line.split()
)


class Checked(HTMLParser):
    """Parses HTML and keeps its tags, attributes and text; raises on what may never occur."""

    def __init__(self, html: str, tags: frozenset[str] = TAGS) -> None:
        super().__init__(convert_charrefs=True)
        self.allowed = tags
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.allowed, f"<{tag}> may not occur"
        self.tags.append(tag)
        for name, value in attrs:
            assert name in ATTRIBUTES, f"{tag} has attribute {name}"
            self.attributes.append((tag, name, value or ""))
            if name == "href":
                assert (value or "").startswith(("https://", "http://", "mailto:")), value
            if name == "src":
                assert (value or "").startswith("data:image/"), value
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"comment {data!r}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"processing instruction {data!r}")

    def styles(self) -> set[str]:
        """The CSS properties of inline styles."""
        return {
            declaration.partition(":")[0].strip()
            for _, name, value in self.attributes
            if name == "style"
            for declaration in value.split(";")
            if declaration.strip()
        }
