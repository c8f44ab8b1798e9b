"""A value as a reader sees it: the one place where a number becomes text.

Decided here, and the same every time:

- Thousands are separated by commas; rounding is half up, at the digits asked for (`%.1`), else the card's precision.
  Without either, a value keeps its own digits up to six significant ones (never fewer than two decimals' worth).
- `%`, `‰`, `bp`, `pp`, `x` and currencies are part of the value and are shown with it (`12.3 %`, `$1,234.50`). Any
  other unit (`flights`, `件`) is a noun that the author writes; it appears when the number is opened.
- Chinese: no space before `%`, currency follows as a word (`123.4万元`, `50美元`), points are 个百分点.
- A scale (`万`, `M`) keeps the unit; digits unless given: two below ten, else one, more only below one.
- No value is `—`. Dates and times are ISO 8601 in every language.
- Text is shown whole up to a limit, and characters that could reorder or hide text are shown as `⟨U+202E⟩`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from learngraph_kernel.evidence.citations import SCALES, Format
from learngraph_kernel.evidence.values import Value

NOTHING = "—"
LONGEST_TEXT = 300
SIGNIFICANT = 6
PLAIN_UP_TO = 21  # digits before the point beyond which a number is shown in scientific form

PREFIXES: dict[str, str] = {
    "USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "HKD": "HK$", "TWD": "NT$", "KRW": "₩", "INR": "₹",
    "AUD": "A$", "CAD": "CA$", "NZD": "NZ$", "BRL": "R$", "MXN": "MX$",
}  # fmt: skip
CHINESE_WORDS: dict[str, str] = {
    "USD": "美元", "EUR": "欧元", "GBP": "英镑", "JPY": "日元", "CNY": "元", "HKD": "港元", "TWD": "新台币",
    "KRW": "韩元", "INR": "卢比", "AUD": "澳元", "CAD": "加元",
}  # fmt: skip
UNITS: dict[str, str] = {
    "$": "USD", "US$": "USD", "美元": "USD", "€": "EUR", "欧元": "EUR", "£": "GBP", "英镑": "GBP", "¥": "CNY",
    "元": "CNY", "人民币": "CNY", "RMB": "CNY", "日元": "JPY", "港元": "HKD", "％": "%", "percent": "%", "bps": "bp",
    "个百分点": "pp", "percentage points": "pp", "倍": "x",
}  # fmt: skip
SUFFIXES: dict[str, tuple[str, str]] = {
    "%": (" %", "%"), "‰": (" ‰", "‰"), "bp": (" bp", "个基点"), "pp": (" pp", "个百分点"), "x": ("x", "倍"),
}  # fmt: skip

# Controls, soft hyphen, zero-width space, directional marks, embeddings, isolates, tags, byte order mark, private use:
# whatever is invisible and changes how the text around it reads (Unicode UAX 9, UTS 39). The joiners of
# emoji and Persian (U+200C, U+200D) stay.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ue000-\uf8ff\ud800-\udfff\U000e0000-\U000e007f]"
)


class Unshowable(ValueError):
    """The value cannot be shown in the format asked for; the message says why and `remedy` what would work."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Style:
    """What the display of one value depends on besides the value: language, unit and precision of its card."""

    language: str = "en"
    unit: str | None = None
    precision: int | None = None

    @property
    def chinese(self) -> bool:
        return self.language.lower().startswith("zh")


def display(value: Value, style: Style | None = None, shape: Format | None = None) -> str:
    """The text for a value.

    Takes the value, the style of its source and the format asked for. Raises Unshowable when the format does not fit.
    """
    style, shape = style or Style(), shape or Format()
    if value is None:
        return NOTHING
    number = as_number(value)
    if number is None:
        if shape != Format():
            raise Unshowable(f"{_kind(value)} has no scale, percent or digits", "leave the format out")
        return _plain(value, style)
    return _number(number, style, shape)


def as_number(value: Value) -> Decimal | None:
    """A finite number as an exact decimal (a float through its shortest form); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return None


def exact(value: Value, language: str = "en") -> str:
    """The value with every digit it has, grouped; for the opened number."""
    number = as_number(value)
    if number is None:
        return display(value, Style(language))
    return _digits(number, max(0, -_exponent(number)))


def canonical_unit(unit: str | None) -> str | None:
    """`元` → `CNY`, `％` → `%`; a unit without a canonical form stays as it is."""
    return unit if unit is None else UNITS.get(unit, UNITS.get(unit.strip(), unit.strip()))


def noun_of(unit: str | None) -> str | None:
    """The unit when it is a noun that `display` leaves out (`flights`); None for one it shows (`%`, `USD`)."""
    canonical = canonical_unit(unit)
    shown = canonical is None or canonical in SUFFIXES or re.fullmatch(r"[A-Z]{3}", canonical) is not None
    return None if shown else canonical


def safe_text(text: str, *, limit: int = LONGEST_TEXT) -> str:
    """Text with unseen characters made visible, cut to `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", cut.replace("\r\n", "\n"))


def _number(number: Decimal, style: Style, shape: Format) -> str:
    unit = canonical_unit(style.unit)
    digits = shape.digits if shape.digits is not None else style.precision
    if shape.percent:
        number, unit, digits = _percent(number, unit, shape.digits, style.precision)
    if shape.scale:
        if unit in SUFFIXES:
            raise Unshowable(f"a value in {unit} has no scale", "leave the scale out")
        number = number.scaleb(-SCALES[shape.scale], Context(prec=200))
        digits = shape.digits if shape.digits is not None else _scaled_digits(number)
    body = _digits(number, _own_digits(number) if digits is None else digits)
    return _with_unit(body + (shape.scale or ""), unit, chinese=style.chinese or _is_chinese(shape.scale), style=style)


def _percent(
    number: Decimal, unit: str | None, asked: int | None, precision: int | None
) -> tuple[Decimal, str, int | None]:
    if unit == "%":
        return number, "%", asked if asked is not None else precision
    if unit is not None:
        raise Unshowable(f"a value in {unit} is no percentage", "leave the % out")
    number = number.scaleb(2, Context(prec=200))
    fallback = 1 if precision is None else max(0, precision - 2)
    return number, "%", asked if asked is not None else fallback


def _with_unit(body: str, unit: str | None, *, chinese: bool, style: Style) -> str:
    if unit in SUFFIXES:
        return body + SUFFIXES[unit][1 if style.chinese else 0]
    if unit in CHINESE_WORDS and chinese:
        return body + CHINESE_WORDS[unit]
    if unit in PREFIXES:
        sign, digits = ("-", body[1:]) if body.startswith("-") else ("", body)
        return sign + PREFIXES[unit] + digits
    if unit is not None and re.fullmatch(r"[A-Z]{3}", unit):  # another ISO 4217 code
        return f"{body} {unit}"
    return body


def _digits(number: Decimal, digits: int) -> str:
    with localcontext(Context(prec=max(60, len(number.as_tuple().digits) + digits + 40))):
        if number.adjusted() >= PLAIN_UP_TO:
            return f"{number.normalize():.{SIGNIFICANT - 1}e}".replace("e+", "e")
        rounded = number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
        return f"{rounded if rounded else abs(rounded):,f}"  # no "-0.0"


def _own_digits(number: Decimal) -> int:
    """Decimals when nobody said how many: those the number has, up to six significant ones, at least two kept."""
    own = max(0, -_exponent(number))
    if own == 0 or not number:
        return min(own, SIGNIFICANT)
    allowed = max(2, SIGNIFICANT - 1 - number.adjusted())
    if own <= allowed:
        return own
    with localcontext(Context(prec=200)):
        rounded = number.quantize(Decimal(1).scaleb(-allowed), rounding=ROUND_HALF_UP).normalize()
    return max(0, -_exponent(rounded))


def _scaled_digits(number: Decimal) -> int:
    if not number:
        return 0
    leading = number.adjusted()
    wanted = 1 if leading >= 1 else 2 if leading == 0 else min(6, 2 - leading)
    with localcontext(Context(prec=200)):
        rounded = number.quantize(Decimal(1).scaleb(-wanted), rounding=ROUND_HALF_UP).normalize()
    return max(0, -_exponent(rounded))


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _is_chinese(scale: str | None) -> bool:
    return scale is not None and not scale.isascii()


def _plain(value: Value, style: Style) -> str:
    if isinstance(value, bool):
        return ("是" if value else "否") if style.chinese else ("yes" if value else "no")
    if isinstance(value, float | Decimal):
        text = str(value).lower()
        return {"inf": "∞", "-inf": "-∞", "infinity": "∞", "-infinity": "-∞"}.get(text, "NaN")
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "minutes" if value.second == value.microsecond == 0 else "auto")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, dt.time):
        return value.isoformat("minutes" if value.second == value.microsecond == 0 else "auto")
    if isinstance(value, dt.timedelta):
        return str(value)
    if isinstance(value, bytes):
        return f"0x{value[:16].hex()}" + ("…" if len(value) > 16 else "")
    return safe_text(str(value))


def _kind(value: Value) -> str:
    return "text" if isinstance(value, str) else f"a value of type {type(value).__name__}"
