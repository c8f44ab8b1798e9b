"""Reading citation markup: every kind, its quoting and formats, and what is said about what cannot be read."""

from __future__ import annotations

import time

import pytest

from learngraph_kernel.evidence.citations import (
    CellTarget,
    Format,
    InputTarget,
    MetricTarget,
    NameTarget,
    PassageTarget,
    QuoteTarget,
    SeeTarget,
    TableTarget,
    parse_citations,
)
from learngraph_kernel.evidence.code_spans import code_ranges

READABLE = [
    ("[[m:gmv]]", "metric", MetricTarget("gmv")),
    ("[[ m : gmv ]]", "metric", MetricTarget("gmv")),
    ("[[m:销售额]]", "metric", MetricTarget("销售额")),
    ('[[m:"net gmv"]]', "metric", MetricTarget("net gmv")),
    ("[[i:week]]", "input", InputTarget("week")),
    ("[[v:Q1.r0.gmv]]", "cell", CellTarget("Q1", 0, "gmv")),
    ('[[v:Q1.r0."net amount"]]', "cell", CellTarget("Q1", 0, "net amount")),
    ("[[v:Q1.r0.net amount]]", "cell", CellTarget("Q1", 0, "net amount")),
    ("[[v:Q1.r12.a.b]]", "cell", CellTarget("Q1", 12, "a.b")),
    ('[[v:Q1.r0."say ""hi"""]]', "cell", CellTarget("Q1", 0, 'say "hi"')),
    ('[[v:Q1.r0."a|b"]]', "cell", CellTarget("Q1", 0, "a|b")),
    ("[[v:Q1.r0.净额]]", "cell", CellTarget("Q1", 0, "净额")),
    ("[[v:r_01ABC/Q1.r0.gmv]]", "cell", CellTarget("Q1", 0, "gmv", "r_01ABC")),
    ("[[table:Q1]]", "table", TableTarget("Q1")),
    ("[[table:Q1 cols=region,amount rows=0-4]]", "table", TableTarget("Q1", ("region", "amount"), (0, 4))),
    ('[[table:Q1 cols="net amount",b rows=3]]', "table", TableTarget("Q1", ("net amount", "b"), (3, 3))),
    ("[[t:orders]]", "name", NameTarget("orders", False)),
    ("[[t:main.orders]]", "name", NameTarget("main.orders", False)),
    ("[[c:orders.week]]", "name", NameTarget("orders.week", True)),
    ('[[c:orders."net amount"]]', "name", NameTarget("orders.net amount", True)),
    ("[[q:K1|the exact words]]", "quote", QuoteTarget("K1", "the exact words")),
    ("[[q:K1|a | b [c] d]]", "quote", QuoteTarget("K1", "a | b [c] d")),
    (
        "[[see:m:gmv,Q1,v:Q1.r0.a,K1,i:week]]",
        "see",
        SeeTarget(
            (MetricTarget("gmv"), TableTarget("Q1"), CellTarget("Q1", 0, "a"), PassageTarget("K1"), InputTarget("week"))
        ),
    ),
]


@pytest.mark.parametrize(("markup", "kind", "target"), READABLE)
def test_every_kind_of_citation_is_read(markup: str, kind: str, target: object) -> None:
    parsed = parse_citations(f"before {markup} after")
    assert not parsed.violations
    (citation,) = parsed.citations
    assert (citation.kind, citation.target, citation.markup) == (kind, target, markup)
    assert (citation.start, citation.end) == (7, 7 + len(markup))


@pytest.mark.parametrize(
    ("markup", "shape"),
    [
        ("[[m:gmv|万]]", Format(scale="万")),
        ("[[m:gmv|万亿]]", Format(scale="万亿")),
        ("[[m:gmv|bn]]", Format(scale="bn")),
        ("[[m:gmv|%.1]]", Format(digits=1)),
        ("[[m:gmv|.2]]", Format(digits=2)),
        ("[[m:rate|%]]", Format(percent=True)),
        ("[[m:rate|%|.1]]", Format(percent=True, digits=1)),
        ("[[m:gmv| M | .3 ]]", Format(scale="M", digits=3)),
        ("[[v:Q1.r0.gmv|亿]]", Format(scale="亿")),
        ("[[i:budget|k]]", Format(scale="k")),
    ],
)
def test_display_formats_are_read(markup: str, shape: Format) -> None:
    assert parse_citations(markup).citations[0].format == shape


@pytest.mark.parametrize(
    "markup",
    [
        "[[m:]]",
        "[[m:two words]]",
        "[[m:gmv|zz]]",
        "[[m:gmv|万|亿]]",
        "[[m:gmv|万|%]]",
        "[[m:gmv|.99]]",
        "[[m:gmv|5000]]",
        "[[v:Q1]]",
        "[[v:Q1.0.gmv]]",
        "[[v:Q1.r-1.gmv]]",
        '[[v:Q1.r0."open]]',
        "[[table:]]",
        "[[table:Q1 rows=4-0]]",
        "[[table:Q1 rows=a]]",
        "[[table:Q1 top=5]]",
        "[[table:Q1 cols=a,,b]]",
        "[[t:]]",
        "[[c:orders]]",
        "[[q:K1]]",
        "[[q:K1|  ]]",
        "[[see:]]",
        "[[metric:gmv]]",
        "[[gmv]]",
        "[[m:open",
    ],
)
def test_what_cannot_be_read_is_a_violation_with_its_place(markup: str) -> None:
    parsed = parse_citations(f"see {markup}")
    assert not parsed.citations
    (violation,) = parsed.violations
    assert violation.code == "syntax"
    assert (violation.start, violation.end) == (4, 4 + len(markup))
    assert violation.suggestion


@pytest.mark.parametrize(
    "text",
    [
        "`[[m:gmv]]`",
        "``a ` [[m:gmv]]``",
        "```\n[[m:gmv]]\n```",
        "~~~sql\n[[m:gmv]]\n~~~",
        "- item\n\n  ```\n  [[m:gmv]]\n  ```",
        "> ```\n> [[m:gmv]]\n> ```",
        "```\n[[m:gmv]] (never closed",
    ],
)
def test_markup_in_code_is_left_alone(text: str) -> None:
    parsed = parse_citations(text)
    assert not parsed.citations
    assert not parsed.violations


@pytest.mark.parametrize(
    "text",
    [
        r"\`[[m:gmv]]\`",
        "# a ` b\n[[m:gmv]] ` c",  # a span does not reach over the end of a heading
        "one ` para\n\n[[m:gmv]] ` two",
        "| a ` | b |\n|---|---|\n| [[m:gmv]] | ` |",
        "- a ` b\n- [[m:gmv]] ` c",
        "`` [[m:gmv]] `",
        "text\n\n    [[m:gmv]]\n",  # indented: no code here
    ],
)
def test_what_only_looks_like_code_is_prose(text: str) -> None:
    assert len(parse_citations(text).citations) == 1


def test_code_ranges_carry_their_content() -> None:
    text = "a `x y` b\n\n```py\nz = 1\n```\n"
    spans = code_ranges(text)
    assert [(span.content, span.inline) for span in spans] == [("x y", True), ("z = 1\n", False)]
    assert text[spans[0].start : spans[0].end] == "`x y`"


@pytest.mark.parametrize(
    "text",
    ["[[" * 200_000, "[[m:" * 100_000, "`" * 200_000, "` `` " * 60_000, "[[m:a|" + "x" * 400_000],
    ids=["brackets", "openings", "one run", "many runs", "one long format"],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    start = time.perf_counter()
    parse_citations(text)
    assert time.perf_counter() - start < 5
