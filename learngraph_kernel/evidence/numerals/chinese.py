# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Numbers written in Chinese characters, alone or mixed with digits: 三千五百, 一百零二, 一亿五, 3万5千, 三分之二, 两千余.

The value is built the way it is spoken: coefficients times 十百千 within a section of four places, sections times 万 and
亿. A digit that follows 百, 千, 万 or 亿 without a unit of its own counts in the next lower place (一亿五 is 1.5亿), one
after 零 in the last (三千零五 is 3005).
"""

from __future__ import annotations

import re
from decimal import Decimal

from learngraph_kernel.evidence.numerals.reading import ONE, ZERO, Amount

DIGITS = {character: Decimal(value) for value, character in enumerate("零一二三四五六七八九")} | {
    "〇": ZERO, "两": Decimal(2), "○": ZERO,
}  # fmt: skip
TENS = {"廿": Decimal(20), "卅": Decimal(30)}
SMALL_UNITS = {"十": Decimal(10), "百": Decimal(100), "千": Decimal(1000)}
BIG_UNITS = {"万": Decimal(10) ** 4, "亿": Decimal(10) ** 8}
UNITS = SMALL_UNITS | BIG_UNITS
NUMERAL_CHARACTERS = "".join(DIGITS) + "廿卅十百千万亿"
_CLASS = f"[{NUMERAL_CHARACTERS}]"

HAN_RUN = re.compile(f"{_CLASS}++")
_UNIT_WORDS = re.compile(r"千(?:瓦|克|米|卡|赫|伏|焦|帕|字节|里马)|百(?:分点|分比|货|度|科|姓)|万(?:分之|象|科)")
_POINT = re.compile(r"点([零〇一二三四五六七八九]++)(?![分十点刻])")
_OF = re.compile(r"分之(?=[0-9零〇一二两三四五六七八九十百千])(?!百万)")
_INFIX = re.compile(r"[多余几](?!于|数|样)|来(?=[个天年岁人分])")
_ADJACENT = re.compile(r"(?:一二|一两|二三|两三|三四|三五|四五|五六|六七|七八|八九)(?![零〇一二两三四五六七八九])")
_SHARE = {Decimal(100): "%", Decimal(1000): "‰"}


def starts_unit_word(text: str, position: int) -> bool:
    """Whether a character that looks like a scale begins a unit word (千瓦, 千克, 百分点)."""
    return _UNIT_WORDS.match(text, position) is not None


def read_han(text: str, start: int, coefficient: Amount | None = None) -> Amount | None:
    """A number in characters at `start`.

    Takes a folded text and, for a mixed number (`3万5千`), the amount in digits that stands before `start`.
    Returns None when no number is meant (万 in 万元, 百 in 百货).
    """
    if coefficient is None and (pair := _pair(text, start)):
        return pair
    return _Builder(text, start, coefficient).run()


def read_share(text: str, amount: Amount) -> tuple[Amount, str | None] | None:
    """`N分之M` after the amount N: (M, `%` or `‰`) or (M/N, None)."""
    match = _OF.match(text, amount.end)
    if match is None or amount.value == 0:
        return None
    top = read_top(text, match.end())
    if top is None:
        return None
    if amount.value in _SHARE:
        return top, _SHARE[amount.value]
    form_place = Decimal("0.01") if amount.value <= 100 else Decimal("0.0001")
    return Amount(top.end, top.value / amount.value, form_place, form="fraction", hedge=top.hedge), None


def read_bare_share(text: str, start: int) -> tuple[Amount, str | None] | None:
    """百分之八, 千分之三, 万分之五: the first of these is written without a digit."""
    if text[start] not in "百千万" or not text.startswith("分之", start + 1):
        return None
    return read_share(text, Amount(start + 1, UNITS[text[start]], ONE, form="words"))


def read_top(text: str, start: int) -> Amount | None:
    """The number after 分之, in characters or digits."""
    if match := re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?").match(text, start):
        plain = match.group()
        return Amount(match.end(), Decimal(plain), ONE.scaleb(-len(plain.partition(".")[2])))
    if text.startswith("百", start):
        return Amount(start + 1, Decimal(100), ONE, form="words")
    return read_han(text, start)


def _pair(text: str, start: int) -> Amount | None:
    """三四百, 两三个, 七八成: two neighbouring digits are a range."""
    if _ADJACENT.match(text, start) is None:
        return None
    low, high = DIGITS[text[start]], DIGITS[text[start + 1]]
    factor, end = ONE, start + 2
    while end < len(text) and text[end] in UNITS and not starts_unit_word(text, end):
        factor, end = factor * UNITS[text[end]], end + 1
    return Amount(
        end, low * factor, factor, scaled=factor >= 1000, form="words", hedge="about", room=(high - low) * factor
    )


class _Builder:
    """Reads one number left to right; `place` follows the worth of the last digit spoken."""

    def __init__(self, text: str, start: int, coefficient: Amount | None) -> None:
        self.text = text
        self.position = start
        self.yi = self.wan = self.section = ZERO
        self.current = coefficient.value if coefficient else None
        self.current_place = coefficient.place if coefficient else ONE
        self.place = self.current_place
        self.last_unit = ONE
        self.after_zero = False
        self.spoken = coefficient is not None
        self.form: str = "digits" if coefficient else "words"

    def run(self) -> Amount | None:
        while self.position < len(self.text) and self._step(self.text[self.position]):
            self.position += 1
        if not self.spoken:
            return None
        if self.current is not None:
            self._settle_last()
        value = self.yi + self.wan + self.section
        if 1 < self.place < 1000:
            self.place = ONE  # 十公里, 两百架: hundreds and tens are spoken in full
        return self._hedged(Amount(self.position, value, self.place, scaled=self.place >= 1000))

    def _step(self, character: str) -> bool:
        """Takes one character; False when the number ends before it."""
        if character in UNITS:
            return not starts_unit_word(self.text, self.position) and self._unit(character)
        if character in TENS and self.current is None:
            self.section += TENS[character]
            self.spoken, self.last_unit, self.place = True, Decimal(10), ONE
            return True
        if character in DIGITS:
            return self._digit(character)
        if character.isdigit() and character.isascii():
            return self._arabic()
        if character == "点":
            return self._point()
        return character in "多余几来" and self._inner_hedge()

    def _digit(self, character: str) -> bool:
        if self.current is not None and not self._only_digits():
            return False
        if character in "零〇○" and self.spoken and self.current is None:
            self.after_zero = True
            return True
        previous = self.current if self.current is not None else ZERO
        self.current, self.current_place, self.spoken = previous * 10 + DIGITS[character], ONE, True
        return True

    def _only_digits(self) -> bool:
        """一二三 and 二〇一三 are read digit by digit; 三千五六 is not one number."""
        return self.last_unit == 1 and self.form == "words" and self.current_place == 1

    def _arabic(self) -> bool:
        if self.current is not None or not self.spoken or self.last_unit < 10:
            return False
        match = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4})?(?=[十百千万亿])").match(self.text, self.position)
        if match is None or starts_unit_word(self.text, match.end()):
            return False
        plain = match.group()
        self.current, self.current_place = Decimal(plain), ONE.scaleb(-len(plain.partition(".")[2]))
        self.position = match.end() - 1
        return True

    def _point(self) -> bool:
        match = _POINT.match(self.text, self.position)
        if match is None or self.form != "words" or not self.spoken:
            return False
        whole = self.section + (self.current or ZERO)
        places = "".join(str(DIGITS[digit]) for digit in match[1])
        self.current_place = ONE.scaleb(-len(places))
        self.current = whole + int(places) * self.current_place
        self.section, self.position = ZERO, match.end() - 1
        self.place = self.current_place
        return True

    def _unit(self, character: str) -> bool:
        factor = UNITS[character]
        if not self.spoken and character != "十":
            return False
        if character in SMALL_UNITS:
            if self.current is None and self.spoken and not (self.after_zero and character == "十"):
                return False if self.section == 0 and self.wan == 0 and self.yi == 0 else self._bare(factor)
            self.section += (ONE if self.current is None else self.current) * factor
            self.place, self.last_unit, self.current = self.current_place * factor, factor, None
            if self.current_place > 1:
                self.current_place = ONE
            self.spoken = True
        else:
            self._big(character, factor)
        self.after_zero, self.current_place = False, ONE
        return True

    def _bare(self, factor: Decimal) -> bool:
        """A unit without a digit: 一百一十 has one; 五百万 never comes here; 三万千 is no number."""
        if factor == 10 and self.last_unit >= 100:
            self.section += factor
            self.place, self.last_unit = factor, factor
            return True
        return False

    def _big(self, character: str, factor: Decimal) -> None:
        part = self.section + (self.current or ZERO)
        place = self.current_place if self.current is not None else self.place
        if character == "万":
            self.wan += part * factor
        else:
            self.yi = (self.yi + self.wan + part) * factor
            self.wan = ZERO
        self.section, self.current = ZERO, None
        self.place, self.last_unit = place * factor, factor

    def _inner_hedge(self) -> bool:
        """20多万, 三百余亿: the hedge stands between coefficient and scale."""
        following = self.text[self.position + 1 : self.position + 2]
        if (
            not following
            or following not in "万亿"
            or not self.spoken
            or starts_unit_word(self.text, self.position + 1)
        ):
            return False
        self.inner = True
        return True

    inner = False

    def _settle_last(self) -> None:
        last = self.current or ZERO
        if self.last_unit >= 100 and not self.after_zero and last < 10 and self.current_place == 1:
            self.section += last * self.last_unit / 10
            self.place = self.last_unit / 10
        else:
            self.section += last
            self.place = self.current_place

    def _hedged(self, amount: Amount) -> Amount:
        form = "words" if self.form == "words" else "digits"
        end, hedge, room = amount.end, None, None
        if self.inner:
            hedge = "over"
        elif match := _INFIX.match(self.text, amount.end):
            end, hedge = match.end(), "over"
        if hedge is not None:
            room = last_significant(amount.value)
        return Amount(end, amount.value, amount.place, amount.scaled, form, hedge, room)  # type: ignore[arg-type]


def last_significant(value: Decimal) -> Decimal:
    """Worth of the last digit that is not zero: 1200 → 100, 8.10 → 0.1, 0 → 1."""
    if value == 0:
        return ONE
    return ONE.scaleb(value.normalize().as_tuple().exponent)  # type: ignore[arg-type]
