"""Units and scales, as cells, headers and captions state them.

One table of canonical units (`canonical`), used for both sides of a comparison, and one reader (`declared`) for what a
label says about the cells it stands over: "Revenue (USD m)", "单位：万元", "on-time rate", "in thousands, except per
share". Labels are terse, so the reader looks for a few strong signs and stays silent otherwise: a unit it does not know
is no unit.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

FRACTION = "fraction"
"""A rate written as a fraction of one: 0.081 under "late rate" means 8.1 %."""

CURRENCIES: dict[str, str] = {
    "us$": "USD", "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "美元": "USD", "美金": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "欧元": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "英镑": "GBP",
    "¥": "CNY", "cny": "CNY", "rmb": "CNY", "cn¥": "CNY", "yuan": "CNY", "元": "CNY", "人民币": "CNY", "块": "CNY",
    "jpy": "JPY", "yen": "JPY", "jp¥": "JPY", "日元": "JPY",
    "hkd": "HKD", "hk$": "HKD", "港元": "HKD", "港币": "HKD",
    "chf": "CHF", "aud": "AUD", "a$": "AUD", "cad": "CAD", "c$": "CAD", "inr": "INR", "₹": "INR", "krw": "KRW",
    "₩": "KRW", "韩元": "KRW", "sgd": "SGD", "s$": "SGD", "twd": "TWD", "nt$": "TWD", "rub": "RUB", "₽": "RUB",
    "卢布": "RUB", "brl": "BRL", "r$": "BRL", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "pln": "PLN", "mxn": "MXN",
}  # fmt: skip
MONEY = frozenset(CURRENCIES.values())

_PROPORTIONS: dict[str, str] = {
    "%": "%", "percent": "%", "per cent": "%", "pct": "%", "percentage": "%", "百分比": "%",
    "‰": "‰", "per mille": "‰", "permille": "‰",
    "bp": "bp", "bps": "bp", "basis point": "bp", "basis points": "bp", "基点": "bp", "个基点": "bp",
    "pp": "pp", "ppt": "pp", "ppts": "pp", "pps": "pp", "p.p.": "pp", "percentage point": "pp",
    "percentage points": "pp", "百分点": "pp", "个百分点": "pp",
    "x": "x", "×": "x", "times": "x", "倍": "x", "multiple": "x",
}  # fmt: skip

_MEASURES: dict[str, tuple[str, ...]] = {
    "second": ("s", "sec", "secs", "seconds", "秒"),
    "millisecond": ("ms", "milliseconds", "毫秒"),
    "minute": ("min", "mins", "minutes", "分钟"),
    "hour": ("h", "hr", "hrs", "hours", "小时", "个小时", "钟头"),
    "day": ("days", "天", "日"),
    "week": ("weeks", "周"),
    "month": ("months", "个月"),
    "year": ("years", "yr", "yrs", "岁"),
    "m": ("metre", "metres", "meter", "meters", "米"),
    "km": ("kilometre", "kilometres", "kilometer", "kilometers", "公里", "千米"),
    "cm": ("厘米",),
    "mm": ("毫米",),
    "mile": ("mi", "miles", "英里"),
    "ft": ("foot", "feet"),
    "kg": ("kilogram", "kilograms", "公斤", "千克"),
    "g": ("gram", "grams", "克"),
    "t": ("tonne", "tonnes", "ton", "tons", "吨"),
    "kwh": ("度",),
    "mwh": (), "gwh": (), "twh": (), "kw": (), "mw": (), "gw": (),
    "l": ("litre", "litres", "liter", "liters", "升"),
    "°c": ("℃", "摄氏度", "celsius"),
    "°f": ("℉", "fahrenheit"),
    "mph": (),
    "km/h": ("kmh", "kph"),
    "kb": (), "mb": (), "gb": (), "tb": (),
    "m²": ("m2", "sqm", "平方米"),
    "km²": ("km2", "平方公里"),
}  # fmt: skip
_COUNTERS = (
    "人|人次|名|位|件|个|只|条|次|家|班|班次|架|架次|台|辆|户|套|份|单|笔|张|本|间|场|票|株|头|箱|盒|瓶|辆次|航班"
)

_CANONICAL: dict[str, str] = {
    **CURRENCIES,
    **_PROPORTIONS,
    **{word: unit for unit, words in _MEASURES.items() for word in (unit, *words)},
}
MEASURES = frozenset(_MEASURES)
PROPORTIONS = frozenset({"%", "‰", "bp", "pp", "x", FRACTION})

SCALES: dict[str, Decimal] = {
    word: Decimal(10) ** power
    for power, words in {
        3: "k thousand thousands 千 '000 ’000 000s 000",
        4: "万 萬",
        5: "lakh lakhs 十万",
        6: "m mn mln mio mm million millions 百万",
        7: "crore crores 千万",
        8: "亿 億",
        9: "b bn billion billions mrd 十亿",
        10: "百亿",
        12: "t tn trn trillion trillions 万亿 兆",
    }.items()
    for word in words.split()
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What one label or caption says about the cells under it.

    Attributes:
        unit: canonical, or None when it says nothing.
        scale: factor for the cells, or None when it says nothing.
        rate: the words speak of a rate, share or ratio (`unit` may still be unknown).
        loose_percent: "percent" as a word, which people also write over fractions.
        count: the words speak of a number of things, which no currency of a caption applies to.
    """

    unit: str | None = None
    scale: Decimal | None = None
    rate: bool = False
    loose_percent: bool = False
    count: bool = False


def canonical(unit: str | None) -> str | None:
    """One name per unit: `minutes` and `分钟` → `minute`, `US$` → `USD`; an unknown word in singular, lower case."""
    if unit is None:
        return None
    key = unicodedata.normalize("NFKC", unit).strip().lower()
    found = _CANONICAL.get(key)
    if found is not None:
        return found
    if key.endswith("s") and not key.endswith("ss"):
        key = key[:-1]
    return _CANONICAL.get(key, key) or None


def known(unit: str) -> str | None:
    """The canonical unit if the word is one we know, else None (a counter such as 人 is known as itself)."""
    key = unit.strip().lower()
    if key in _CANONICAL:
        return _CANONICAL[key]
    return key if re.fullmatch(_COUNTERS, key) else None


_CODES = "|".join(sorted((re.escape(c) for c in CURRENCIES if c.isascii() and c.isalpha() and len(c) == 3), key=len))
_SYMBOL = r"(?:us|hk|nt|jp|cn|a|c|s|r)?[$€£¥₹₩₽]"
_MONEY_WORD = rf"(?:{_SYMBOL}|\b(?:{_CODES})(?![a-z])|\b(?:dollars?|euros?|pounds|yuan|yen)\b)"
_ZH_MONEY = r"(?:美元|美金|欧元|英镑|日元|港元|港币|韩元|卢布|人民币|元)"
_ZH_SCALE = r"(?:万亿|百亿|十亿|千万|百万|十万|亿|万|千)"

_SCALE_WORD = re.compile(
    r"\b(thousands?|millions?|billions?|trillions?|lakhs?|crores?|mln|mio|mrd|bn)\b|(?:^|[\s(])([’']000s?|000s)\b"
)
_SCALE_AFTER_MONEY = re.compile(rf"{_MONEY_WORD}\s?(k|m|mn|mm|b|bn|tn|trn|000)\b")
_SCALE_ALONE = re.compile(r"^(?:in\s+)?(k|mn|bn|mln|000|[’']000)s?$")
_ZH_SCALED = re.compile(rf"({_ZH_SCALE})(?={_ZH_MONEY}|人|件|个|吨|次|台|辆|户|股|张|份|家|$)")
_MONEY = re.compile(rf"{_MONEY_WORD}|{_ZH_MONEY}")
_PERCENT_WORD = re.compile(r"\b(?:percent|per cent|percentage|pct)\b|百分比")
_POINTS = re.compile(r"\b(?:percentage points?|pp|ppts?|p\.p\.)(?![a-z])|百分点")
_BASIS = re.compile(r"\b(?:bps?|basis points?)\b|基点")
_RATE = re.compile(
    r"\b(?:rates?|shares?|ratios?|proportion|fraction|probability|yoy|mom|qoq|wow|y/y|m/m)\b|占比|比例|比重|比率|份额|同比"
    r"|环比|增速|增幅|降幅|(?<!效)率"
)
_NOT_A_SHARE = re.compile(
    r"exchange rate|interest coverage|per share|share price|shares (?:outstanding|issued|sold)|汇率|每股|heart rate"
    r"|\brates? per\b"
)
_COUNT = re.compile(
    r"\b(?:number of|count|headcount|employees|staff|customers|users|flights|orders)\b"
    r"|人数|数量|员工|订单数|户数|客户数|家数"
)
_PIECE = re.compile(
    r"[(\[]([^()\[\]]*)[)\]]|单位\s*[::]\s*(\S+)|\bunits?\s*[:=]\s*(.+)$|,\s*([^,]+)$|\bin\s+([\w$€£¥%' ]+)$"
)


@lru_cache(maxsize=4096)
def declared(label: str, *, name: bool = False) -> Declared:
    """What a label, caption or table name states about unit and scale.

    Takes the label's text, and whether it first of all names something (a row's label, a table's name): then a short
    word is a name even if a unit is called so (GB, x). Returns a `Declared`; every field is at its default when the
    label states nothing.
    """
    text = re.sub(r"(?<=[^\W\d])_|_(?=[^\W\d])", " ", unicodedata.normalize("NFKC", label)).lower()
    if not text.strip():
        return Declared()
    pieces = [piece.strip() for match in _PIECE.finditer(text) for piece in match.groups() if piece]
    pieces += [part.strip() for piece in pieces for part in re.split(r"[,;/、]| per ", piece)]
    if name:
        pieces = [piece for piece in pieces if len(piece) > 2 or not piece.isascii() or f"({piece})" in text]
    elif 1 < len(text.strip()) <= 6 or not text.isascii():
        pieces.append(text.strip())
    unit, loose = _unit(text, pieces)
    rate = bool(_RATE.search(text)) and not _NOT_A_SHARE.search(text)
    scale = None if unit in PROPORTIONS else _scale(text, pieces)
    return Declared(unit, scale, rate or loose, loose, bool(_COUNT.search(text)) and unit not in MONEY)


def _unit(text: str, pieces: list[str]) -> tuple[str | None, bool]:
    if _POINTS.search(text):
        return "pp", False
    if _BASIS.search(text):
        return "bp", False
    if "‰" in text:
        return "‰", False
    if "%" in text:
        return "%", False
    if _PERCENT_WORD.search(text):
        return "%", True
    money = _MONEY.search(text)
    if money is not None:
        return canonical(money.group()), False
    for piece in pieces:
        bare = re.sub(rf"^(?:in\s+)?(?:{_ZH_SCALE})?", "", piece)
        bare = re.sub(r"^(?:thousands?|millions?|billions?|k|mn|bn)(?:\s+of)?\s+", "", bare).strip()
        found = known(bare) if bare else None
        if found is not None:
            return found, False
    trailing = re.search(r"\s(minutes?|mins?|hours?|hrs?|days?|seconds?|km|kg|miles?|tonnes?)$", " " + text)
    return (canonical(trailing.group(1)), False) if trailing else (None, False)


def _scale(text: str, pieces: list[str]) -> Decimal | None:
    if "per share" in text and "except" not in text:
        return Decimal(1)
    match = _SCALE_AFTER_MONEY.search(text) or _SCALE_WORD.search(text)
    if match is not None:
        word = next(group for group in match.groups() if group)
        return SCALES.get(word) or SCALES.get(word.rstrip("s"))
    for piece in pieces:
        alone = _SCALE_ALONE.match(piece)
        if alone is not None:
            return SCALES[alone.group(1)]
        zh = _ZH_SCALED.match(piece)
        if zh is not None:
            return SCALES[zh.group(1)]
    zh = re.search(rf"({_ZH_SCALE})(?={_ZH_MONEY})", text)
    return SCALES[zh.group(1)] if zh else None
