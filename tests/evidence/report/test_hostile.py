"""Hostile values never become markup, wherever they stand: cells, inputs, titles, SQL, passages, the source itself."""

from __future__ import annotations

import pytest

from learngraph_kernel.evidence.document import build_document
from learngraph_kernel.evidence.html import (
    Image,
    RunFacts,
    SealFacts,
    mimebundle_for_metrics,
    mimebundle_for_report,
    mimebundle_for_snapshot,
    render_report,
)
from learngraph_kernel.evidence.openings import metric_opening
from learngraph_kernel.evidence.values import InputRecord, MetricInput, Passage
from tests.evidence.report.html_checks import LAB_TAGS, Checked
from tests.evidence.report.report_samples import ListSnapshot, book, metric

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=https://evil.example></iframe>",
    "<object data=x></object>",
    "<embed src=x>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href=https://evil.example>",
    "<form action=https://evil.example><input name=a></form>",
    "<style>*{display:none}</style>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</details></summary></div><b>out</b>",
    "</td></tr></table><h1>out</h1>",
    "</pre></code><h1>out</h1>",
    '" onmouseover=alert(1) x="',
    "' onmouseover=alert(1) x='",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    "` onclick=alert(1) `",
    "<!-- comment -->",
    "<![CDATA[ x ]]>",
    "<?php echo 1 ?>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "&amp;lt;b&amp;gt;",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](java\tscript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x)",
    "[click](file:///etc/passwd)",
    "[click](//evil.example/x)",
    "![x](https://evil.example/track.png)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](data:text/html,<script>alert(1)</script>)",
    "<javascript:alert(1)>",
    "<https://evil.example>",
    "[x]: javascript:alert(1)\n\n[x]",
    "[a](https://ok.example 'x\" onmouseover=\"alert(1)')",
    "# heading\n\n- list\n\n| a | b |\n|---|---|\n| c | d |",
    "**bold** _em_ `code` ~~s~~",
    "```\nfence\n```",
    "[[m:flights]] [[v:Q1.r0.a]]",
    "]] [[m:flights",
    "\ue0000\ue001 \ue0020\ue003 forged \ue004",
    "%EE%80%800%EE%80%81",
    "[a](https://ok.example/\ue0000\ue001)",
    "\u202eevil\u202c \u2066x\u2069 \u061c",
    "zero\u200bwidth\ufeff",
    "\x00\x01\x1b[31m\x7f",
    "\ud800 lone surrogate",
    "a\r\nb\rc\u2028d",
    "{{ 7*7 }} ${7*7} #{7*7} <%= 7*7 %>",
    "expression(alert(1)); background:url(https://evil.example)",
    "'; drop table flights; --",
    "=cmd|'/c calc'!A1",
    "𝕱𝖚𝖑𝖑 👩‍👩‍👧 中文 עברית العربية",
    "x" * 1_000_000,
    "<" * 100_000,
]


def ids(payload: str) -> str:
    return repr(payload[:40])


@pytest.mark.parametrize("payload", PAYLOADS, ids=ids)
def test_a_hostile_value_never_becomes_markup(payload: str) -> None:
    run = book(
        run_id="r_x",
        inputs={"week": InputRecord("week", payload, payload)},
        snapshots={
            "Q1": ListSnapshot(
                "Q1", [("a", payload), (payload, "string")], [(payload, payload)], sql=payload, source=payload
            )
        },
        metrics={
            "flights": metric(
                "flights",
                "1",
                title={"en": payload},
                unit=payload,
                version=payload,
                expression=payload,
                substituted=payload,
                inputs=(MetricInput(payload, payload, ("Q1.r0.a", payload), payload),),
            ),
            "gone": metric("gone", None, reason=payload),
        },
        passages={"K1": Passage("K1", "said: words " + payload, payload, payload)},
        tables={payload: (payload,)},
    )
    source = "# Title [[i:week]]\n\n[[m:flights]] [[m:gone]] [[v:Q1.r0.a]] **[[v:Q1.r0.a]]** [[q:K1|words]]\n\n"
    source += "[[table:Q1]]\n"
    document = build_document(source, run)
    seal = SealFacts(key=payload, envelope=payload, sealed_at=payload)
    facts = RunFacts("r_x", payload, payload, payload, payload, payload, payload, {payload: payload})
    page = render_report(
        document, title=payload, run=facts, seal=seal, images=[Image(payload, payload, payload, payload)]
    )
    check(page, payload)
    bundle = mimebundle_for_report(document, run="r_x")
    check(bundle["text/html"], payload)
    openings = {name: metric_opening(result, run, "en") for name, result in run.metrics.items()}
    check(mimebundle_for_metrics(list(run.metrics.values()), openings)["text/html"], payload)
    reader = run.snapshots["Q1"]
    check(mimebundle_for_snapshot(reader.info, reader.rows(0, 1))["text/html"], payload)


@pytest.mark.parametrize("payload", PAYLOADS, ids=ids)
def test_a_hostile_source_never_becomes_active(payload: str) -> None:
    payload = payload[:400_000]
    document = build_document(f"Before [[m:flights]] {payload} after [[m:flights]]\n\n{payload}\n\n- {payload}", book())
    check(render_report(document, title=payload, run="r_x"), payload)
    check(mimebundle_for_report(document)["text/html"], payload)


def check(html: str, payload: str) -> None:
    parsed = Checked(html, LAB_TAGS if not html.startswith("<!DOCTYPE") else Checked.__init__.__defaults__[0])  # type: ignore[index]
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on")]
    for character in "\u202e\u2066\u200b\x00\x1b\ue000\ue001\ue002\ufeff\ud800":
        assert character not in html
    if len(payload) > 10_000:
        assert len(html) < 6_000_000


def test_a_value_cannot_add_a_link_or_a_heading() -> None:
    run = book(inputs={"week": InputRecord("week", "[x](https://evil.example)\n\n# big")})
    page = Checked(render_report(build_document("Week [[i:week]].", run), title="t", run="r_x"))
    assert "a" not in page.tags
    assert page.tags.count("h1") == 1  # the page's own
    assert "[x](https://evil.example)" in page.text


def test_links_keep_only_web_and_mail() -> None:
    source = "[a](https://ok.example/p?q=1) [b](mailto:x@ok.example) [c](ftp://no.example) [d](/relative) [e](#frag)"
    page = Checked(render_report(build_document(source, book()), title="t", run="r_x"))
    assert [value for _, name, value in page.attributes if name == "href"] == [
        "https://ok.example/p?q=1",
        "mailto:x@ok.example",
    ]
    assert all("noopener" in value for _, name, value in page.attributes if name == "rel")


def test_pictures_are_data_or_words() -> None:
    dot = "iVBORw0KGgo="
    source = f"![dot](data:image/png;base64,{dot}) ![far away](https://evil.example/x.png)"
    page = Checked(render_report(build_document(source, book()), title="t", run="r_x"))
    assert [value for _, name, value in page.attributes if name == "src"] == [f"data:image/png;base64,{dot}"]
    assert "[far away]" in page.text
