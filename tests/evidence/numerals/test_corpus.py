"""The table-driven corpus: every case is one text and every number in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from learngraph_kernel.evidence.numerals import read_numerals

from .corpus_case import Case, disagreements, load

HERE = Path(__file__).parent
CASES = [case for path in sorted(HERE.glob("corpus_*.tsv")) for case in load(path)]


@pytest.mark.parametrize("case", CASES, ids=[case.place for case in CASES])
def test_the_case_reads_as_written_in_the_corpus(case: Case) -> None:
    numerals = read_numerals(case.text)
    assert disagreements(case.expected, numerals) == [], case.text


def test_numerals_come_in_order_do_not_overlap_and_quote_the_text() -> None:
    for case in CASES:
        end = 0
        for numeral in read_numerals(case.text):
            assert numeral.start >= end, case
            assert numeral.end > numeral.start, case
            assert case.text[numeral.start : numeral.end] == numeral.text, case
            end = numeral.end


def test_a_corpus_case_that_is_wrong_is_found() -> None:
    numerals = read_numerals("Flights fell 8.1 %.")
    for wrong in ("8.1 % up", "8.2 % down", "8.1 pp down", "8.1 % down 8..9", "8.1 % down ~about", "!date"):
        assert disagreements((wrong,), numerals), wrong
    assert disagreements((), numerals)


def test_the_corpus_is_large_and_balanced() -> None:
    english = [case for case in CASES if case.place.startswith("corpus_en")]
    chinese = [case for case in CASES if case.place.startswith("corpus_zh")]
    tables = english + chinese
    excluded = [case for case in tables if all(item.startswith("!") for item in case.expected)]
    assert len(CASES) >= 800
    assert min(len(english), len(chinese)) >= 280
    assert len(excluded) >= 0.4 * len(tables)
