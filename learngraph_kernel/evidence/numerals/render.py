# ruff: noqa: E501 - tables of words
"""Writing a value in every form the reader reads: for display conversion and for the property tests.

Each form is exact: a value that the form cannot hold without rounding (2.5 % in 成, −3 in English words) is refused, so that what is shown always reads back as the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from learngraph_kernel.errors import BadInput

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ENGLISH_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_HAN = "零一二三四五六七八九"
_FULL_WIDTH = str.maketrans("0123456789.%-,", "０１２３４５６７８９．％－，")


class NotRenderable(BadInput):
    """The value has no exact writing in the form asked for."""

    code = "not_renderable"


def _plain(value: Decimal) -> str:
    return format(value, "f")


def _trimmed(value: Decimal) -> str:
    text = _plain(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(power: int, before: str = "", after: str = "") -> Callable[[Decimal], str]:
    def write(value: Decimal) -> str:
        sign = "-" if value < 0 else ""
        return f"{sign}{before}{_trimmed(abs(value).scaleb(-power))}{after}"

    return write


def _grouped(separator: str) -> Callable[[Decimal], str]:
    return lambda value: f"{value:,f}".replace(",", separator)


def _indian(value: Decimal) -> str:
    whole, point, places = _plain(abs(value)).partition(".")
    head, tail = whole[:-3], whole[-3:]
    parts = [tail]
    while head:
        parts.insert(0, head[-2:])
        head = head[:-2]
    return ("-" if value < 0 else "") + ",".join(parts) + point + places


def _scientific(mark: str) -> Callable[[Decimal], str]:
    def write(value: Decimal) -> str:
        if value == 0:
            raise NotRenderable("zero has no scientific form")
        exponent = value.adjusted()
        return f"{_trimmed(value.scaleb(-exponent))}{mark}{exponent}"

    return write


def _accounting(value: Decimal) -> str:
    return f"({abs(value):,.2f})" if value < 0 else f"{value:,.2f}"


def _english(value: Decimal) -> str:
    if value != value.to_integral_value() or not 0 <= value < 10**15:
        raise NotRenderable(f"{value} is not written in English words here", remedy="use a whole number below 10^15")
    number = int(value)
    if number == 0:
        return "zero"
    parts = []
    for scale, name in _ENGLISH_SCALES:
        if number >= scale:
            parts.append(f"{_below_thousand(number // scale)} {name}")
            number %= scale
    if number:
        parts.append(("and " if parts and number < 100 else "") + _below_thousand(number))
    return " ".join(parts)


def _below_thousand(number: int) -> str:
    if number >= 100:
        rest = number % 100
        return f"{_SMALL[number // 100]} hundred" + (f" and {_below_thousand(rest)}" if rest else "")
    if number < 20:
        return _SMALL[number]
    return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")


def _chinese(value: Decimal) -> str:
    if not 0 <= value < 10**16:
        raise NotRenderable(f"{value} is not written in Chinese characters here")
    whole = int(value)
    text = _chinese_whole(whole)
    places = _plain(value).partition(".")[2].rstrip("0")
    return text + ("点" + "".join(_HAN[int(digit)] for digit in places) if places else "")


def _chinese_whole(number: int) -> str:
    if number == 0:
        return "零"
    text, gap = "", False
    for scale, name in ((10**12, "万亿"), (10**8, "亿"), (10**4, "万"), (1, "")):
        section = number // scale % 10**4
        if name == "亿" and text and section == 0:
            continue
        if section == 0:
            gap = bool(text)
            continue
        if text and (gap or section < 1000):
            text += "零"
        if name == "亿" and text.endswith("万亿零"):
            text = text[:-2] + ("零" if section < 1000 else "")
        elif name == "亿" and text.endswith("万亿"):
            text = text[:-1]
        text, gap = text + _chinese_section(section) + name, False
    return text[1:] if text.startswith("一十") else text


def _chinese_section(section: int) -> str:
    text, gap = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = section // unit % 10
        if digit == 0:
            gap = bool(text)
            continue
        text += ("零" if gap else "") + _HAN[digit] + name
        gap = False
    return text


def _tenths(value: Decimal) -> str:
    tenths = value / 10
    if tenths != tenths.to_integral_value() or not 1 <= tenths <= 9:
        raise NotRenderable(f"{value} % is no whole number of 成", remedy="use the form '%'")
    return f"{_HAN[int(tenths)]}成"


def _han_percent(value: Decimal) -> str:
    if value < 0:
        raise NotRenderable(f"{value} % is not written with 百分之 here")
    return f"百分之{_chinese(value)}"


FORMS: dict[str, Callable[[Decimal], str]] = {
    "plain": _plain,
    ",": _grouped(","),
    "space": _grouped("\u202f"),
    "apostrophe": _grouped("'"),
    "indian": _indian,
    "full-width": lambda value: _plain(value).translate(_FULL_WIDTH),
    "minus": lambda value: _plain(value).replace("-", "−"),
    "signed": lambda value: f"{value:+f}",
    "accounting": _accounting,
    "e": _scientific("e"),
    "×10^": _scientific("×10^"),
    "%": lambda value: f"{_plain(value)} %",
    "‰": lambda value: f"{_plain(value)} ‰",
    "pp": lambda value: f"{_plain(value)} pp",
    "bp": lambda value: f"{_plain(value)} bp",
    "x": lambda value: f"{_plain(value)}x",
    "k": _scaled(3, after="k"),
    "M": _scaled(6, after="M"),
    "bn": _scaled(9, after=" bn"),
    "T": _scaled(12, after="T"),
    "thousand": _scaled(3, after=" thousand"),
    "million": _scaled(6, after=" million"),
    "billion": _scaled(9, after=" billion"),
    "trillion": _scaled(12, after=" trillion"),
    "lakh": _scaled(5, after=" lakh"),
    "crore": _scaled(7, after=" crore"),
    "万": _scaled(4, after="万"),
    "百万": _scaled(6, after="百万"),
    "千万": _scaled(7, after="千万"),
    "亿": _scaled(8, after="亿"),
    "万亿": _scaled(12, after="万亿"),
    "USD": _scaled(0, before="$"),
    "CNY": _scaled(0, after="元"),
    "万元": _scaled(4, after="万元"),
    "亿元": _scaled(8, after="亿元"),
    "words": _english,
    "汉字": _chinese,
    "成": _tenths,
    "百分之": _han_percent,
}
"""Every form by name. `%`, `‰`, `pp`, `bp`, `x`, 成 and 百分之 take the value in their own unit (8.1, not 0.081)."""

_LOCAL = {
    ("%", "zh"): lambda value: f"{_plain(value)}%",
    ("pp", "zh"): lambda value: f"{_plain(value)}个百分点",
    ("bp", "zh"): lambda value: f"{_plain(value)}个基点",
    ("x", "zh"): lambda value: f"{_plain(value)}倍",
    ("words", "zh"): _chinese,
}


def render(value: Decimal, form: str, language: str = "en") -> str:
    """A value written in a form.

    Args:
        value: exact.
        form: a name of `FORMS`.
        language: `en` or `zh`; changes the wording of `%`, `pp`, `bp`, `x` and `words`.

    Raises:
        NotRenderable: unknown form, or the value has no exact writing in it.
    """
    writer = _LOCAL.get((form, language)) or FORMS.get(form)
    if writer is None:
        raise NotRenderable(f"no form {form!r}", remedy=f"one of: {', '.join(FORMS)}")
    if not value.is_finite():
        raise NotRenderable(f"{value} is not a number that can be written")
    return writer(value)
