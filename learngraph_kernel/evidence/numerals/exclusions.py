# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""What is a number and no conclusion: dates, times, versions, ordinals, list marks, identifiers, phones, idioms.

Rules are tried only where a number (or the word that announces one: `Table`, `Q3`, `Feb`, 第) begins, each anchored at that
place, so that the cost is a few tries a number whatever the text is. A rule that could swallow a quantity (`order 3
planes`, `in March 12 flights`) is guarded: it does not apply when a unit, scale or `%` follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from learngraph_kernel.evidence.numerals import idioms
from learngraph_kernel.evidence.numerals.chinese import HAN_RUN, starts_unit_word
from learngraph_kernel.evidence.numerals.reading import Excluded
from learngraph_kernel.evidence.numerals.units import CODES, read_suffix

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\.?)(?![A-Za-z])"
)
_YEAR = r"(?:19|20)[0-9]{2}(?![0-9])"
_CLOCK = r"[0-9]{1,2}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?(?!:?[0-9])"
_HAN = r"[零〇一二三四五六七八九十]"
_SEASONS = r"(?:spring|summer|autumn|fall|winter)"


@dataclass(frozen=True, slots=True)
class _Rule:
    reason: str
    pattern: re.Pattern[str]
    guarded: bool = False
    capital: bool = False
    bare: bool = False
    """The announcing word is no part of the number (`in 2013`)."""


def _rule(reason: str, pattern: str, *, guarded: bool = False, capital: bool = False, bare: bool = False) -> _Rule:
    return _Rule(reason, re.compile(pattern, re.IGNORECASE), guarded, capital, bare)


_INTEGER = r"[0-9]{1,12}(?![0-9]|[.,][0-9])"
_REFERENCE = r"[0-9]{1,4}(?:\.[0-9]{1,3}){0,4}[a-z]?(?![0-9A-Za-z])"
_LIST_TAIL = r"(?:(?: ?(?:,|–|-|—|&) ?|,? (?:and|to|or|through) )" + _REFERENCE + r"){0,8}"
_LABEL = r"\.? ?(?:#|no\.? ?|number |: ?)?"

_SECTIONS = "section sections sec table tables tab figure figures fig figs chart charts exhibit exhibits appendix annex chapter chapters page pages para paragraph equation eq footnote step steps article articles clause clauses item items slide slides".split()
_OBJECTS = (
    "flight order ticket invoice case room gate terminal runway row line column col level group class type model part no nos number id ids ref reference route "
    "phase stage tier version cell zone channel episode season volume vol issue pr port error code question option note rule act building floor track seat train bus highway "
    "task job run batch lot sku asset account card contract claim patent docket platform pier unit bay shelf ward district precinct bug"
).split()
_PRODUCTS = (
    "python java javascript node windows ios android macos ubuntu debian fedora postgres postgresql mysql duckdb sqlite excel office cuda http tls ssl usb wifi bluetooth jupyterlab jupyter gpt claude llama "
    "version ver v release rev revision numpy pandas rust go php ruby scala spark kafka redis django react vue angular html css ecmascript es chrome firefox safari opera iphone ipad galaxy pixel playstation xbox"
).split()
_STANDARDS = "iso iec ieee rfc din en ansi astm ifrs ias asc cve pep sha md utf soc boeing airbus embraer bombardier mcdonnell cessna tesla covid formula area apollo g form schedule level basel solvency mifid scope industry web ipv euro nasdaq ftse csi dax russell fortune nikkei stoxx cac p max".split()


def _word_rules() -> dict[str, list[_Rule]]:
    rules: dict[str, list[_Rule]] = {}

    def add(words: list[str], *new: _Rule) -> None:
        for word in words:
            rules.setdefault(word, []).extend(new)

    months = "january february march april may june july august september october november december jan feb mar apr jun jul aug sept sep oct nov dec".split()
    day = r"[0-9]{1,2}(?:st|nd|rd|th)?(?![0-9:]|[.,][0-9]|\s?%)"
    add(
        months,
        _rule("date", rf"\.?\s{day}(?:\s?[-–—]\s?(?:{_MONTH}\s)?{day})?,?\s{_YEAR}"),
        _rule("date", rf"\.?,?\s(?:of\s)?{_YEAR}(?:\s?[-–—]\s?{_MONTH}\s{_YEAR})?"),
        _rule("date", r"[ -]'?[0-9]{2}(?=['’])|-[0-9]{2}(?![0-9])|\s'[0-9]{2}(?![0-9])"),
        _rule("date", rf"\.?\s{day}(?:\s?(?:[-–—]|to|and)\s?(?:{_MONTH}\s)?{day})?(?!\s?(?:%|per))", guarded=True),
    )
    add(
        ["week", "weeks", "wk", "w"],
        _rule(
            "date",
            rf"(?:\s?(?:no\.?|#)?\s?|-)[0-9]{{1,2}}(?:\s?(?:[-–—]|to|and)\s?[0-9]{{1,2}})?(?![0-9.,]?[0-9])(?:,?\s(?:of\s)?{_YEAR}|/{_YEAR})?",
            guarded=True,
        ),
    )
    add(
        ["q", "h"],
        _rule(
            "date",
            rf"[1-4](?:\s?[-–—]\s?[QH]?[1-4])?(?![0-9A-Za-z]|\.[0-9])(?:[ /'’-]{{0,2}}(?:FY\s?)?(?:{_YEAR}|[0-9]{{2}}(?![0-9]))(?!\s?(?:%|flights)))?",
            capital=True,
        ),
    )
    add(
        ["fy", "cy", "fye", "ye"],
        _rule("date", r"[ '’]?(?:[0-9]{4}|[0-9]{2})(?:[/–-][0-9]{2,4})?(?:\s?[EFA])?(?![0-9A-Za-z])"),
    )
    add(
        ["quarter", "half", "year"],
        _rule("date", rf"\s[1-4](?![0-9.,%])(?:,?\s(?:of\s)?{_YEAR})?", guarded=True, capital=True),
    )
    add(
        ["quarter", "half", "financial", "fiscal"], _rule("date", rf"(?:\s(?:year|of))?\s{_YEAR}(?:[/–-][0-9]{{2,4}})?")
    )
    add(
        "in since until till before after during through throughout late early mid end pre post spring summer autumn winter year".split(),
        _rule(
            "date",
            rf"(?:[ -](?:the\s)?(?:(?:late|early|mid|{_SEASONS})[ -])?(?:of\s)?){_YEAR}s?(?:\s?(?:[-–—/]|to|and|or|until|through)\s?(?:{_YEAR}|[0-9]{{2}}(?![0-9])))?(?![0-9]|[.,][0-9]|\s?%)",
            bare=True,
        ),
    )
    add(["am", "pm", "noon", "at"], _rule("time", rf"\s{_CLOCK}(?:\s?[ap]\.?m\b\.?)?", bare=True))
    add(
        ["v", "ver", "version", "versions", "rev", "release", "build"],
        _rule(
            "version",
            r"\.?\s?v?[0-9]+(?:\.[0-9]+){0,4}(?:-?(?:rc|beta|alpha|b|a|dev|post)\.?[0-9]*)?(?![0-9%])",
            guarded=True,
        ),
    )
    add(
        _PRODUCTS,
        _rule(
            "version",
            r"(?:[ /-]v?|v)?[0-9]{1,4}(?:\.[0-9]+){0,4}(?:[a-z]|x)?(?![0-9A-Za-z%]|,[0-9]| ?(?:%|percent|per cent|million|billion|thousand|times))",
        ),
    )
    add(
        _STANDARDS,
        _rule(
            "identifier",
            r"(?:/[A-Za-z]+)?(?:[ /-][A-Z]{0,3}|:)?[0-9][0-9A-Za-z]*(?:[-./:][0-9A-Za-z]+)*(?![%])",
            guarded=True,
        ),
    )
    add(_SECTIONS, _rule("section", rf"\.? ?(?:#|no\.? ?)?(?:[A-Z]\.?)?{_REFERENCE}{_LIST_TAIL}(?!\s?%)", guarded=True))
    add(
        _OBJECTS,
        _rule(
            "identifier",
            rf"{_LABEL}(?:[A-Z]{{1,3}}[ -]?)?{_INTEGER}(?:(?:, | and | to |[-–]){_INTEGER}){{0,5}}(?![A-Za-z%])",
            guarded=True,
        ),
    )
    add(
        ["tel", "phone", "fax", "call", "hotline", "mobile", "whatsapp"],
        _rule("phone", r"[.:]{0,2}\s?(?:us\s)?(?:at\s|on\s)?\+?[0-9(][0-9 ().-]{4,18}[0-9](?![0-9])"),
    )
    add(_SECTIONS, _rule("section", r"\.? ?\([0-9]{1,3}(?:[-–][0-9]{1,3})?\)"))
    add(
        ["see", "cf"],
        _rule("section", r"\.? (?:also )?[0-9]{1,2}(?:\.[0-9]{1,2}){1,3}(?![0-9%.]|\.[0-9])", guarded=True, bare=True),
    )
    add(["p", "pp"], _rule("section", r"\. ?[0-9]{1,4}(?: ?[-–—] ?[0-9]{1,4})?(?![0-9]|[.,][0-9])"))
    add(["doi", "arxiv", "isbn", "issn"], _rule("identifier", r"[: ]{1,2}[0-9][0-9A-Za-z./_-]{2,60}"))
    add(["no"], _rule("identifier", r"\. ?[0-9]{1,6}(?![0-9]|[.,][0-9])", capital=True, guarded=True))
    add(["top"], _rule("ordinal", r"[ -]?(?:[0-9]{1,4}|three|five|ten|twenty|two|four)(?![0-9A-Za-z%.,][0-9%]?)"))
    add(["ranked", "rank", "ranks", "ranking"], _rule("ordinal", r"\s(?:no\.?\s?|#)?[0-9]{1,4}(?![0-9.,%])"))
    add(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth twentieth hundredth".split(),
        _rule("ordinal", r"(?:[ -](?:quarter|half)\b(?:\s(?:of\s)?(?:FY\s?)?(?:19|20)[0-9]{2})?)?(?![a-z-]*s\b)"),
    )
    return rules


WORD_RULES = _word_rules()
_QUARTER_WORDS = {"q", "h", "w", "v", "g", "t"}
_ALNUM = re.compile(r"[A-Za-z_]++(?:[-_./]?[0-9][0-9A-Za-z_]*|[-_.][A-Za-z]+(?=[-_.0-9]))(?:[-_./:#][0-9A-Za-z_]+)*")
_HYPHEN_PLAIN = frozenset(
    "sub under over about around plus minus nearly of to up down some non at by from a the or and than between only mid".split()
)


def match_word(text: str, start: int, end: int, word: str) -> Excluded | None:
    """A non-conclusion announced by the word at `start`..`end` (`word` is it in lower case)."""
    capital = text[start].isupper()
    for rule in WORD_RULES.get(word, ()):
        if not capital and (rule.capital or (rule.reason == "date" and word in {"may", "march", "mar", "w"})):
            continue
        if word == "p" and rule.reason == "identifier" and text[max(0, start - 1) : start] != "&":
            continue
        if word in _QUARTER_WORDS and start > 0 and text[start - 1].isalnum() and text[start - 1].isascii():
            continue
        if (match := rule.pattern.match(text, end)) and not (rule.guarded and quantity_follows(text, match.end())):
            if not rule.bare:
                return Excluded(start, match.end(), rule.reason, _only_number(match.group()))
            first = end + next(at for at, character in enumerate(match.group()) if character.isdigit())
            longer = match_digits(text, first)
            stop = max(match.end(), longer.end if longer else 0)
            return Excluded(first, stop, rule.reason, _only_number(text[first:stop]))
    if after := idioms.ENGLISH_AFTER.get(word):
        match = re.compile(after, re.IGNORECASE).match(text, end)
        if match and not (word == "one" and quantity_follows(text, end)):
            return Excluded(start, max(match.end(), end), "idiom")
    return _alphanumeric(text, start, end, word)


def _alphanumeric(text: str, start: int, end: int, word: str) -> Excluded | None:
    """A320, JFK-7, report_2013.csv: letters that run into digits."""
    following = text[end : end + 2]
    if not following or not (following[0].isdigit() or following[0] in "_.-") or word.upper() in CODES:
        return None
    if (word in _HYPHEN_PLAIN or word.endswith("ly")) and following[0] in "-.":
        return None
    match = _ALNUM.match(text, start)
    if match is None or not any(character.isdigit() for character in match.group()):
        return None
    if following[0] == "." and (len(following) < 2 or not following[1].isdigit()) and "_" not in match.group():
        return None
    if following[0] == "." and following[1].isdigit() and (end - start > 1 or not text[start].isupper()):
        return None
    return Excluded(start, match.end(), "identifier")


_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"
_FILES = r"csv|tsv|pdf|xlsx?|docx?|pptx?|json|ya?ml|toml|md|py|ipynb|html?|txt|png|jpe?g|svg|parquet|zip|gz|sql|log|db"
_DIGIT_PATTERNS: list[tuple[str, str]] = [
    ("identifier", _UUID),
    ("identifier", r"7[0-8]7(?:-[0-9]{1,4}(?:ER)?)?(?= MAX|s\b| Dreamliner)"),
    ("identifier", r"0[xX][0-9a-fA-F]+(?![0-9A-Za-z])"),
    ("identifier", r"(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![0-9A-Za-z:])"),
    ("address", r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]{1,2}|:[0-9]{1,5})?(?![0-9.])"),
    ("phone", r"1[3-9][0-9]-?[0-9]{4}-?[0-9]{4}(?![0-9.])|0[0-9]{2,3}[- ][0-9]{7,8}(?![0-9])|[48]00-?[0-9]{3}-?[0-9]{4}(?![0-9])|[0-9]{3}[-. ][0-9]{3}[-.][0-9]{4}(?![0-9])|0[0-9]{2,4}[ -][0-9]{3,4}[ -][0-9]{3,4}(?![0-9])|1-[0-9]{3}-[0-9]{3}-[0-9]{4}(?![0-9])"),
    ("date", rf"(?:19|20)[0-9]{{2}}-(?:0[1-9]|1[0-2])-[0-3][0-9](?:[T ]{_CLOCK}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?(?:\s?(?:to|–|—|~|至|到)\s?(?:19|20)[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}})?(?![0-9])"),
    ("date", r"(?:19|20)[0-9]{2}-?W[0-5][0-9](?:-[1-7])?(?![0-9A-Za-z])|(?:19|20)[0-9]{2}[ -]?[QH][1-4](?![0-9A-Za-z])|[1-4]Q[ '’]?(?:[0-9]{4}|[0-9]{2})?(?![0-9A-Za-z])|[12]H[ '’]?(?:[0-9]{4}|[0-9]{2})(?![0-9A-Za-z])"),
    ("date", r"(?:19|20)[0-9]{2}[/.](?:0?[1-9]|1[0-2])[/.][0-3]?[0-9](?![0-9])|[0-3]?[0-9]/[0-3]?[0-9]/(?:[0-9]{4}|[0-9]{2})(?![0-9/])|[0-3]?[0-9]\.[01]?[0-9]\.(?:19|20)[0-9]{2}(?![0-9])|[0-3]?[0-9]-[01]?[0-9]-(?:19|20)[0-9]{2}(?![0-9])"),
    ("date", r"(?:19|20)[0-9]{2}\s?(?:[-–—~至到]|to)\s?(?:(?:19|20)[0-9]{2}(?![0-9])\s?年?)|(?:19|20)[0-9]{2}[/–-][0-9]{2}(?![0-9%.])(?:赛季|season)?"),
    ("date", rf"[0-3]?[0-9](?:st|nd|rd|th)?(?:\s?(?:[-–—]|to|and)\s?[0-3]?[0-9](?:st|nd|rd|th)?)?[\s-](?:of\s)?{_MONTH}(?:[\s,'’-]{{1,2}}(?:{_YEAR}|[0-9]{{2}}(?![0-9])(?!\s?(?:%|[a-z]))))?"),
    ("date", r"(?:19|20)?[0-9]0s(?![A-Za-z0-9])|[0-9]0(?:后|年代)|[0-9]{1,2}世纪(?:[0-9]0年代)?"),
    ("date", r"[0-9]{4}\s?年(?!间|多|余|来|期|以上|左右)(?:\s?(?:度|末|初|底|中期))?(?:第?[一二三四1-4]季度|[上下]半年|[前后]?[一二三四五六七八九十0-9]{1,2}(?:[-–~至到][0-9]{1,2})?个?月(?:份)?(?:[0-9]{1,2}\s?[日号])?(?:(?:至|到|[-–—~])(?:[0-9]{1,2}月)?[0-9]{1,2}[日号])?|第[0-9一二三四五]{1,3}周|\s?[0-9]{1,2}\s?月\s?(?:[0-9]{1,2}\s?[日号])?)?"),
    ("date", r"[0-9]{2}年(?=底|初|末|[0-9]{1,2}月|[上下]半年|[一二三四1-4]季度|Q)(?:底|初|末|[0-9]{1,2}月(?:[0-9]{1,2}[日号])?|[上下]半年|[一二三四1-4]季度|Q[1-4])"),
    ("date", r"[01]?[0-9]\s?月?\s?(?:[-–—~]|至|到)\s?[01]?[0-9]\s?月(?!个)(?:份)?|[01]?[0-9]\s?月\s?(?:份|末|初|底|中旬|上旬|下旬|[0-3]?[0-9](?:(?:[日号]?\s?(?:至|到|[-–—~])\s?(?:[01]?[0-9]月)?[0-3]?[0-9])?[日号])?(?![0-9.]))?|[0-3]?[0-9][日号]?\s?(?:至|到|[-–—~])\s?[0-3]?[0-9]日|[0-3]?[0-9]日(?!元|均|圆)"),
    ("date", r"[1-4][-–~至]?[1-4]?季度|[1-4]季报"),
    ("time", r"(?<![跌涨升降报收])(?:[01]?[0-9]|2[0-4])\s?[时点](?![间长段期数分多余的])(?:\s?[0-9]{1,2}\s?分(?:\s?[0-9]{1,2}秒)?|半|整|钟|[0-9]{1,2}(?![0-9])|[一三]刻)?(?=\D|$)"),
    ("time", rf"{_CLOCK}(?:\s?[ap]\.?m\b\.?)?(?:\s?(?:[-–—~]|to|至|到)\s?{_CLOCK}(?:\s?[ap]\.?m\b\.?)?)?(?:\s?(?:UTC|GMT|EST|EDT|CET|local time))?"),
    ("time", r"[0-9]{1,2}(?:\.[0-5][0-9])?(?:\s?(?:[-–—]|to)\s?[0-9]{1,2})?\s?(?:[ap]\.m\.|[ap]m\b)|[0-9]{1,2}\s?o'clock|[0-2][0-9][0-5][0-9]\s(?:UTC|GMT|hours)\b"),
    ("idiom", rf"(?:{idioms.DIGIT_IDIOMS})(?![.,]?[0-9])"),
    ("ordinal", r"[0-9]{1,3}(?:,[0-9]{3})*(?:st|nd|rd|th)(?![A-Za-z])(?:\s(?:quarter|half)\b)?"),
    ("ordinal", r"[0-9]{1,4}号(?:航站楼|线|楼|店|机|院|门|厅|文件|令)?"),
    ("version", r"[0-9]{1,4}(?:\.[0-9]{1,5}){2,4}(?:-?(?:rc|beta|alpha|b|a|dev)\.?[0-9]*)?(?![0-9A-Za-z%]|\.[0-9])|[0-9]{1,3}\.[0-9]{1,3}\s?版|[0-9]{1,2}\.x\b"),
    ("identifier", r"(?=[0-9A-Za-z_-]*[.][a-zA-Z])[0-9][0-9A-Za-z_-]{0,80}\.(?:" + _FILES + r")(?![0-9A-Za-z])"),
    ("identifier", r"[0-9]{1,9}(?:-[0-9]{1,9}){2,8}(?![0-9])|0[0-9]{1,18}(?![0-9.,%年月日时点])|[0-9]{17,}"),
]  # fmt: skip
_DIGIT_RULES = re.compile(
    "|".join(f"(?P<{reason}_{index}>{pattern})" for index, (reason, pattern) in enumerate(_DIGIT_PATTERNS))
)
_HAN_LABEL = re.compile(
    r"(?:(?P<phone>电话|手机|传真|热线|手机号|电话号码)|(?:单|编|工|账|帐|卡|证|房|班|型|批|案|帖|代|货|合同|流水)号|代码|编码|邮编|尾号|航班|车次|工单|工号)[:为是]?\s?$"
)
_RATIO_BEFORE = re.compile(r"(?:\bratio(?: of| was| is)?:?|\bodds of)\s$|[比例][为是]?$", re.IGNORECASE)
_LABELLED = re.compile(r"[0-9][0-9-]{0,24}(?![0-9.,%])")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3}){2,}(?![0-9.])")
_HEX = re.compile(r"(?=[0-9]*[a-fA-F])[0-9a-fA-F]{6,64}(?![0-9A-Za-z])")
_PLUS_PHONE = re.compile(
    r"\+[0-9]{1,3}[ -]?\(?[0-9]{1,4}\)?(?:[ -]?[0-9]{2,4}){2,4}(?![0-9%.,])|\([0-9]{3}\) ?[0-9]{3}-[0-9]{4}(?![0-9])"
)
_LIST_MARK = re.compile(
    r"[ ]{0,6}(?:[-*>•] )?(?:\(?[0-9]{1,3}[)）](?=\s|[\u4e00-\u9fff])|[0-9]{1,3}\.(?=\s+\S)|[0-9]{1,2}、|[0-9]{1,2}\.(?=[\u4e00-\u9fff])|[一二三四五六七八九十]{1,3}[、.．]|\([一二三四五六七八九十0-9]{1,3}\))"
)
_HEADING = re.compile(
    r"[ ]{0,3}(?:#{1,6} +)?[0-9]{1,2}(?:\.[0-9]{1,2}){1,4}\.? +(?=[A-Z\u4e00-\u9fff])[^\n.!?。；;:%]{1,80}(?=\n|$)"
)
_HASH_HEADING = re.compile(
    r"[ ]{0,3}#{1,6} +(?:[0-9]{1,2}(?:\.[0-9]{1,2}){0,4}[.)、]? +|[一二三四五六七八九十]{1,3}[、.])(?=\S)"
)
_HEADING_NUMBER = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,2}){0,4}\.?")
_YEAR_ALONE = re.compile(r"(?:19|20)[0-9]{2}(?![0-9A-Za-z%‰]|[.,'][0-9]|\s?%)")
_LEVEL_BEFORE = re.compile(
    r"(?:\b(?:was|were|is|are|total|totals|totall?ed|reached|hit|(?:rose|fell|grew|up|down|(?:in|de)creased|declined|dropped|climbed|gained) by|rose|fell|grew|counted|recorded|numbered|had|have|has|saw|carried|handled|about|around|roughly|nearly|almost|over|approximately|than|least|most|[a-z]+ed to|(?:rose|fell|grew|up|down|climbed) to)|[=≈~:>$€£¥+<为达约近超共计有量额数值润])\s?$",
    re.IGNORECASE,
)


def match_digits(text: str, start: int) -> Excluded | None:
    """A non-conclusion that begins with the digit at `start`."""
    announced = _HAN_LABEL.search(text[max(0, start - 8) : start])
    if announced and (match := _LABELLED.match(text, start)) and not quantity_follows(text, match.end()):
        return Excluded(start, match.end(), "phone" if announced["phone"] else "identifier")
    match = _DIGIT_RULES.match(text, start)
    if match is not None and match.end() > start and match.lastgroup is not None:
        reason = match.lastgroup.rpartition("_")[0]
        if (
            reason == "phone"
            and "-" not in match.group()
            and " " not in match.group()
            and _stated(text, start, match.end())
        ):
            return None
        swallowed = reason == "version" and _THOUSANDS.match(text, start) is not None
        swallowed = swallowed or (
            reason == "time" and _RATIO_BEFORE.search(text[max(0, start - 12) : start]) is not None
        )
        if not swallowed and not (reason == "date" and _count_of_years(text, start, match.end())):
            return Excluded(start, match.end(), reason, _only_number(match.group()))
    if (match := _HEX.match(text, start)) and not re.match(r"[0-9]+[eE][0-9]{1,2}$", match.group()):
        return Excluded(start, match.end(), "identifier")
    return _bare_year(text, start)


def _count_of_years(text: str, start: int, end: int) -> bool:
    """`2000年` after 近/约/超 is a span of years; nothing else is."""
    return (
        text[end - 1] == "年"
        and end - start == 5
        and text[max(0, start - 1) : start] in {"近", "约", "超"}
        and text[start : start + 2] != "20"
    )


def _bare_year(text: str, start: int) -> Excluded | None:
    match = _YEAR_ALONE.match(text, start)
    if match is None or _stated(text, start, match.end()):
        return None
    return Excluded(start, match.end(), "date", Decimal(match.group()))


def _stated(text: str, start: int, end: int) -> bool:
    """Whether bare digits stand as a value: a unit behind, or a sign, a currency or a verb of amount before."""
    if re.search(r"(?:^|[^0-9A-Za-z])[-+–$€£¥]$|[$€£¥]-?$", text[max(0, start - 2) : start]):
        return True
    if quantity_follows(text, end):
        return True
    level = _LEVEL_BEFORE.search(text[max(0, start - 14) : start])
    adjective = level is not None and level.group().strip().lower() in ("total", "totals")
    return level is not None and not (adjective and re.match(r" [a-z]", text[end : end + 2]))  # "total 2022 revenue"


def match_line_mark(text: str, start: int, floor: int) -> Excluded | None:
    """A list number or a heading's section number, where `start` is the first number of its line."""
    window = max(floor, start - 14)
    newline = text.rfind("\n", window, start)
    if newline < 0 and window > 0:
        return None
    line = newline + 1
    if text[line:start].strip(" #>*-•("):
        return None
    for pattern, reason in ((_HASH_HEADING, "section"), (_HEADING, "section"), (_LIST_MARK, "list_number")):
        match = pattern.match(text, line)
        if match is None or match.end() <= start:
            continue
        number = _HEADING_NUMBER.match(text, start)
        if pattern is _HEADING and (number is None or quantity_follows(text, number.end())):
            continue
        end = (
            number.end()
            if number is not None and reason == "section"
            else start + len(text[start : match.end()].rstrip())
        )
        return Excluded(start, end, reason, _only_number(text[start:end]))
    return None


def match_symbol(text: str, start: int) -> Excluded | None:
    """`#123`, `§3`, `+86 138 …`, `(212) 555-0100`, `'90s`."""
    if match := _PLUS_PHONE.match(text, start):
        plain = match.group()[1:].isdigit() and not re.match(r"\+861[3-9][0-9]{9}$", match.group())
        if sum(character.isdigit() for character in match.group()) >= 8 and not plain:
            return Excluded(start, match.end(), "phone")
        return None
    for pattern, reason in (
        (r"#[0-9A-Fa-f]{1,12}(?![0-9A-Za-z])", "identifier"),
        (r"§{1,2} ?[0-9]+(?:\.[0-9]+)*", "section"),
        (r"'[0-9]0s\b", "date"),
        (r"[①-⑳❶-❿]", "list_number"),
    ):
        if match := re.compile(pattern).match(text, start):
            return Excluded(start, match.end(), reason, _only_number(match.group()))
    return None


_HAN_PATTERNS: list[tuple[str, str]] = [
    ("list_number", r"(?<![^，。；;：:\s])[一二三四五六七八九十]{1,2}、(?![一二三四五六七八九十])"),
    ("list_number", r"(?<![^，。；;：:,.\s、])(?:[一二三四五六七八九十]{1,2}(?:是|则)|[一二三四]来(?=[，,是]))"),
    ("idiom", r"[二三四五六七八九十]大(?![量约于会豆])"),
    ("ordinal", r"第[一二三四五六七八九十]{1,3}个五年(?:计划|规划)?"),
    ("ordinal", rf"第\s?(?:[0-9]{{1,4}}|{_HAN}{{1,5}}|[百千万]+)(?:(?:季度|周|个月|天|期|届|次|名|位|个|章|节|条|款|页|行|列|轮|批|张|家|步|类|大|方|产业|阶段|排|航站楼|组|年|代|日|种|点|部分)?)"),
    ("section", r"(?:表|图|附表|附图|附录|附件|公式|步骤|示例|案例|方案|问题|例)\s?(?:[0-9]{1,3}(?:[-.–][0-9]{1,3})?|[一二三四五六七八九十]{1,3})(?![0-9%个家种项.])"),
    ("date", r"[一二三四]季(?:度|报)|[一二三四][、和至到][一二三四]季度|前[一二三四]个?季度|[零〇一二三四五六七八九]{4}年(?:(?:十[一二]?|[一二三四五六七八九])月(?:[一二三四五六七八九十廿]{1,3}[日号])?)?|(?:十[一二]?|[一二三四五六七八九])月(?:份|[一二三四五六七八九十廿]{1,3}[日号]|底|初|末|中旬|上旬|下旬)?|(?:二?十[一二三四五六七八九]?|三十一?|廿[一二三四五六七八九]?|[一二三四五六七八九])(?:日(?!元|均|圆)|号)|[零〇一二三四五六七八九]{2}年代|(?:[一二三四五六七八九]?十[一二三四五六七八九]?世纪)?[二三四五六七八九]十年代|[一二三四五六七八九]?十[一二三四五六七八九]?世纪|(?:星期|周|礼拜)[一二三四五六日]|[上下]半年"),
    ("time", r"(?:凌晨|早上|上午|中午|下午|晚上|傍晚)(?:[0-9]{1,2}|[一二三四五六七八九十两]{1,2})[点时](?:半|整|钟|[0-9一二三四五六七八九十]{1,3}分?|[一三]刻)?|(?:十[一二]?|[一二三四五六七八九两])点(?:钟|半|整|[一三]刻|[二三四五]?十[一二三四五六七八九]?分?|过|(?![零〇一二三四五六七八九]))|[二三四五]?十?[一二三四五六七八九十]时(?:[二三四五]?十?[一二三四五六七八九]?分)?(?![间长段期])"),
    ("ordinal", r"(?:前|后|排名|位列|位居|名列)(?:第)?(?:[0-9]{1,4}|[一二三四五六七八九十百]{1,3})(?:名|位|大|强|甲)"),
    ("vague", r"(?:数|几|上|好几|成)(?:十|百|千|万|亿)+(?:分之[一二三四五六七八九])?|[数几]十[百千万亿]|若干|成千上万|千千万万"),
]  # fmt: skip
_HAN_RULES = re.compile(
    "|".join(f"(?P<{reason}_{index}>{pattern})" for index, (reason, pattern) in enumerate(_HAN_PATTERNS))
)
_ARTICLE = re.compile(idioms.CHINESE_ARTICLE)
HAN_LEADS = "第表图附公步示案方问例前后排位名数几上好成若凌早中下晚傍星周礼"


def match_han(text: str, start: int, floor: int) -> Excluded | None:
    """A non-conclusion in Chinese characters at `start` (an idiom may begin up to three characters earlier)."""
    if match := _ARTICLE.match(text, start):
        return Excluded(start, match.end(), "idiom")
    if idiom := _chinese_idiom(text, start, floor):
        return idiom
    if (match := _HAN_RULES.match(text, start)) and match.lastgroup is not None:
        reason = match.lastgroup.rpartition("_")[0]
        if reason == "section" and match.group()[0] not in "表图" and quantity_follows(text, match.end()):
            return None
        if reason == "date" and match.group()[-1] == "月" and text[match.end() : match.end() + 1] == "个":
            return None
        return Excluded(start, match.end(), reason, None)
    return None


def _chinese_idiom(text: str, start: int, floor: int) -> Excluded | None:
    run = HAN_RUN.match(text, start)
    run_end = run.end() if run and run.end() - start <= 8 else (start + 1 if run is None else -1)
    if run_end < 0:
        return None
    for first in range(max(floor, start - 3), start + 1):
        longest = min(len(text), first + idioms.CHINESE_LONGEST)
        for end in range(longest, run_end - 1, -1):
            phrase = text[first:end]
            if phrase in idioms.CHINESE and text[end : end + 1] not in {*idioms.CHINESE_EXCEPT.get(phrase, "")}:
                return Excluded(first, end, "idiom")
    return None


_PHRASES = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, idioms.ENGLISH_PHRASES), key=len, reverse=True)) + r")(?![A-Za-z])",
    re.IGNORECASE,
)


def match_phrase(text: str, start: int, floor: int) -> Excluded | None:
    """An English idiom that contains the number word at `start` and may begin before it."""
    window = max(floor, start - 20)
    for match in _PHRASES.finditer(text, window, min(len(text), start + 24)):
        if match.start() <= start < match.end():
            return Excluded(match.start(), match.end(), "idiom")
    before = re.search(r"([A-Za-z]+)[ -]$", text[window:start])
    if (
        before
        and before[1].lower() in idioms.ENGLISH_BEFORE
        and re.match(r"one\b", text[start : start + 4], re.IGNORECASE)
    ):
        end = start + 3
        if not quantity_follows(text, end) and not re.match(
            r"[ -](?:hundred|thousand|million|billion|third|quarter|half|and a)", text[end : end + 10]
        ):
            return Excluded(window + before.start(), end, "idiom")
    return None


def quantity_follows(text: str, end: int) -> bool:
    """Whether a scale, unit, currency or percent sign follows the number that ends at `end`."""
    following = text[end : end + 2].lstrip()[:1]
    scaled = following != "" and following in "百千万亿多余" and not starts_unit_word(text, end)
    return scaled or read_suffix(text, end, money=False).end > end


def _only_number(text: str) -> Decimal | None:
    numbers = re.findall(r"[0-9]+(?:\.[0-9]+)?", text)
    return Decimal(numbers[0]) if len(numbers) == 1 and len(numbers[0]) <= 18 else None
