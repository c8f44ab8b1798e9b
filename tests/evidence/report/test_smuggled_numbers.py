"""Numbers that a reader of the report sees and the source does not spell: each must be found, and nothing else."""

from __future__ import annotations

import time

import pytest

from learngraph_kernel.evidence.document import build_document
from learngraph_kernel.evidence.values import InputRecord
from tests.evidence.report.report_samples import book


def blocking(source: str, language: str = "en") -> list[tuple[str, str]]:
    document = build_document(source, book(), language=language, formal=True)
    return [(violation.code, violation.text) for violation in document.violations if violation.blocking]


TYPED = [
    ("There were twen**ty** flights.", "twen**ty"),
    ("There were **twen**ty-one flights.", "twen**ty-one"),
    ("There were four[teen](https://example.org) flights.", "four"),
    ("There were for\u200dty flights.", "for\u200dty"),
    ("There were for\u00adty flights.", "for\u00adty"),
    ("There were f\u043erty flights.", "f\u043erty"),
    ("There were \U0001d41f\U0001d428\U0001d42b\U0001d42d\U0001d432 flights.", "\U0001d41f"),
    ("There were ⁴⁵ flights.", "⁴⁵"),
    ("There were ₄₅ flights.", "₄₅"),
    ("There were Ⅼ flights.", "Ⅼ"),
    ("Up ⅧⅧ percent.", "ⅧⅧ percent"),
    ("Up XLV percent.", "XLV percent"),
    ("There were XLV flights.", "XLV"),
    ("销量〤〥", "〤〥"),
    ("We sold ④ million.", "④ million"),
    ("Total ㊳ flights", "㊳ flights"),
    ("Sales were 4O %.", "4O %"),
    ("Sales were lOO %.", "lOO %"),
    ("There were [45] flights.", "45] flights"),
    ("45. flights were cancelled", "45."),
    ("(45) flights were cancelled", "45)"),
    ("No. 45 flights", "45 flights"),
    ("a ratio of 3:45", "3"),
    ("2013年销量2000", "2000"),
    ('[see](https://example.org "up 45 %")', "up 45 %"),
    ('![a](data:image/png;base64,aaaa "45 % up")', "45 % up"),
    ("`45 flights`", "`45 flights`"),
    ("`forty-five`", "`forty-five`"),
    ("sales `rose by 45 %`", "rose by 45 %"),
    ("`delays = 45`", "`delays = 45`"),
    ("`share: 0.084`", "0.084"),
    ("```\nSales rose 45 %\n```", "Sales rose 45 %"),
    ("```sql\n-- 45 % more flights\nselect 1\n```", "45 % more"),
]


@pytest.mark.parametrize(("source", "shown"), TYPED)
def test_a_number_that_only_the_reader_sees_is_typed(source: str, shown: str) -> None:
    found = blocking(source, "en" if source.isascii() else "zh")
    assert any(code == "bare_number" and shown[:20] in text for code, text in found), found


ALTERED = [
    "[[m:flights]] **million**",
    "[[m:flights]]*k*",
    "[[m:flights]]_k_",
    "[[m:flights]]\nmillion",
    "[[m:flights]]&nbsp;million",
    "[[m:flights]] (million)",
    "[[m:flights]] (in thousands)",
    "[[m:flights]]（万）",
    "[[m:flights]]\u200d000",
    "[[m:flights]]\u206000",
    "[[m:flights]][%](https://example.org)",
    "-**[[m:flights]]**",
    "**-**[[m:flights]]",
    "minus **[[m:flights]]**",
    "[[m:flights]][[m:flights]]",
    "[[m:flights]],[[m:flights]]",
    "[[m:flights]]**[[m:flights]]**",
]


@pytest.mark.parametrize("source", ALTERED)
def test_what_stands_beside_a_citation_is_judged_as_it_is_shown(source: str) -> None:
    assert "altered_number" in [code for code, _ in blocking(source)]


FINE = [
    "**[[m:flights]]** flights, *[[m:flights]]*, [[m:flights]]",
    "[[m:flights]]，[[m:flights]]",
    "[[m:flights]]–**[[m:flights]]**",
    "- [[m:flights]]\n- [[m:flights]]",
    "| a | b |\n|---|---|\n| [[m:flights]] | [[m:flights]] |",
    "[[m:flights]]\n\nmillions of thanks",
    "an area of [[m:flights]] km², CO₂, a word¹ and [1]",
    "① first; ② second",
    "第Ⅱ期，Ⅲ期临床",
    "Phase II, World War II, the XL size, CD players, oil",
    "1. a\n2. b\n3. c\n4. d\n\ntext\n\n5. e",
    "on time is `delay <= 15`, in `select count(*) from f limit 10`, see `v1.2` and `2013-W07`",
    "the formula `100 * late / n`",
    "```sql\nselect carrier, 1 as one\nwhere month = 2 and day between 11 and 17\nlimit 10 offset 5\n```",
    "```python\nfor i in range(10):\n    x = df.iloc[0:5] * 100\n```",
    '[a](https://example.org/2013/45 "the title")',
    "naïve café, Ελλάδα, Москва",
]


@pytest.mark.parametrize("source", FINE)
def test_ordinary_mark_up_and_code_state_nothing(source: str) -> None:
    assert blocking(source) == []


def test_an_input_whose_text_states_a_quantity_is_no_source() -> None:
    held = book()
    held.inputs["claim"] = InputRecord("claim", "sales rose 45 %")
    held.inputs["hall"] = InputRecord("hall", "Terminal 5, 2013-W07")
    document = build_document("[[i:claim]] in [[i:hall]]", held, formal=True)
    assert [(item.code, item.text) for item in document.violations] == [("bare_number", "[[i:claim]]")]


def test_a_long_report_full_of_mark_up_is_read_quickly() -> None:
    source = "The **week** had *[[m:flights]]* flights，twen**ty** more.\n" * 1_000
    started = time.process_time()
    assert len(blocking(source)) == 1_000
    assert time.process_time() - started < 5
