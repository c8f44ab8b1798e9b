# ruff: noqa: E501 - tables of words and patterns read better unbroken
"""Numbers written in English words: `twenty-one`, `two hundred and five`, `one and a half million`, `two-thirds`.

A small hand-written grammar over words, because word numbers nest (`two hundred and five thousand`) and because `and`
joins only where a hundred, thousand or million stands before it (`between two and three` are two numbers).
"""

from __future__ import annotations

import re
from decimal import Decimal

from learngraph_kernel.evidence.numerals.reading import ONE, ZERO, Amount

SMALL = {
    word: Decimal(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
TENS = {
    word: Decimal(10 * (index + 2))
    for index, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
SCALES = {
    "hundred": Decimal(100),
    "thousand": Decimal(10) ** 3,
    "lakh": Decimal(10) ** 5,
    "lakhs": Decimal(10) ** 5,
    "million": Decimal(10) ** 6,
    "crore": Decimal(10) ** 7,
    "crores": Decimal(10) ** 7,
    "billion": Decimal(10) ** 9,
    "trillion": Decimal(10) ** 12,
}
DOZEN = {"dozen": Decimal(12)}
PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8, "ninth": 9,
    "ninths": 9, "tenth": 10, "tenths": 10, "hundredth": 100, "hundredths": 100,
}  # fmt: skip
MULTIPLES = {
    "doubled": 2, "doubles": 2, "doubling": 2, "double": 2, "twice": 2, "twofold": 2, "tripled": 3, "triples": 3,
    "tripling": 3, "triple": 3, "trebled": 3, "trebling": 3, "threefold": 3, "thrice": 3, "quadrupled": 4, "quadrupling": 4,
    "quadruple": 4, "fourfold": 4, "quintupled": 5, "fivefold": 5, "sixfold": 6, "sevenfold": 7, "eightfold": 8,
    "tenfold": 10, "halved": 0, "halving": 0, "halves": 0,
}  # fmt: skip
VAGUE = frozenset("tens dozens hundreds thousands millions billions trillions".split())
NUMBER_WORDS = frozenset(SMALL) | frozenset(TENS) | frozenset(SCALES)
LEADS = NUMBER_WORDS | {"a", "an", "half", "dozen", "quarter"}

_WORD = re.compile(r"[ \u2009\u202f-]?([A-Za-z]++)")
_JOIN = re.compile(r"[ -]+")
_FREE_FRACTION = re.compile(
    r"\s*(?:[.,;:!?)，。]|$|of\b|points?\b|percentage\b|the\b|as\b|less\b|more\b|lower\b|higher\b|fewer\b|than\b|in\b|from\b|to\b|on\b|year\b|"
    r"against\b|compared\b|its\b|their\b|a\b|an\b|all\b|that\b|this\b|were\b|was\b|are\b|is\b|over\b|since\b|"
    r"drop\b|fall\b|rise\b|increase\b|decline\b|cut\b|reduction\b|and\b|or\b|last\b|at\b|for\b|versus\b|above\b|below\b)",
    re.IGNORECASE,
)


def _next_word(text: str, position: int) -> tuple[str, int]:
    match = _WORD.match(text, position)
    return (match.group(1).lower(), match.end()) if match else ("", position)


def read_words(text: str, start: int) -> Amount | None:
    """The number in words at `start` (a word of `LEADS`), or None when the word is no number here."""
    word, end = _first_word(text, start)
    if word in {"a", "an"}:
        return _after_article(text, end)
    if word == "half":
        return _half(text, end)
    if word in DOZEN:
        return Amount(end, Decimal(12), ONE, form="words")
    if word not in NUMBER_WORDS or word in SCALES:
        return None
    amount = _below_hundred(text, start)
    if amount is None:
        return None
    return _grow(text, amount, apart=text[max(0, start - 8) : start].lower() == "between ")


def _first_word(text: str, start: int) -> tuple[str, int]:
    match = re.compile(r"[A-Za-z]++").match(text, start)
    return (match.group().lower(), match.end()) if match else ("", start)


def _after_article(text: str, end: int) -> Amount | None:
    word, after = _next_word(text, end)
    if word in SCALES or word in DOZEN:
        amount = _scale_on(text, ONE, end, form="words")
        return None if amount is None else _and_a_half(text, amount)
    if word in {"half", "quarter"} or (word in PARTS and not word.endswith("s")):
        if word == "quarter" and not re.match(
            r" of (?!the year\b|[0-9]{4}\b|growth\b)|[.,;]|[ -](?:percentage[ -])?points?\b| (?:less|more|lower|higher|fewer)\b",
            text[after : after + 20],
        ):
            return None
        if word != "half" and not _FREE_FRACTION.match(text, after):
            return None
        return _scale_on(text, ONE / PARTS[word], after, form="fraction")
    return None


def _half(text: str, end: int) -> Amount | None:
    """`half`, `half a million`, `half a dozen`, `half of`; not `half-time`, `half past`, `the first half`."""
    scaled = re.match(
        r" an? (million|billion|thousand|hundred|trillion|dozen|percent|per cent|percentage|point|year|hour|day|month|minute|mile|century)\b",
        text[end : end + 16],
        re.IGNORECASE,
    )
    half = ONE / 2
    if scaled:
        factor = {**SCALES, **DOZEN}.get(scaled[1].lower())
        if factor is None:
            return Amount(end + scaled.start(1) - 1, half, Decimal("0.1"), form="words")
        exact = factor <= 100
        return Amount(end + scaled.end(), half * factor, ONE if exact else factor / 10, scaled=not exact, form="words")
    if re.match(
        r"-(?!million|billion|thousand|percent|point|year|hour|day)[A-Za-z]| past\b| time\b| way\b| [0-9]",
        text[end : end + 12],
    ):
        return None
    return Amount(end, half, Decimal("0.01"), form="fraction")


def _below_hundred(text: str, start: int) -> Amount | None:
    word, end = _first_word(text, start)
    if word in SMALL:
        return Amount(end, SMALL[word], ONE, form="words")
    if word not in TENS:
        return None
    unit, after = _next_word(text, end)
    if unit in SMALL and ZERO < SMALL[unit] < 10:
        return Amount(after, TENS[word] + SMALL[unit], ONE, form="words")
    return Amount(end, TENS[word], ONE, form="words")


def _grow(text: str, first: Amount, *, apart: bool) -> Amount:
    """From the leading `twenty-one` on: fractions, `point five`, `and a half`, scales, further groups.

    `apart`: after `between`, where `and` always separates.
    """
    word, after = _next_word(text, first.end)
    if word in PARTS and (word.endswith("s") or first.value == 1):
        if not (
            word in {"quarter", "quarters"}
            and not re.match(r" of\b| (?:less|more|lower|higher)\b|[.,;]", text[after : after + 9])
            and text[first.end] == " "
        ) and (word.endswith("s") or text[first.end] == "-" or _FREE_FRACTION.match(text, after)):
            return Amount(after, first.value / PARTS[word], Decimal("0.01"), form="fraction")
        return first
    amount = _point(text, first)
    amount = _and_a_half(text, amount)
    total, group, end, place, scaled = ZERO, amount.value, amount.end, amount.place, False
    limit = Decimal(10) ** 15
    while True:
        word, after = _next_word(text, end)
        if word in SCALES:
            factor = SCALES[word]
            if factor == 100:
                group, place = group * 100, place * 100
            elif factor < limit:
                total, group, limit = total + group * factor, ZERO, factor
                place, scaled = place * factor, True
            else:
                break
            end = after
            continue
        ceiling = ZERO if apart else (Decimal(100) if group >= 100 else limit)
        more = _next_group(text, end, bool(total) or group >= 100, ceiling, limit)
        if more is None or more.value == 0:
            break
        group, end, place, scaled = group + more.value, more.end, ONE, False
    return Amount(end, total + group, place if scaled else min(place, ONE), scaled=scaled, form="words")


def _next_group(text: str, end: int, after_scale: bool, ceiling: Decimal, limit: Decimal) -> Amount | None:
    """A following `(and) five` of the same number; `one hundred and two hundred` are two, `one hundred and two thousand` is one.

    `ceiling`: a scale word from here up begins another number, except that hundreds may still be multiplied up to `limit`.
    """
    if not after_scale:
        return None
    word, after = _next_word(text, end)
    joined = word == "and"
    if joined:
        word, _ = _next_word(text, after)
    gap = _JOIN.match(text, after if joined else end)
    if gap is None or word not in (SMALL.keys() | TENS.keys()):
        return None
    more = _below_hundred(text, gap.end())
    if more is None:
        return None
    scale = SCALES.get(_next_word(text, more.end)[0]) if joined else None
    if scale is None:
        return more
    separate = ceiling == 0 or scale >= limit or (scale == 100 and ceiling == 100)
    return None if separate else more


def _point(text: str, amount: Amount) -> Amount:
    word, after = _next_word(text, amount.end)
    if word != "point":
        return amount
    digits, end = "", after
    while True:
        word, after = _next_word(text, end)
        if word not in SMALL or SMALL[word] >= 10:
            break
        digits, end = digits + str(SMALL[word]), after
    if not digits:
        return amount
    place = ONE.scaleb(-len(digits))
    return Amount(end, amount.value + int(digits) * place, place, form="words")


def _and_a_half(text: str, amount: Amount) -> Amount:
    match = re.match(
        r" and (?:a|one)[ -](half|quarter|third)\b|-and-a-(half|quarter|third)\b| and three[ -](quarters)\b",
        text[amount.end : amount.end + 24],
        re.IGNORECASE,
    )
    if match is None:
        return amount
    part = Decimal(3) / 4 if match[3] else ONE / PARTS[(match[1] or match[2]).lower()]
    unit = amount.place if amount.scaled else ONE
    return Amount(amount.end + match.end(), amount.value + part * unit, unit / 10, scaled=amount.scaled, form="words")


def _scale_on(text: str, value: Decimal, end: int, *, form: str) -> Amount | None:
    """`value` with the scale words that follow (`a hundred thousand`, `a quarter million`)."""
    place, scaled, found = ONE, False, False
    while True:
        word, after = _next_word(text, end)
        factor = SCALES.get(word) or DOZEN.get(word)
        if factor is None:
            break
        value, place, end, found = value * factor, place * factor, after, True
        scaled = scaled or factor >= 1000
    if form == "fraction" and not found:
        return Amount(end, value, Decimal("0.01"), form="fraction")
    if not scaled:
        more = _next_group(text, end, True, Decimal(100), Decimal(100))
        if more is not None and value == 100:
            return Amount(more.end, value + more.value, ONE, form="words")
        place = ONE
    return Amount(end, value, place if form == "words" else place / 10, scaled=scaled, form="words")
