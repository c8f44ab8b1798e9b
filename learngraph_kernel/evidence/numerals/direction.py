# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Which way a number goes, said by a word that belongs to that very number.

The search never leaves the clause and never crosses another number. Without `by`, the verb must stand next to the
number, adverbs apart (`fell sharply 8.1 %`); with `by`, the nearest verb of the clause counts (`cut delays at JFK by 8.1 %`);
with `of`, the nearest noun (`a drop in flights of 8.1 %`). After `to`, 至, 到 stands a level, which has no direction.
"""

from __future__ import annotations

import re

from learngraph_kernel.evidence.numerals.numeral import Direction
from learngraph_kernel.evidence.numerals.reading import Reading

_UP_VERBS = (
    "rose rise rises risen rising grew grow grows grown growing increased increase increases increasing up gained gain gains gaining climbed climb climbs climbing "
    "jumped jump jumps jumping surged surge surges surging soared soar soars soaring advanced advances added adds adding expanded expand expands expanding rebounded recovered raised raise raises raising lifted lifts "
    "boosted boost boosts widened higher leapt spiked accelerated swelled rallied upped strengthened appreciated hiked"
).split()
_DOWN_VERBS = (
    "fell fall falls fallen falling dropped drop drops dropping declined decline declines declining decreased decrease decreases decreasing down lost lose loses losing shrank shrink shrinks shrunk shrinking slipped slip slips "
    "slipping slid slide slides sliding plunged plunge plunges tumbled sank dipped dips dip contracted contract contracts reduced reduce reduces reducing cut cuts cutting lowered lowers lowering narrowed shed sheds plummeted slumped retreated eased "
    "lower weakened trimmed slashed depreciated crashed collapsed halved diminished dwindled"
).split()
_UP_NOUNS = "increase increases rise rises gain gains growth jump jumps surge climb uptick upturn rebound expansion improvement hike boost spike advance cagr".split()
_DOWN_NOUNS = "decrease decreases decline declines drop drops fall falls reduction reductions loss losses dip dips slump plunge contraction cut cuts shrinkage slide downturn deficit setback slip".split()
_VERBS: dict[str, Direction] = {**dict.fromkeys(_UP_VERBS, "up"), **dict.fromkeys(_DOWN_VERBS, "down")}
_NOUNS: dict[str, Direction] = {**dict.fromkeys(_UP_NOUNS, "up"), **dict.fromkeys(_DOWN_NOUNS, "down")}
_AFTER: dict[str, Direction] = {
    **_NOUNS,
    "higher": "up",
    "more": "up",
    "above": "up",
    "lower": "down",
    "fewer": "down",
    "less": "down",
    "below": "down",
    "up": "up",
    "down": "down",
}
_BARE_AFTER = frozenset(
    "increase decrease decline growth reduction higher more above lower fewer less below up down gain drop".split()
)
_ADVERBS = frozenset(
    "year-on-year year-over-year yoy week-on-week week-over-week wow month-on-month month-over-month mom quarter-on-quarter qoq y/y q/q m/m w/w annual annually yearly weekly monthly quarterly further again "
    "even only just still another additional some by about around roughly approximately nearly almost over than more less an a the modest sharp slight steep sequential like-for-like organic net year on week month quarter over "
    "compound average mere whopping respective full up-to to-date in total estimated well as much many point points percentage daily steady large small big strong significant cumulative real nominal".split()
)
_COPULAS = frozenset("was is were are of at reached averaged hit came stood totalled rate being be".split())
_STOPS = frozenset(
    "to from in at on for during across since until within among with into versus vs between per".split()
)
_FOLLOWING = re.compile(
    r"(?:[ \n-]++(?:of )?(?:"
    + "|".join(sorted(map(re.escape, _ADVERBS - {"more", "less", "by", "than"}), key=len, reverse=True))
    + r")\b)*[ \n-]++([A-Za-z]+)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[.;:!?,，。；：！？\n()]")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z/'-]*")

_UP_HAN = "增长率 增长额 增长 上升 提高 增加 上涨 提升 攀升 上调 增幅 涨幅 升幅 增速 增量 上行 走高 扩大 反弹 回升 上浮 多出 高出 跃升 飙升 拉升 走强 新增 净增 激增 递增 大增 大涨 微涨 微增 猛增 暴涨 跳涨 升值 增收 多增 增 升 涨 提前".split()
_DOWN_HAN = "下降 减少 下滑 降低 下跌 回落 缩减 缩小 萎缩 收窄 下调 降幅 跌幅 减幅 亏损 流失 下行 走低 负增长 少增 暴跌 骤降 锐减 缩水 下浮 压缩 缩短 大降 大跌 微跌 微降 净减 递减 贬值 减亏 走弱 节约 节省 跌 降 减 缩".split()
_HAN: dict[str, Direction] = {**dict.fromkeys(_UP_HAN, "up"), **dict.fromkeys(_DOWN_HAN, "down")}
_HAN_WORDS = "|".join(sorted(_HAN, key=len, reverse=True))
_HAN_COMPARED: dict[str, Direction] = {"高": "up", "多": "up", "低": "down", "少": "down", "快": "up", "慢": "down"}
_HAN_LEVEL_NOUN = re.compile(r"(?:幅|率|速|额|幅度)$")
_HAN_PARTICLES = re.compile(
    r"(?:了|大约|约|将近|接近|近|超过|超|逾|高达|达到|达|为|是|至少|至多|最多|不足|不到|不超过|不低于|仅|共|又|再|仍|已|幅度|比例|平均|累计|分别|合计|各|整整|\s|:)+$"
)
_HAN_VERB = re.compile(f"({_HAN_WORDS})$")
_HAN_OBJECT = re.compile(f"({_HAN_WORDS})(?:了)?([\u4e00-\u9fff]{{1,6}})$")
_HAN_OBJECT_STOP = re.compile(r"[的在从由于占有是至到为达和与中后时个超近比以上下而但破]|其|共")
_HAN_AFTER = re.compile(f"(?:左右|以上|以下)?的?(?:同比|环比|年均|年|周|月)?的?({_HAN_WORDS})")
_INHERIT_SAME = re.compile(
    r"\s?(?:\(|,?\s?or\s|,?\s?i\.e\.,?\s|,?\s?equivalent to\s|[,，]?即|[,，]?折合)\s?(?:about |around |nearly |roughly |约|近)?$"
)
_INHERIT_LIST = re.compile(r"(?:、|和|及|与|,\s|,?\sand\s)(?:about |around |约)?$")


def find_direction(text: str, reading: Reading, floor: int, previous: Reading | None) -> Direction | None:
    """The direction that belongs to `reading`; `floor` is where the number before it (`previous`) ends."""
    left = text[max(floor, reading.start - 80) : reading.start]
    clause = _BREAK.split(left)[-1]
    right = text[reading.end : reading.end + 40]
    found = (
        _english_before(clause, reading)
        or _chinese_before(clause)
        or _english_after(right, clause, reading)
        or _chinese_after(right)
    )
    if found is not None or previous is None or previous.direction is None:
        return found
    gap = text[previous.end : reading.start]
    if _INHERIT_SAME.match(gap):
        relative = reading.kind in {"percent", "points", "multiple"} or previous.kind in {"percent", "points"}
        return previous.direction if relative and ("(" not in gap or reading.kind in {"percent", "points"}) else None
    if (
        _INHERIT_LIST.match(gap)
        and previous.unit == reading.unit
        and reading.unit is not None
        and not right.lstrip().startswith(("of ", "的"))
    ):
        return previous.direction
    return None


def _english_before(clause: str, reading: Reading) -> Direction | None:
    words = [word.lower().strip("-'") for word in _TOKEN.findall(clause)]
    if not words or re.search(r"[\u4e00-\u9fff]\s*$", clause):
        return None
    index = len(words) - 1
    particle = None
    while (
        index >= 0
        and (
            words[index] in _ADVERBS
            or words[index] in {"least", "most"}
            or words[index : index + 2] in (["at", "least"], ["at", "most"])
            or words[index] == "of"
            or words[index].endswith("ly")
        )
        and words[index] not in _VERBS
    ):
        if words[index] in {"by", "of"} and particle is None:
            particle = words[index]
        if words[index] == "up" and index + 1 < len(words) and words[index + 1] == "to":
            break
        index -= 1
    if particle == "by":
        return next(
            (_VERBS.get(word) or _NOUNS[word] for word in reversed(words) if word in _VERBS or word in _NOUNS), None
        )
    if particle == "of":
        candidates = words[max(0, index - 7) : index + 1]
        return next((_NOUNS[word] for word in reversed(candidates) if word in _NOUNS), None)
    if words[max(0, index - 1) : index + 1] in (
        ["stood", "at"],
        ["came", "at"],
        ["remained", "at"],
        ["averaged", "at"],
    ):
        index -= 1
    if index < 0 or words[index] in _STOPS:
        return None
    if words[index] in _VERBS:
        return _VERBS[words[index]]
    if words[index] in _COPULAS:
        while index >= 0 and words[index] in _COPULAS | _ADVERBS:
            index -= 1
        return _NOUNS.get(words[index]) if index >= 0 else None
    if words[index] in _NOUNS:
        return _NOUNS[words[index]]
    return _object_between(words, index, reading)


def _object_between(words: list[str], index: int, reading: Reading) -> Direction | None:
    """`lifted revenue 8 %`, `boosted sales to date 3 %`: one or two plain words between a verb that takes an object and a share."""
    if reading.kind not in {"percent", "points"}:
        return None
    for back in (index - 1, index - 2):
        between = words[back + 1 : index + 1]
        if back >= 0 and words[back] in {
            "boosted",
            "lifted",
            "raised",
            "cut",
            "reduced",
            "increased",
            "lowered",
            "trimmed",
            "slashed",
        }:
            return _VERBS[words[back]] if not _STOPS & set(between) else None
    return None


def _english_after(right: str, clause: str, reading: Reading) -> Direction | None:
    segment = _BREAK.split(right)[0]
    match = _FOLLOWING.match(segment)
    if match is None:
        return None
    word = match.group(1).lower()
    if word not in _AFTER:
        return None
    following = segment[match.end() :]
    if word in {"up", "down"} and re.match(r"\s(?:from|to|the)\b|\s\w+ing\b", following):
        return None
    if word in {"more", "above", "higher", "less", "below", "lower"} and re.search(
        r"\bor\s*$", segment[: match.start(1)]
    ):
        return None
    relative = reading.kind in {"percent", "points", "multiple", "money"}
    article = re.search(r"\b(?:an?|the|this|that|another)\s$", clause, re.IGNORECASE) is not None
    if word in _BARE_AFTER and (relative or word in {"more", "fewer", "higher", "lower", "less"} or article):
        return _AFTER[word]
    return _AFTER[word] if article and relative else None


def _chinese_before(clause: str) -> Direction | None:
    if not re.search(r"[\u4e00-\u9fff:]\s*$", clause):
        return None
    tail = clause[-24:]
    particles = _HAN_PARTICLES.search(tail)
    glue = particles.group() if particles else ""
    stem = tail[: len(tail) - len(glue)] if glue else tail
    if stem.endswith(("至", "到", "自", "从", "由")):
        return None
    if match := _HAN_VERB.search(stem):
        word = match.group(1)
        if ("为" in glue or "是" in glue or "达" in glue) and not (
            _HAN_LEVEL_NOUN.search(word) or "幅度" in glue or word in {"亏损", "增长", "负增长", "增量"}
        ):
            return None
        if word == "提前" or (len(word) == 1 and stem[: match.start()].endswith(("需", "免", "加"))):
            return None
        return _HAN[word]
    if stem and stem[-1] in _HAN_COMPARED and re.search(r"[比较]", stem):
        return _HAN_COMPARED[stem[-1]]
    if (
        (match := _HAN_OBJECT.search(stem))
        and not _HAN_OBJECT_STOP.search(match.group(2))
        and not glue.strip("约近超逾了 ")
    ):
        return _HAN[match.group(1)]
    return None


def _chinese_after(right: str) -> Direction | None:
    match = _HAN_AFTER.match(right)
    if match is None or "的" not in match.group():
        return None
    return _HAN[match.group(1)] if len(match.group(1)) > 1 else None
