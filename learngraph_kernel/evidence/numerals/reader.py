# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Reading all numbers of a text: the composition of scanner, exclusions, grammars, units, ranges, hedges, directions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from learngraph_kernel.evidence.numerals import chinese, digits, english, exclusions
from learngraph_kernel.evidence.numerals.direction import find_direction
from learngraph_kernel.evidence.numerals.intervals import (
    interval,
    joins_range,
    merge_proportion,
    merge_range,
    read_hedge,
)
from learngraph_kernel.evidence.numerals.numeral import Numeral
from learngraph_kernel.evidence.numerals.reading import ONE, Amount, Excluded, Form, Kind, Reading
from learngraph_kernel.evidence.numerals.scanner import Span, fold, protected_spans
from learngraph_kernel.evidence.numerals.signs import SIGNS, read_sign
from learngraph_kernel.evidence.numerals.units import Suffix, currency_before, read_suffix

_VULGAR = "".join(digits.VULGAR)
_CANDIDATE = re.compile(
    rf"(?P<word>[A-Za-z_]++)|(?P<digit>[0-9{_VULGAR}]|\.(?=[0-9]))|(?P<han>[{chinese.NUMERAL_CHARACTERS}{exclusions.HAN_LEADS}半翻])"
    r"|(?P<symbol>[#§+①-⑳❶-❿]|\((?=[0-9一二三四五六七八九十])|'(?=[0-9]0s))"
)
_INSIDE = re.compile(r"[0-9]++(?:\.[0-9]++)?")
_YEN = re.compile(r"\byen\b|\bJPY\b|\bJapan|日元|日圆|日本", re.IGNORECASE)
_DOUBLE = re.compile(r"翻(?:了)?(?:([一两二三四五六七八九])(?:番|倍)|(?:番|倍))")
_HALF_WORD = re.compile(r"半(?=年|天|小时|个(?:多)?(?:小时|月|世纪)|数|成(?!品)|公里|百分点)")
_ONE_HALF = re.compile(r"(?:一|超过?|过|近|约|大)半(?:数)?(?![导岛径年天个小月夜空边途生])")
_AND_HALF = re.compile(r"(?:an?|one) (hour|day|week|month|year|mile|minute|decade) and a half\b", re.IGNORECASE)
_TWICE = re.compile(r"\s(?:as|the|that|its|their|what|last|this|his|her|our)\b", re.IGNORECASE)
_GROWN = re.compile(r"(?:增长|增加|上升|上涨|提高|扩大|提升|激增|增|涨)(?:了)?(?:约|近|超过|超|逾|至少)?\s?$")


def read_numerals(text: str, *, language: str | None = None) -> list[Numeral]:
    """Every number of a text, conclusions and others, in text order, never overlapping.

    Args:
        text: plain text or Markdown.
        language: `en`, `zh`, or another tag (`de`: continental separators); None: judged from the text.

    Returns:
        `Numeral` values; offsets are code points of `text`.
    """
    reader = _Reader(text, language)
    return [reader.numeral(item) for item in reader.read()]


class _Reader:
    def __init__(self, text: str, language: str | None) -> None:
        self.original = text
        self.text = fold(text)
        self.continental = digits.is_continental(self.text, language)
        self.yen = _YEN.search(self.text) is not None
        self.floor = 0

    def read(self) -> list[Reading | Excluded]:
        found = self._joined(list(self._scan()))
        previous: Reading | None = None
        floor = 0
        for item in found:
            if isinstance(item, Reading):
                read_hedge(self.text, item, floor)
                if item.direction is None:
                    item.direction = find_direction(self.text, item, floor, previous)
                previous = item
            floor = item.end
        return found

    # Scanning -------------------------------------------------------------------------------------------------------

    def _scan(self) -> Iterator[Reading | Excluded]:
        spans = protected_spans(self.text)
        position, index = 0, 0
        while match := _CANDIDATE.search(self.text, position):
            start = match.start()
            while index < len(spans) and spans[index].end <= start:
                yield from self._protected(spans[index], position)
                position = max(position, spans[index].end)
                index += 1
            if index < len(spans) and spans[index].start <= start:
                yield from self._protected(spans[index], position)
                position = self.floor = spans[index].end
                index += 1
                continue
            if start < position:
                continue
            item = self._at(match)
            if item is None:
                position = max(match.end(), position + 1)
                if match.lastgroup == "han":
                    position = self._skip_han(start)
                continue
            yield item
            position = self.floor = item.end
        for span in spans[index:]:
            yield from self._protected(span, position)

    def _protected(self, span: Span, position: int) -> Iterator[Excluded]:
        if span.start < position:
            return
        if not span.whole:
            for match in _INSIDE.finditer(self.text, span.start, span.end):
                value = Decimal(match.group()) if len(match.group()) <= digits.LONGEST else None
                yield Excluded(match.start(), match.end(), span.reason, value)
        elif any(character.isdigit() for character in self.text[span.start : span.end]):
            yield Excluded(span.start, span.end, span.reason)

    def _at(self, match: re.Match[str]) -> Reading | Excluded | None:
        start = match.start()
        if match.lastgroup == "word":
            return self._word(start, match.end())
        if match.lastgroup == "digit":
            return self._digit(start)
        if match.lastgroup == "han":
            return self._han(start)
        if symbol := exclusions.match_symbol(self.text, start):
            return symbol
        opening = self.text[start] == "("
        return exclusions.match_line_mark(self.text, start + 1, self.floor) if opening else None

    def _word(self, start: int, end: int) -> Reading | Excluded | None:
        word = self.text[start:end].lower()
        numeric = word in english.LEADS or word in english.MULTIPLES or word in english.VAGUE
        if numeric and (phrase := exclusions.match_phrase(self.text, start, self.floor)):
            return phrase
        if excluded := exclusions.match_word(self.text, start, end, word):
            return excluded
        if not numeric:
            return None
        if start > 0 and (
            self.text[start - 1].isdigit() or (self.text[start - 1] == "-" and self.text[max(0, start - 2)].isalpha())
        ):
            return None
        if word in english.VAGUE:
            return Excluded(start, end, "vague")
        if word in english.MULTIPLES and word not in english.LEADS:
            return self._multiple(start, end, word)
        if (match := _AND_HALF.match(self.text, start)) is not None:
            return Reading(
                start, match.end(), Decimal("1.5"), Decimal("0.1"), False, "words", match[1].lower(), measured=True
            )
        amount = english.read_words(self.text, start)
        return None if amount is None else self._complete(start, amount)

    def _multiple(self, start: int, end: int, word: str) -> Reading | Excluded:
        times = english.MULTIPLES[word]
        if word in {"twice", "thrice"} and not _TWICE.match(self.text, end):
            return Reading(start, end, Decimal(times), ONE, False, "words", "time")
        value = Decimal(times) if times else Decimal("0.5")
        reading = Reading(start, end, value, ONE, False, "multiple", "x", "multiple")
        if word not in {"twice", "thrice", "double", "triple", "quadruple"} and not word.endswith("fold"):
            reading.direction = "up" if times else "down"
        return reading

    def _digit(self, start: int) -> Reading | Excluded | None:
        for excluded in (
            exclusions.match_line_mark(self.text, start, self.floor),
            exclusions.match_digits(self.text, start),
        ):
            if excluded is not None:
                return excluded
        amount = digits.read_digits(self.text, start, continental=self.continental)
        if amount.end - start > digits.LONGEST:
            return Excluded(start, amount.end, "identifier")
        return self._from_digits(start, amount)

    def _from_digits(self, start: int, amount: Amount) -> Reading | Excluded:
        text, end = self.text, amount.end
        if text[start:end].isdigit() and (share := chinese.read_share(text, amount)):
            return self._share(start, share)
        here = end + 1 if text[end : end + 1] == " " else end
        following = text[here : here + 1]
        inner = text[here : here + 1] in {"多", "余"} and text[here + 1 : here + 2] in {"万", "亿", "千", "百"}
        if (
            amount.form == "digits"
            and following
            and (following in chinese.UNITS or inner)
            and not chinese.starts_unit_word(text, here)
        ):
            mixed = chinese.read_han(text, here, amount)
            if mixed is not None:
                amount = mixed
        elif (
            amount.form == "digits"
            and following in {"多", "余", "几"}
            and here == end
            and text[end + 1 : end + 2] not in {"于", "数"}
        ):
            room = chinese.last_significant(amount.value)
            amount = Amount(end + 1, amount.value, amount.place, amount.scaled, hedge="over", room=room)
        elif (
            following.isalpha()
            and following.isascii()
            and here == end
            and read_suffix(text, end, money=self._money(start)).end == end
        ):
            tail = re.compile(r"[0-9A-Za-z_-]{1,80}").match(text, end)
            return Excluded(start, tail.end() if tail else end, "identifier")
        return self._complete(start, amount)

    def _money(self, start: int) -> bool:
        position = start - 1 if start > 0 and self.text[start - 1] in "(+-–" else start
        return currency_before(self.text, self.floor, position) is not None

    def _han(self, start: int) -> Reading | Excluded | None:
        text = self.text
        if mark := exclusions.match_line_mark(text, start, self.floor):
            return mark
        if double := _DOUBLE.match(text, start):
            count = chinese.DIGITS[double[1]] if double[1] else ONE
            value = Decimal(2) ** int(count) if "番" in double.group() or not double[1] else count
            return Reading(start, double.end(), value, ONE, False, "multiple", "x", "multiple", direction="up")
        if half := self._half(start):
            return half
        if share := chinese.read_bare_share(text, start):
            return self._share(start, share)
        if excluded := exclusions.match_han(text, start, self.floor):
            return excluded
        amount = chinese.read_han(text, start) if text[start] in chinese.NUMERAL_CHARACTERS else self._bare_big(start)
        if amount is None:
            amount = self._bare_big(start)
        if amount is None:
            return None
        if share := chinese.read_share(text, amount):
            return self._share(start, share)
        return self._complete(start, amount)

    def _bare_big(self, start: int) -> Amount | None:
        """近万架, 百余人, 超亿元, 千余: a unit that stands for one of itself."""
        match = re.compile(r"[百千万亿]{1,2}").match(self.text, start)
        if match is None or chinese.starts_unit_word(self.text, start):
            return None
        before = self.text[max(self.floor, start - 2) : start]
        hedged = self.text[match.end() : match.end() + 1] in {"余", "多"}
        if not hedged and not before.endswith(("近", "超", "逾", "过", "约", "达", "破", "成")):
            return None
        value = ONE
        for character in match.group():
            value *= chinese.UNITS[character]
        end = match.end() + hedged
        return Amount(
            end,
            value,
            value,
            scaled=value >= 1000,
            form="words",
            hedge="over" if hedged else None,
            room=value if hedged else None,
        )

    def _half(self, start: int) -> Reading | None:
        text = self.text
        if text[start] == "一" and (match := _ONE_HALF.match(text, start)):
            return Reading(start, match.end(), Decimal("0.5"), Decimal("0.01"), False, "fraction", None, "fraction")
        if text[start] != "半":
            return None
        if start > self.floor and (match := _ONE_HALF.match(text, start - 1)) and match.end() > start:
            hedge = text[start - 1]
            reading = Reading(start, match.end(), Decimal("0.5"), Decimal("0.01"), False, "fraction", None, "fraction")
            if hedge in "过大":
                reading.hedge = "over"
            return reading
        if text[start - 1 : start] in {"上", "下", "前", "后"}:
            return None
        match = _HALF_WORD.match(text, start)
        if match is None:
            return None
        if text[match.end()] == "数":
            return Reading(start, match.end() + 1, Decimal("0.5"), Decimal("0.01"), False, "fraction", None, "fraction")
        item = self._complete(start, Amount(match.end(), Decimal("0.5"), Decimal("0.1"), form="words"))
        return item if isinstance(item, Reading) else None

    def _skip_han(self, start: int) -> int:
        """After a character run that is no number (万 in 单位：万元): not past a lead such as 第 that begins the next."""
        run = chinese.HAN_RUN.match(self.text, start)
        return run.end() if run else start + 1

    # Completing -----------------------------------------------------------------------------------------------------

    def _share(self, start: int, share: tuple[Amount, str | None]) -> Reading:
        amount, unit = share
        kind: Kind = "percent" if unit else "fraction"
        form: Form = "words" if unit else "fraction"
        reading = Reading(
            start, amount.end, amount.value, amount.place, False, form, unit, kind, measured=True, hedge=amount.hedge
        )
        read_sign(self.text, reading, self.floor)
        return reading

    def _complete(self, start: int, amount: Amount) -> Reading | Excluded:
        """Scale, unit, currency and sign of an amount."""
        text = self.text
        opening = start - 1 if start > self.floor and text[start - 1] == "(" else start
        money = currency_before(
            text,
            self.floor,
            opening
            if opening != start and text[opening - 1 : opening] in {"$", "¥", "€", "£"}
            else self._unsigned(start),
        )
        open_ended = re.compile(r"\+(?=[ )]|[a-z\u4e00-\u9fff]|$)").match(text, amount.end) is not None
        suffix = read_suffix(text, amount.end + open_ended, money=money is not None)
        if amount.form == "fraction" and suffix.unit and not suffix.measured and suffix.scale is None:
            suffix = Suffix(amount.end)  # `a one-third share`: a part of the things, no count of them
        end = suffix.end
        value, place, scaled = amount.value, amount.place, amount.scaled
        scale = suffix.scale or ONE
        if suffix.unit == "%" and scale == 10:
            value, place, end = self._tenths(value, place, amount, suffix.end)
        elif scale != 1:
            value, place = value * scale, place * scale
            scaled = scaled or scale >= 1000
        kind = suffix.kind if suffix.unit else ("fraction" if amount.form == "fraction" else "number")
        reading = Reading(
            start,
            end,
            value,
            place,
            scaled,
            amount.form,
            suffix.unit,
            kind,
            suffix.measured,
            hedge="at_least" if open_ended else amount.hedge,
            room=amount.room,
        )
        reading.scale = scale if suffix.scale else (amount.place if amount.scaled else ONE)
        if amount.room is not None and amount.hedge == "about":
            reading.bounds, reading.hedge = (
                (value, value + amount.room * (10 if suffix.unit == "%" and scale == 10 else scale)),
                None,
            )
            reading.value, reading.kind = (reading.bounds[0] + reading.bounds[1]) / 2, "range"
        elif amount.room is not None:
            reading.room = amount.room * scale
        if amount.form == "fraction" and suffix.unit and suffix.scale is None:
            reading.form, reading.place = "words", Decimal("0.01")
        self._half_after(reading)
        if money is not None and reading.unit in {None, "CNY", money[0]}:
            reading.start, reading.unit, reading.kind, reading.measured = money[1], money[0], "money", True
            if money[0] == "CNY" and self.yen and text[money[1]] == "¥":
                reading.unit = "JPY"
        if reading.unit == "x" and _GROWN.search(text[max(self.floor, start - 8) : start]):
            reading.value, reading.direction = reading.value + 1, "up"
        read_sign(self.text, reading, self.floor)
        return reading

    def _unsigned(self, start: int) -> int:
        return start - 1 if start > self.floor and self.text[start - 1] in SIGNS else start

    def _tenths(self, value: Decimal, place: Decimal, amount: Amount, end: int) -> tuple[Decimal, Decimal, int]:
        """成 and 折: 三成 is 30 %, 三成五 35 %, 八折 80 %, 八五折 85 %."""
        half = self.text[end : end + 1]
        if self.text[end - 1] == "成" and half and half in "一二三四五六七八九半" and value < 10:
            following = chinese.DIGITS.get(half, Decimal(5))
            if self.text[end + 1 : end + 2] not in {"个", "家", "万", "千", "百", "亿", "十"}:
                return value * 10 + following, ONE, end + 1
        if self.text[end - 1] == "折" and value >= 10:
            return value, place, end
        return value * 10, place * 10, end

    def _half_after(self, reading: Reading) -> None:
        """两年半, 三倍半, 两个半小时: half a unit more."""
        text, end = self.text, reading.end
        if (
            reading.unit in {"年", "个月", "x", "小时", "天", "周"}
            and text[end : end + 1] == "半"
            and text[end + 1 : end + 2] not in {"导", "径"}
        ):
            reading.value, reading.place, reading.end = reading.value + Decimal("0.5"), Decimal("0.1"), end + 1
        elif (
            reading.unit == "个"
            and text[end : end + 1] == "半"
            and (match := re.compile(r"半(小时|月|世纪)").match(text, end))
        ):
            reading.value, reading.place, reading.end = reading.value + Decimal("0.5"), Decimal("0.1"), match.end()
            reading.unit, reading.measured = {"月": "个月"}.get(match[1], match[1]), True

    # Joining --------------------------------------------------------------------------------------------------------

    def _joined(self, found: list[Reading | Excluded]) -> list[Reading | Excluded]:
        joined: list[Reading | Excluded] = []
        for item in found:
            last = joined[-1] if joined else None
            if isinstance(item, Reading) and isinstance(last, Reading) and joins_range(self.text, last, item):
                merged = merge_range(last, item)
                if merged is not None:
                    joined[-1] = merged
                    continue
            if isinstance(item, Reading) and isinstance(last, Reading):
                merged = merge_proportion(self.text, last, item)
                if merged is not None:
                    joined[-1] = merged
                    continue
            joined.append(item)
        return joined

    def numeral(self, item: Reading | Excluded) -> Numeral:
        """The final value, with the interval; the sign moves the interval to the other side."""
        words = self.original[item.start : item.end]
        if isinstance(item, Excluded):
            return Numeral(
                words, item.start, item.end, item.value, item.value, item.value, conclusion=False, reason=item.reason
            )
        negative = item.value < 0 and item.bounds is None
        if negative:
            item.value = -item.value
        low, high = interval(item)
        value = item.value
        if negative:
            value, low, high = -value, -high, -low
        return Numeral(
            words, item.start, item.end, value, low, high, item.unit, item.kind, item.direction, item.signed, item.hedge
        )
