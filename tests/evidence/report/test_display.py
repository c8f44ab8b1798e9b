"""A value as text: units, scales, precision, languages, and what may not be shown."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from learngraph_kernel.evidence.citations import Format
from learngraph_kernel.evidence.display import Style, Unshowable, display, exact, safe_text
from learngraph_kernel.evidence.values import Value

PLAIN: list[tuple[Value, str]] = [
    (1234, "1,234"),
    (0, "0"),
    (-1234567, "-1,234,567"),
    (10**18, "1,000,000,000,000,000,000"),
    (0.1, "0.1"),
    (6.4213456789, "6.42135"),
    (1234567.891, "1,234,567.89"),
    (0.00001234, "0.00001234"),
    (Decimal("10.50"), "10.50"),
    (Decimal(1) / 3, "0.333333"),
    (Decimal("-0.0000"), "0.0000"),
    (Decimal("1E+3"), "1,000"),
    (1e300, "1.00000e300"),
    (float("nan"), "NaN"),
    (float("-inf"), "-∞"),
    (None, "—"),
    (True, "yes"),
    ("2013-W07", "2013-W07"),
    (dt.date(2013, 2, 11), "2013-02-11"),
    (dt.datetime(2013, 2, 11, 5, 17), "2013-02-11 05:17"),
    (dt.datetime(2013, 2, 11, 5, 17, 3), "2013-02-11 05:17:03"),
    (dt.time(5, 17), "05:17"),
    (dt.timedelta(hours=1, minutes=2), "1:02:00"),
    (b"\x00\xff", "0x00ff"),
]


@pytest.mark.parametrize(("value", "text"), PLAIN)
def test_values_without_a_format(value: Value, text: str) -> None:
    assert display(value) == text


SHAPED: list[tuple[str, str, str | None, int | None, Format, str]] = [
    # value, language, unit, precision, format → text
    ("82.16455", "en", "%", 1, Format(), "82.2 %"),
    ("82.16455", "zh", "%", 1, Format(), "82.2%"),
    ("82.16455", "en", "%", 1, Format(digits=3), "82.165 %"),
    ("0.8216", "en", None, None, Format(percent=True), "82.2 %"),
    ("0.8216", "zh", None, 4, Format(percent=True), "82.16%"),
    ("0.8216", "en", None, None, Format(percent=True, digits=0), "82 %"),
    ("0.8216", "en", None, None, Format(digits=1), "0.8"),
    ("1234.5", "en", "USD", 2, Format(), "$1,234.50"),
    ("-1234.5", "en", "USD", 2, Format(), "-$1,234.50"),
    ("1234.5", "zh", "USD", 2, Format(), "1,234.50美元"),
    ("1234.5", "en", "CNY", 2, Format(), "CN¥1,234.50"),
    ("1234.5", "zh", "CNY", 2, Format(), "1,234.50元"),
    ("1234.5", "zh", "元", 0, Format(), "1,235元"),
    ("1234.5", "en", "CHF", 2, Format(), "1,234.50 CHF"),
    ("1234000", "zh", "CNY", 2, Format(scale="万"), "123.4万元"),
    ("1234000", "zh", None, None, Format(scale="万"), "123.4万"),
    ("1234000", "en", "CNY", 2, Format(scale="万"), "123.4万元"),
    ("1234567890", "zh", None, None, Format(scale="亿"), "12.3亿"),
    ("123456789", "zh", None, None, Format(scale="亿"), "1.23亿"),
    ("100000000", "zh", None, None, Format(scale="亿"), "1亿"),
    ("12345", "zh", None, None, Format(scale="亿"), "0.000123亿"),
    ("1234567", "en", "USD", 2, Format(scale="M"), "$1.23M"),
    ("1234567", "en", "USD", 2, Format(scale="M", digits=3), "$1.235M"),
    ("12345", "en", "flights", 0, Format(scale="k"), "12.3k"),
    ("5e12", "en", None, None, Format(scale="T"), "5T"),
    ("5000000000", "en", None, None, Format(scale="bn"), "5bn"),
    ("120000000", "zh", None, None, Format(scale="千万"), "12千万"),
    ("1903", "en", "flights", 0, Format(), "1,903"),
    ("2.5", "en", "pp", 1, Format(), "2.5 pp"),
    ("2.5", "zh", "pp", 1, Format(), "2.5个百分点"),
    ("25", "zh", "bp", 0, Format(), "25个基点"),
    ("3.2", "en", "x", 1, Format(), "3.2x"),
    ("3.2", "zh", "倍", 1, Format(), "3.2倍"),
    ("2.675", "en", None, 2, Format(), "2.68"),  # half up, on the exact decimal
    ("-0.04", "en", "%", 1, Format(), "0.0 %"),
]


@pytest.mark.parametrize(("value", "language", "unit", "precision", "shape", "text"), SHAPED)
def test_units_scales_and_precision(
    value: str, language: str, unit: str | None, precision: int | None, shape: Format, text: str
) -> None:
    assert display(Decimal(value), Style(language, unit, precision), shape) == text


@pytest.mark.parametrize(
    ("value", "unit", "shape"),
    [
        ("2013-W07", None, Format(scale="万")),
        (dt.date(2013, 2, 11), None, Format(digits=1)),
        (Decimal(5), "USD", Format(percent=True)),
        (Decimal(5), "%", Format(scale="M")),
    ],
)
def test_a_format_that_does_not_fit_is_refused(value: Value, unit: str | None, shape: Format) -> None:
    with pytest.raises(Unshowable):
        display(value, Style("en", unit), shape)


def test_the_exact_value_keeps_every_digit() -> None:
    assert exact(Decimal("82.164550248481501932")) == "82.164550248481501932"
    assert exact(0.1) == "0.1"


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200b", "\x00", "\x1b", "\ue000", "\u061c", "\ufeff"])
def test_unseen_characters_become_visible(character: str) -> None:
    assert safe_text(f"a{character}b") == f"a⟨U+{ord(character):04X}⟩b"


def test_long_text_is_cut() -> None:
    assert len(display("x" * 1_000_000)) <= 300
