# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Tables of scales, currencies and units, and reading what follows a number.

`measured` says whether an integer with this unit is a rounding (`12 minutes`, `8 %`, `$5`) or a count (`3 flights`).
Canonical forms: `%`, `‰`, `bp`, `pp`, `x`, ISO 4217 for money, the English singular, the Chinese word as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from learngraph_kernel.evidence.numerals.reading import Kind

_K, _M, _B, _T = (Decimal(10) ** power for power in (3, 6, 9, 12))
SCALE_WORDS = {
    "hundred": Decimal(100), "thousand": _K, "million": _M, "billion": _B, "trillion": _T, "lakh": Decimal(10) ** 5,
    "lakhs": Decimal(10) ** 5, "crore": Decimal(10) ** 7, "crores": Decimal(10) ** 7, "dozen": Decimal(12), "mn": _M, "mln": _M,
    "mio": _M, "bn": _B, "bln": _B, "mrd": _B, "trn": _T, "tn": _T, "cr": Decimal(10) ** 7,
}  # fmt: skip
SCALE_LETTERS = {"k": _K, "K": _K, "m": _M, "M": _M, "mm": _M, "MM": _M, "b": _B, "B": _B, "T": _T}

SYMBOLS = {
    "US$": "USD", "HK$": "HKD", "NT$": "TWD", "A$": "AUD", "C$": "CAD", "S$": "SGD", "R$": "BRL", "NZ$": "NZD", "$": "USD",
    "€": "EUR", "£": "GBP", "¥": "CNY", "₹": "INR", "₩": "KRW", "₽": "RUB", "฿": "THB", "₫": "VND", "₺": "TRY", "Rs": "INR",
    "Rs.": "INR",
}  # fmt: skip
CODES = {
    code: code
    for code in "USD EUR GBP JPY CNY CNH HKD TWD AUD CAD SGD CHF INR KRW RUB BRL NZD SEK NOK DKK MXN ZAR THB TRY".split()
} | {"RMB": "CNY", "CNH": "CNY"}
CURRENCY_WORDS = {
    "dollar": "USD", "dollars": "USD", "euro": "EUR", "euros": "EUR", "pound": "GBP", "pounds": "GBP", "sterling": "GBP",
    "yuan": "CNY", "renminbi": "CNY", "yen": "JPY", "rupee": "INR", "rupees": "INR", "francs": "CHF", "won": "KRW",
    "us dollars": "USD", "us dollar": "USD", "hong kong dollars": "HKD", "canadian dollars": "CAD", "australian dollars": "AUD",
    "swiss francs": "CHF", "pounds sterling": "GBP",
}  # fmt: skip
CHINESE_CURRENCY = {
    "元人民币": "CNY", "人民币": "CNY", "块钱": "CNY", "元": "CNY", "块": "CNY", "美元": "USD", "美金": "USD", "欧元": "EUR",
    "英镑": "GBP", "日元": "JPY", "日圆": "JPY", "港元": "HKD", "港币": "HKD", "韩元": "KRW", "卢布": "RUB", "卢比": "INR",
    "澳元": "AUD", "加元": "CAD", "瑞士法郎": "CHF", "新台币": "TWD", "新加坡元": "SGD",
}  # fmt: skip

_MEASURES = {
    "second": "seconds sec secs s", "minute": "minutes min mins", "hour": "hours hr hrs h", "day": "days", "week": "weeks wk wks",
    "fortnight": "fortnights", "month": "months", "quarter": "quarters", "year": "years yr yrs", "decade": "decades", "millisecond": "milliseconds ms",
    "km": "kilometre kilometres kilometer kilometers kms", "mile": "miles mi", "m": "metre metres meter meters", "cm": "centimetres centimeters",
    "mm": "millimetres millimeters", "ft": "feet foot", "inch": "inches", "yard": "yards", "nm": "", "kg": "kilogram kilograms kilos kilo", "g": "gram grams",
    "mg": "milligrams", "t": "tonne tonnes ton tons", "lb": "lbs", "oz": "ounce ounces", "l": "litre litres liter liters", "ml": "millilitres",
    "gallon": "gallons", "barrel": "barrels bbl", "hectare": "hectares ha", "acre": "acres", "degree": "degrees", "mph": "", "kph": "",
    "point": "points pt pts", "business day": "", "working day": "", "trading day": "", "cent": "cents", "knot": "knots", "calorie": "calories kcal", "volt": "volts",
}  # fmt: skip
_EXACT_SYMBOLS = {
    symbol: symbol
    for symbol in "kW MW GW TW kWh MWh GWh TWh KB kB MB GB TB PB Hz kHz MHz GHz °C °F ℃ dB km² m² km2 m2 m³ km/h m/s mg/L µg kPa Pa hPa kt Mt Gt sqm TEU".split()
} | {"℃": "°C", "km2": "km²", "m2": "m²"}
_COUNTS = (
    "flight passenger airport route order customer user person employee airline carrier cancellation delay departure arrival row "
    "seat store ticket item product unit share case visit session deal country company student home car vehicle job vote "
    "member worker subscriber account transaction plane aircraft train ship bus driver patient hospital school bed "
    "death infection dose project contract client supplier shop branch site hotel room house city town state province region district "
    "village farm factory plant machine device phone server request error bug test sample record entry column table file page word "
    "document report article book song film movie game player team match goal win loss game event meeting call message email click view "
    "download install lead complaint incident accident injury crew pilot shipment parcel package container box bottle piece copy set pair "
    "group family household child woman man adult resident visitor tourist guest night stop leg hub gate runway connection slot "
    "respondent participant director shareholder investor fund loan policy claim patent licence license outlet location dealer "
    "partner merchant rider trip ride booking reservation purchase refund return sku"
).split()
_IRREGULAR = {
    "people": "person", "countries": "country", "companies": "company", "cities": "city", "deliveries": "delivery", "buses": "bus", "boxes": "box", "children": "child", "women": "woman",
    "men": "man", "losses": "loss", "matches": "match", "branches": "branch", "entries": "entry", "copies": "copy", "families": "family",
    "injuries": "injury", "factories": "factory", "policies": "policy", "fortnights": "fortnight", "staff": "person", "crews": "crew", "crew": "crew",
}  # fmt: skip

MEASURE_WORDS = {form: canon for canon, forms in _MEASURES.items() for form in (canon, *forms.split())} | {
    f"{kind} days": f"{kind} day" for kind in ("business", "working", "trading")
}
COUNT_WORDS = {form: word for word in _COUNTS for form in (word, word + "s")} | _IRREGULAR
_SHARE_WORDS: dict[str, tuple[str, Kind]] = {
    "percent": ("%", "percent"), "per cent": ("%", "percent"), "pct": ("%", "percent"), "percentage point": ("pp", "points"),
    "percentage points": ("pp", "points"), "percent points": ("pp", "points"), "percentage-point": ("pp", "points"), "percentage-points": ("pp", "points"),
    "pct points": ("pp", "points"), "pp": ("pp", "points"), "ppt": ("pp", "points"), "ppts": ("pp", "points"),
    "pps": ("pp", "points"), "p.p.": ("pp", "points"), "bp": ("bp", "points"), "bps": ("bp", "points"), "basis point": ("bp", "points"),
    "basis points": ("bp", "points"), "basis-point": ("bp", "points"), "per mille": ("‰", "percent"), "permille": ("‰", "percent"), "per mil": ("‰", "percent"),
    "fold": ("x", "multiple"), "x": ("x", "multiple"), "times": ("x", "multiple"), "×": ("x", "multiple"),
}  # fmt: skip

_CHINESE_MEASURES = (
    "小时 分钟 秒钟 秒 毫秒 天 周 星期 季度 年 工作日 交易日 自然日 公里 千米 米 厘米 毫米 海里 平方米 平方公里 立方米 亩 公顷 吨 公斤 千克 克 斤 升 "
    "毫升 千瓦时 千瓦 兆瓦 度 摄氏度 元 点 分 桶 岁 世纪 标准煤 吨标准煤 小时 英里 人民币 光年 毛 角 吉瓦 里 平米 个月"
).split()
_CHINESE_COUNTS = (
    "架次 班次 人次 车次 航班 架 班 次 人 名 位 家 台 辆 只 条 件 份 张 单 笔 户 艘 列 趟 套 批 项 款 种 座 所 间 层 页 字 章 篇 本 部 支 股 手 箱 瓶 "
    "颗 株 头 匹 口 双 对 组 队 行 场 轮 票 倍 节 段 幅 块 片 棵 朵 把 盒 包 袋 例 起 宗 处 级 站 区 省 市 县 国 城 省份 城市 国家 门 员 期 届 步 道 根 面 枚 例 个"
).split()
CHINESE_UNITS = dict.fromkeys(_CHINESE_MEASURES, True) | dict.fromkeys(_CHINESE_COUNTS, False)
_GE = re.compile(r"个(百分点|基点|小时|工作日|交易日|自然日|季度|星期|月|多月|点|[Bb][Pp]|pct|PP|pp)")
_HAN_UNIT = re.compile(
    "|".join(
        sorted(map(re.escape, {*CHINESE_UNITS, *CHINESE_CURRENCY, "百分点", "基点", "pct"}), key=len, reverse=True)
    )
)
_CHENG = re.compile(r"成(?![为立功本员都交长绩果品型分套熟形效就])")
_ZHE = re.compile(r"折(?![叠旧合线腾磨射返])")
_WORD = re.compile(r"([ \u2009\u202f-]?)((?:p\.p\.|[A-Za-z°℃µ×][A-Za-z²³°]*+(?:/[A-Za-z]++)?|km²|m²)2?)")
_SECOND = re.compile(r"[ -]([A-Za-z]++)(?: ([A-Za-z]++))?")
_SYMBOL_AFTER = re.compile(r" ?(%|‰|€|£|¥|₹|\$)")
_SYMBOLS_BEFORE = re.compile(
    "("
    + "|".join(
        sorted((re.escape(key) for key in {*SYMBOLS, *CODES, "人民币", "美元", "港元", "欧元"}), key=len, reverse=True)
    )
    + r")[ ]?$"
)


@dataclass(frozen=True, slots=True)
class Suffix:
    """What follows a number: where it ends, and the scale, unit and kind it gives."""

    end: int
    scale: Decimal | None = None
    unit: str | None = None
    kind: Kind = "number"
    measured: bool = False


def read_suffix(text: str, end: int, *, money: bool, integer: bool = True) -> Suffix:
    """Scale and unit after a number that ends at `end`.

    Takes a folded text; `money` says that a currency stands before the number (then `m` is a million, not metres).
    """
    scale = None
    found = _read_scale(text, end, money=money)
    if found is not None:
        scale, end = found
    unit = _read_unit(text, end, scaled=scale is not None)
    if unit is None:
        return Suffix(end, scale)
    return Suffix(unit.end, unit.scale if scale is None else scale, unit.unit, unit.kind, unit.measured)


def _read_scale(text: str, end: int, *, money: bool) -> tuple[Decimal, int] | None:
    match = _WORD.match(text, end)
    if match is None:
        return None
    gap, word = match.group(1), match.group(2)
    if (scale := SCALE_WORDS.get(word.lower())) is not None and text[match.end() : match.end() + 1] != "s":
        if word == "cr" and not money:
            return None
        return scale, match.end()
    if word in SCALE_LETTERS and not text[match.end() : match.end() + 1].isalnum():
        spaced = gap != ""
        if gap == "-" or (spaced and not (money or word == "M")) or (word == "mm" and not money):
            return None
        return SCALE_LETTERS[word], match.end()
    return None


def _read_unit(text: str, end: int, *, scaled: bool) -> Suffix | None:
    if symbol := _SYMBOL_AFTER.match(text, end):
        return _symbol(text, symbol)
    if han := _read_han_unit(text, end):
        return han
    match = _WORD.match(text, end)
    if match is None or (
        text[match.end() : match.end() + 1].isalnum() and text[match.end() : match.end() + 1].isascii()
    ):
        return None
    word = match.group(2)
    lower = word.lower()
    if second := _SECOND.match(text, match.end()):
        if second[2] and (two := f"{lower} {second[1].lower()} {second[2].lower()}") in CURRENCY_WORDS:
            return Suffix(second.end(2), unit=CURRENCY_WORDS[two], kind="money", measured=True)
        if known := _word_unit(f"{lower} {second[1].lower()}", second.end(1)):
            return known
    if (
        word == "pct"
        and match.group(1) == ""
        and re.match(r"[\u4e00-\u9fff，。；、)]", text[match.end() : match.end() + 1])
    ):
        return Suffix(
            match.end(), unit="pp", kind="points", measured=True
        )  # Chinese analysts' pct is a percentage point
    if word in _EXACT_SYMBOLS:
        return Suffix(match.end(), unit=_EXACT_SYMBOLS[word], measured=True)
    if word in CODES:
        return Suffix(match.end(), unit=CODES[word], kind="money", measured=True)
    if lower == "times" and re.match(
        r" (?:a|an|per|each|every|daily|weekly|in|during|between|on|out)\b", text[match.end() : match.end() + 9]
    ):
        return Suffix(match.end(), unit="time")
    if word in {"s", "h", "m", "g", "t", "l"} and match.group(1) == "-":
        return None
    if lower in {"x", "×"} and re.match(r" ?[0-9]", text[match.end() : match.end() + 2]):
        return None  # `3 x 4` is a size, not a multiple
    if word != lower and lower in COUNT_WORDS:
        return None  # `Python 3.11 Table 2`: a capital begins something else
    return _word_unit(lower, match.end())


def _word_unit(word: str, end: int) -> Suffix | None:
    if word in _SHARE_WORDS:
        unit, kind = _SHARE_WORDS[word]
        return Suffix(end, unit=unit, kind=kind, measured=True)
    if word in CURRENCY_WORDS:
        return Suffix(end, unit=CURRENCY_WORDS[word], kind="money", measured=True)
    if word in MEASURE_WORDS:
        return Suffix(end, unit=MEASURE_WORDS[word], measured=True)
    return Suffix(end, unit=COUNT_WORDS[word]) if word in COUNT_WORDS else None


def _symbol(text: str, match: re.Match[str]) -> Suffix | None:
    symbol = match.group(1)
    if symbol in "%‰":
        points = re.match(r"(?:-| )?(?:points?|pts?)\b|点", text[match.end() : match.end() + 8])
        if points and symbol == "%":
            return Suffix(match.end() + points.end(), unit="pp", kind="points", measured=True)
        return Suffix(match.end(), unit=symbol, kind="percent", measured=True)
    following = text[match.end() : match.end() + 2].strip()
    if following[:1].isdigit():
        return None
    return Suffix(match.end(), unit=SYMBOLS[symbol], kind="money", measured=True)


def _read_han_unit(text: str, end: int) -> Suffix | None:
    start = end + 1 if text[end : end + 1] == " " else end
    if start >= len(text) or not "\u4e00" <= text[start] <= "\u9fff":
        return None
    if ge := _GE.match(text, start):
        return _ge_unit(ge[1], ge.end())
    if match := _CHENG.match(text, start):
        return Suffix(match.end(), scale=Decimal(10), unit="%", kind="percent", measured=True)
    if match := _ZHE.match(text, start):
        return Suffix(match.end(), scale=Decimal(10), unit="%", kind="percent", measured=True)
    match = _HAN_UNIT.match(text, start)
    if match is None:
        return None
    word = match.group()
    if word in {"百分点", "基点"}:
        return Suffix(match.end(), unit="pp" if word == "百分点" else "bp", kind="points", measured=True)
    if word in CHINESE_CURRENCY:
        return Suffix(match.end(), unit=CHINESE_CURRENCY[word], kind="money", measured=True)
    if word == "倍":
        return Suffix(match.end(), unit="x", kind="multiple", measured=True)
    return Suffix(match.end(), unit=word, measured=CHINESE_UNITS[word])


def _ge_unit(word: str, end: int) -> Suffix:
    if word == "百分点":
        return Suffix(end, unit="pp", kind="points", measured=True)
    if word.isascii():
        return Suffix(end, unit="bp" if word.lower() == "bp" else "pp", kind="points", measured=True)
    if word in {"基点", "点"}:
        return Suffix(
            end, unit="bp" if word == "基点" else "点", kind="points" if word == "基点" else "number", measured=True
        )
    return Suffix(end, unit="个月" if word.endswith("月") else word, measured=True)


def currency_before(text: str, floor: int, end: int) -> tuple[str, int] | None:
    """(ISO code, offset where it starts) of a currency that ends at `end`, not looking before `floor`."""
    base = max(floor, end - 5)
    match = _SYMBOLS_BEFORE.search(text[base:end])
    if match is None:
        return None
    symbol, start = match.group(1), base + match.start()
    if (
        symbol[0].isalpha()
        and symbol[0].isascii()
        and start > 0
        and text[start - 1].isalpha()
        and text[start - 1].isascii()
    ):
        if not symbol.endswith("$"):
            return None
        symbol, start = "$", base + match.end(1) - 1
    return SYMBOLS.get(symbol) or CODES.get(symbol) or CHINESE_CURRENCY[symbol], start
