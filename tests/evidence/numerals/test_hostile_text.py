"""Time grows with the length of the text and nothing else, whatever the text is."""

from __future__ import annotations

import random
import time

import pytest

from learngraph_kernel.evidence.numerals import read_numerals

MEGABYTE = 1_000_000


def test_a_report_of_a_thousand_numbers_takes_well_under_a_second() -> None:
    sentences = [
        f"In week {week} flights fell {week % 9}.{week % 7} % to {1000 + week:,}, 约{week}万架 "
        f"and a mean delay of 12.{week % 10} minutes. "
        for week in range(1, 251)
    ]
    text = "".join(sentences)
    started = time.process_time()
    numerals = read_numerals(text)
    assert time.process_time() - started < 1.0  # 0.3 s on an idle machine; the bound leaves room for a busy one
    assert len(numerals) >= 1000


HOSTILE = {
    "ten megabytes of digits": "7" * (10 * MEGABYTE),
    "nested brackets": "[" * 10_000 + "]" * 10_000,
    "nested double brackets": "[[a" * 10_000,
    "back-ticks of growing length": " ".join("`" * length for length in range(1, 600)),
    "digits and commas": "1," * 20_000,
    "digits and dots": "1." * 20_000,
    "digits and hyphens": "1-" * 20_000,
    "colons": "1:" * 20_000,
    "thousands": "1" + ",234" * 100_000,
    "thousands of spaces": "1" + " 234" * 100_000,
    "numeral characters": "一" * 200_000,
    "growing scales": "万亿" * 100_000,
    "number words": "hundred and two " * 5_000,
    "open parentheses": "(" * 300_000 + "1",
    "a long line of words": "about " * 100_000 + "5",
    "at signs": "a@" * 10_000,
    "angle brackets": "<a" * 10_000,
    "hex": "deadbeef0" * 50_000,
    "link openings": "](" * 100_000,
    "dotted hosts": "a." * 20_000,
    "percent signs": "5%" * 8_000,
    "ranges": "1–" * 8_000,
    "spaces": " " * MEGABYTE + "5",
    "zeros after a point": "0." + "0" * MEGABYTE,
    "digits and slashes": "1/" * 8_000,
    "superscripts": "1×10" + "⁹" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    text = HOSTILE[name]
    started = time.process_time()
    read_numerals(text)
    assert time.process_time() - started < 6.0


def test_random_text_never_breaks_the_reader() -> None:
    alphabet = [
        *list("0123456789 .,%()[]$-–~+/:`#\n一二三十百千万亿两半成折倍年月日点分之个第多余约近aAmMkx"),
        "one ",
        "half ",
        "to ",
        "Q3",
        "fell ",
    ]
    source = random.Random(7)
    for _ in range(3000):
        text = "".join(source.choice(alphabet) for _ in range(source.randint(1, 40)))
        end = 0
        for numeral in read_numerals(text, language=source.choice(["en", "zh", "de", None])):
            assert numeral.start >= end, text
            assert text[numeral.start : numeral.end] == numeral.text, text
            if numeral.conclusion:
                assert numeral.value is not None, text
                assert numeral.low is not None, text
                assert numeral.high is not None, text
                assert numeral.low <= numeral.high, text
            end = numeral.end
