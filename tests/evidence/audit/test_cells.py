"""A cell is wholly a number or it is text."""

from __future__ import annotations

from decimal import Decimal

import pytest

from learngraph_kernel.evidence.audit.cells import parse_cell

NUMBERS = [
    ("6,077", "6077", None),
    ("1 234", "1234", None),
    ("1\u00a0234.5", "1234.5", None),
    ("1,23,456", "123456", None),
    ("1'234", "1234", None),
    ("1.234,5", "1234.5", None),
    ("1.234.567", "1234567", None),
    ("12,5", "12.5", None),
    ("0.081", "0.081", None),
    (".5", "0.5", None),
    ("1e-3", "0.001", None),
    ("-8.1%", "-8.1", "%"),
    ("−8.1 %", "-8.1", "%"),
    ("+3", "3", None),
    ("(5.0)", "-5.0", None),
    ("(5.0%)", "-5.0", "%"),
    ("(5.0)%", "-5.0", "%"),
    ("１２３．５％", "123.5", "%"),
    ("$1.2m", "1200000", "USD"),
    ("-$5", "-5", "USD"),
    ("US$ 1.2bn", "1200000000", "USD"),
    ("€1,234.50", "1234.50", "EUR"),
    ("1.5亿", "150000000", None),
    ("1200万元", "12000000", "CNY"),
    ("¥99", "99", "CNY"),
    ("12 min", "12", "minute"),
    ("7天", "7", "day"),
    ("3x", "3", "x"),
    ("25bps", "25", "bp"),
    ("0.4 pp", "0.4", "pp"),
    ("0.4个百分点", "0.4", "pp"),
    ("5千人", "5000", "人"),
]
TEXTS = ["", "-", "--", "n/a", "…", "00123", "2024-01-05", "2013-W07", "12 Monkeys", "1.2.3", "5-6", "A320", "9:30"]
TEXTS += ["2024年", "3月", "Q1", "JFK", "1,2,3", "(5", "--5", "10% of all"]


@pytest.mark.parametrize(("text", "value", "unit"), NUMBERS)
def test_a_number_is_read_with_its_sign_scale_and_unit(text: str, value: str, unit: str | None) -> None:
    number = parse_cell(text)
    assert number is not None
    assert (number.value, number.unit) == (Decimal(value), unit)


@pytest.mark.parametrize("text", TEXTS)
def test_everything_else_is_text(text: str) -> None:
    assert parse_cell(text) is None


@pytest.mark.parametrize(("text", "step"), [("6,077", "1"), ("8.10", "0.01"), ("1.2m", "100000"), ("1e3", "1000")])
def test_the_step_is_the_worth_of_the_last_digit(text: str, step: str) -> None:
    number = parse_cell(text)
    assert number is not None
    assert number.step == Decimal(step)
