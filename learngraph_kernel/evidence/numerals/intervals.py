# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""The interval a wording means, and ranges. The table itself is in the package's documentation (`__init__`)."""

from __future__ import annotations

import re
from decimal import Decimal

from learngraph_kernel.evidence.numerals.chinese import last_significant
from learngraph_kernel.evidence.numerals.reading import ZERO, Hedge, Reading

_HALF = Decimal("0.5")
_FIVE_PERCENT = Decimal("0.05")
_TEN_PERCENT = Decimal("0.1")
_FIFTH = Decimal("0.2")
_FRACTION_HALF_WIDTH = Decimal("0.005")
_MULTIPLE_SHARE = Decimal("0.025")

_ENGLISH_BEFORE: list[tuple[Hedge, str]] = [
    ("at_most", r"no more than|not more than|no greater than|at most|up to|at the most|as much as|as many as|not exceeding|no longer than|≤|<="),
    ("at_least", r"no less than|no fewer than|not less than|not fewer than|at least|as few as|as little as|upwards of|≥|>="),
    ("over", r"(?:just |slightly |well |a little |far )?(?:over|above)|(?<!no )(?<!not )(?<!less )(?<!fewer )more than|greater than|higher than|in excess of|exceeding|exceeds|exceeded|topped|topping|surpassed|surpassing|>"),
    ("under", r"(?:just |slightly |well |a little |far )?(?:under|below)|(?<!no )(?<!not )less than|(?<!no )(?<!not )fewer than|lower than|nearly|almost|close to|approaching|short of|shy of|<"),
    ("about", r"about|around|roughly|approximately|approx\.?|circa|ca\.|c\.|some|in the region of|in the order of|on the order of|an estimated|estimated|somewhere around|~|≈|∼|≃"),
]  # fmt: skip
_CHINESE_BEFORE: list[tuple[Hedge, str]] = [
    ("at_most", "最多|至多|不超过|不多于|不高于|不大于|上限为"),
    ("at_least", "至少|起码|最少|不少于|不低于|不小于|下限为"),
    ("under", "不足|不到|低于|小于|少于|不及|将近|接近|逼近|近|未达|未超过"),
    ("over", "(?<!不)(?<!未)超过|(?<!不)(?<!未)超|逾|(?<!不)高于|(?<!不)大于|(?<!不)多于|突破|越过"),
    ("about", "大约|约为|约|大概|近似|差不多|估计|左右"),
]
_BEFORE = re.compile(
    "|".join(f"(?P<{hedge}_e>(?<![A-Za-z])(?:{words}))" for hedge, words in _ENGLISH_BEFORE)
    + "|" + "|".join(f"(?P<{hedge}_c>{words})" for hedge, words in _CHINESE_BEFORE),
    re.IGNORECASE,
)  # fmt: skip
_GLUE = re.compile(r"\s?(?:(?<![A-Za-z])(?:a |an )|达到?|为|了)?\s?$")
_AFTER: list[tuple[Hedge, str]] = [
    ("at_least", r"\s?(?:\+(?![0-9])| or (?:more|higher|above|over|longer|better)\b| and (?:above|over|up)\b| at least\b|(?:及|或)?以上|之上)"),
    ("at_most", r"\s?(?: or (?:less|lower|fewer|below|under)\b| at most\b| at the most\b|(?:及|或)?以下|以内|之内|之下)"),
    ("about", r"\s?(?: or so\b|左右|上下|前后|许(?![可多])|-ish\b)"),
    ("over", r"\s?(?:有余|[多余](?![于数样种余]))"),
]  # fmt: skip
_AFTER_PATTERN = re.compile("|".join(f"(?P<{hedge}>{words})" for hedge, words in _AFTER), re.IGNORECASE)
_PERIOD_UNITS = frozenset("天 周 年 个月 月 季度 小时 日 星期 工作日 交易日".split())


def read_hedge(text: str, reading: Reading, floor: int) -> None:
    """Sets the hedge that stands before or after a reading; `floor` is where the number before it ends."""
    window = text[max(floor, reading.start - 28) : reading.start]
    if glue := _GLUE.search(window):
        window = window[: glue.start()]
    found = None
    for match in _BEFORE.finditer(window):
        if match.end() == len(window):
            found = match
    if found is not None and found.lastgroup is not None:
        if not (found.group() == "近" and reading.unit in _PERIOD_UNITS):
            reading.hedge = reading.hedge or _hedge(found.lastgroup[:-2])
    elif (after := _AFTER_PATTERN.match(text, reading.end)) and after.lastgroup is not None:
        reading.hedge = reading.hedge or _hedge(after.lastgroup)


def _hedge(name: str) -> Hedge:
    hedges: dict[str, Hedge] = {
        "about": "about",
        "over": "over",
        "under": "under",
        "at_least": "at_least",
        "at_most": "at_most",
    }
    return hedges[name]


def interval(reading: Reading) -> tuple[Decimal, Decimal]:
    """Least and greatest value that a reading (magnitude, without sign) admits."""
    value = reading.value
    if reading.bounds is not None:
        return reading.bounds
    rounding = _rounding(reading)
    if reading.hedge is None:
        return value - rounding, value + rounding
    significant = min(last_significant(value), _FIFTH * value) if value else rounding
    room = reading.room if reading.room is not None else max(significant, reading.place)
    if reading.form == "fraction" and reading.room is None:
        room = max(_FIVE_PERCENT * value, 2 * _FRACTION_HALF_WIDTH * 2)
    if reading.hedge == "over":
        return value, value + room
    if reading.hedge == "under":
        return max(value - room, ZERO), value
    if reading.hedge == "at_least":
        return value - rounding, value + room
    if reading.hedge == "at_most":
        return max(value - room, ZERO), value + rounding
    near = max(
        rounding,
        min(last_significant(value) * _HALF, _TEN_PERCENT * value),
        min(reading.place, _FIVE_PERCENT * value),
    )
    return value - near, value + near


def _rounding(reading: Reading) -> Decimal:
    """Half of the last place as written; nothing for a count in whole units."""
    if reading.form == "fraction":
        return _FRACTION_HALF_WIDTH * reading.scale
    if reading.form == "multiple":
        return reading.value * _MULTIPLE_SHARE
    if reading.place < 1 or reading.scaled or reading.measured:
        return reading.place * _HALF
    return ZERO


# Ranges -------------------------------------------------------------------------------------------------------------

_DASH = re.compile(r"^\s?(?:–|—|-|~|～|至|到)\s?(?:\$|¥|€|£)?$|^\s?--\s?$")
_TO = re.compile(r"^[\s-](?:to|up to)[\s-](?:US\$|\$|¥|€|£)?$", re.IGNORECASE)
_OR = re.compile(r"\sor\s$", re.IGNORECASE)
_AND = re.compile(r"\sand\s(?:US\$|\$|¥|€|£)?$|[和与]$", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:between|介于|在)\s?(?:US\$|\$|¥|€|£|约|about )?\s?$", re.IGNORECASE)
_FROM = re.compile(r"(?:\bfrom|[从由自])\s?(?:about |around |约|the )?\s?$", re.IGNORECASE)
_MOVES = re.compile(
    r"\b(?:r[io]se|risen|rising|f[ae]ll|fallen|falling|gr[eo]w|grown|growing|increas\w+|decreas\w+|declin\w+|dropp?\w*|mov\w+|went|gone|go|goes|improv\w+|worsen\w+|chang\w+|slid|slipp\w+|climb\w+|jump\w+|"
    r"up|down|cut|cuts|rais\w+|lower\w+|reduc\w+|narrow\w+|widen\w+|expand\w+|shr[aiu]nk\w*|surg\w+|soar\w+|plung\w+|tumbl\w+|doubl\w+|tripl\w+|trebl\w+|quadrupl\w+|halv\w+|swing\w*|revis\w+|lift\w+|swung|edg\w+|eas\w+|upgrad\w+|downgrad\w+|extend\w+|"
    r"rise|drop|increase|decline)\b|[升降增减涨跌提改变扩缩调]",
    re.IGNORECASE,
)

_BY = re.compile(
    r"\b(?:rose|fell|grew|climbed|gained|lost|(?:in|de)creased?|dropped|declined|up|down|(?:in|de)creas(?:e|ing)) by (?:\w+ )?$",
    re.IGNORECASE,
)


def joins_range(text: str, left: Reading, right: Reading) -> bool:
    """Whether two neighbouring readings are the ends of one range (`3–5 %`, `from 3 to 5`, `三至五成`)."""
    gap = text[left.end : right.start]
    if len(gap) > 9 or left.bounds or right.bounds or left.hedge or left.form == "multiple":
        return False
    if right.signed != left.signed and (right.signed or not left.unit):
        return False
    before = text[max(0, left.start - 60) : left.start]
    if left.unit is not None and right.unit is not None and left.unit != right.unit:
        return False
    if _AND.search(gap):
        return _BETWEEN.search(before) is not None
    if _OR.search(gap):
        return left.form == right.form == "words" and right.value == left.value + 1 and left.unit is None
    if _TO.search(gap):
        if _BY.search(before) and left.unit is None and right.value > 3 * left.value:
            return False  # "rose by 60 to 1,310": a change, and where it led
        if origin := _FROM.search(before):
            return _MOVES.search(_sentence(before[: origin.start()])) is None
        return (
            re.search(
                r"\b(?:rose|fell|grew|up|down|climbed|by|increased|decreased|dropped)\s(?:\w+\s)?$",
                before,
                re.IGNORECASE,
            )
            is None
            or left.unit is None
        )
    if _DASH.search(gap) and re.search(r"[至到]", gap) and (origin := _FROM.search(before)):
        return _MOVES.search(_sentence(before[: origin.start()])) is None
    return _DASH.search(gap) is not None


def _sentence(text: str) -> str:
    """The sentence so far; a comma does not end it (`tripled, from 151 to 467`)."""
    return re.split(r"[.;:。；！？\n]", text)[-1]


def merge_range(left: Reading, right: Reading) -> Reading | None:
    """The range of two ends; the first end takes scale and unit from the second where it has none. None if it descends."""
    low, high = left.value, right.value
    shares_scale = left.unit is None or left.kind == "money"
    if shares_scale and left.scale == 1 and right.scale != 1 and low * right.scale < high:
        low = low * right.scale  # `3–5 million`, but `500 to 1 million` stays as it is
    if low >= high:
        return None
    unit = right.unit if right.unit is not None else left.unit
    merged = Reading(left.start, right.end, (low + high) / 2, right.place, right.scaled, "digits", unit, "range")
    merged.bounds = (low, high)
    return merged


_OUT_OF = re.compile(r" (?:in|out of)(?: every)? $", re.IGNORECASE)


def merge_proportion(text: str, left: Reading, right: Reading) -> Reading | None:
    """`one in five`, `nine out of ten`, `1 in 5` as a fraction; None for two counts."""
    if (
        left.unit is not None
        or not 0 < left.value < right.value <= 1000
        or not _OUT_OF.fullmatch(text[left.end : right.start])
    ):
        return None
    small = left.form == right.form == "words" or (left.value == 1 and right.place == 1)
    if not small or right.kind != "number" or left.signed:
        return None
    end = right.end
    return Reading(left.start, end, left.value / right.value, Decimal("0.01"), False, "fraction", None, "fraction")
