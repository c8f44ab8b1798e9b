"""What labels and captions state about unit and scale."""

from __future__ import annotations

import pytest

from learngraph_kernel.evidence.audit.units import canonical, declared

LABELS: list[tuple[str, str | None, int | None]] = [
    ("Revenue (USD m)", "USD", 6),
    ("Revenue ($m)", "USD", 6),
    ("USD millions", "USD", 6),
    ("in millions", None, 6),
    ("Revenue, in thousands of dollars", "USD", 3),
    ("US$", "USD", None),
    ("$000", "USD", 3),
    ("Sales ('000)", None, 3),
    ("€bn", "EUR", 9),
    ("Passengers (millions)", None, 6),
    ("单位：万元", "CNY", 4),
    ("单位:亿元", "CNY", 8),
    ("销售额（万元）", "CNY", 4),
    ("人数（万人）", "人", 4),
    ("(千)", None, 3),
    ("百万美元", "USD", 6),
    ("yield (bps)", "bp", None),
    ("change (pp)", "pp", None),
    ("%", "%", None),
    ("增速（%）", "%", None),
    ("mean_delay (min)", "minute", None),
    ("mean delay minutes", "minute", None),
    ("Height (m)", "m", None),
    ("sales_usd", "USD", None),
    ("EPS ($ per share)", "USD", 0),
    ("flights", None, None),
    ("Tram line (m3)", None, None),
    ("JFK", None, None),
    ("", None, None),
]


@pytest.mark.parametrize(("label", "unit", "power"), LABELS)
def test_a_label_states_its_unit_and_scale(label: str, unit: str | None, power: int | None) -> None:
    said = declared(label)
    assert (said.unit, said.scale) == (unit, None if power is None else 10**power)


@pytest.mark.parametrize(
    "label", ["on-time rate", "late share", "准点率", "同比", "pct_late", "市场份额", "load ratio"]
)
def test_a_rate_is_known_by_its_words(label: str) -> None:
    assert declared(label).rate


@pytest.mark.parametrize("label", ["Exchange rate", "earnings per share", "每股收益", "efficiency", "效率高的门店"])
def test_not_everything_with_such_a_word_is_a_rate(label: str) -> None:
    assert not declared(label).rate


@pytest.mark.parametrize(
    ("word", "unit"),
    [
        ("minutes", "minute"),
        ("min", "minute"),
        ("分钟", "minute"),
        ("US$", "USD"),
        ("元", "CNY"),
        ("flights", "flight"),
    ],
)
def test_units_have_one_name(word: str, unit: str) -> None:
    assert canonical(word) == unit
