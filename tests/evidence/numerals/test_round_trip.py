"""What is written in any supported form reads back as the same value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from learngraph_kernel.evidence.numerals import NotRenderable, Numeral, read_numerals, render
from learngraph_kernel.evidence.numerals.render import FORMS

UNITS = {
    "%": "%",
    "‰": "‰",
    "pp": "pp",
    "bp": "bp",
    "x": "x",
    "USD": "USD",
    "CNY": "CNY",
    "万元": "CNY",
    "亿元": "CNY",
    "成": "%",
    "百分之": "%",
}
WHOLE = {"words", "汉字", "成", "百分之"}
SENTENCES = {"en": "The value is {} here.", "zh": "数值为{}，见上。"}

decimals = st.integers(-(10**12), 10**12).flatmap(
    lambda n: st.integers(0, 4).map(lambda places: Decimal(n).scaleb(-places))
)


def read_one(text: str) -> Numeral:
    numerals = [numeral for numeral in read_numerals(text) if numeral.conclusion]
    assert len(numerals) == 1, (text, numerals)
    return numerals[0]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", [form for form in FORMS if form not in WHOLE and form != "accounting"])
@settings(max_examples=25, deadline=None)
@given(value=decimals)
@example(value=Decimal("1234567.5"))
@example(value=Decimal("-0.5"))
@example(value=Decimal("10.000"))
def test_a_value_written_in_a_form_reads_back(form: str, language: str, value: Decimal) -> None:
    if form in {"e", "×10^"} and value == 0:
        return
    numeral = read_one(SENTENCES[language].format(render(value, form, language)))
    assert numeral.value == value
    assert numeral.low is not None
    assert numeral.high is not None
    assert numeral.low <= value <= numeral.high
    assert numeral.unit == UNITS.get(form)


@settings(max_examples=150, deadline=None)
@given(value=st.integers(0, 10**15 - 1))
@example(value=1_000_000_000_000)
@example(value=110)
@example(value=100_005)
def test_english_words_read_back(value: int) -> None:
    assert read_one(f"There are {render(Decimal(value), 'words')} rows.").value == value


@settings(max_examples=200, deadline=None)
@given(value=st.one_of(st.integers(0, 10**16 - 1), st.integers(0, 10**6)))
@example(value=100_000_005)
@example(value=10_0000_0000_0000)
@example(value=2_0500_0300)
@example(value=15)
@example(value=110)
def test_chinese_characters_read_back(value: int) -> None:
    assert read_one(f"数值为{render(Decimal(value), '汉字')}。").value == value


@given(value=st.integers(0, 99_999), places=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_chinese_percentages_read_back(value: int, places: int) -> None:
    share = Decimal(value).scaleb(-places)
    numeral = read_one(f"占比{render(share, '百分之')}。")
    assert (numeral.value, numeral.unit) == (share, "%")


@pytest.mark.parametrize("tenths", range(1, 10))
def test_tenths_read_back(tenths: int) -> None:
    numeral = read_one(f"占{render(Decimal(10 * tenths), '成')}。")
    assert (numeral.value, numeral.unit) == (Decimal(10 * tenths), "%")


@given(value=st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2)))
@settings(max_examples=100, deadline=None)
def test_accounting_parentheses_read_back(value: Decimal) -> None:
    assert read_one(f"Net income was {render(value, 'accounting')} in all.").value == value


@pytest.mark.parametrize(
    ("value", "form"), [("2.5", "成"), ("-3", "words"), ("1.5", "words"), ("1", "klingon"), ("NaN", "plain")]
)
def test_a_value_without_an_exact_writing_is_refused(value: str, form: str) -> None:
    with pytest.raises(NotRenderable):
        render(Decimal(value), form)
