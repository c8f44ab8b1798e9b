"""Reading numbers in English and Chinese prose: pure text in, `Numeral` values out. Start at `numeral`, then `reader`.

The interval (`low` to `high`) that a wording means. It serves to find what a number may rest on, so it is always finite
and as narrow as usage allows. v is the stated value; *place* is the worth of the last written digit (`8.1` → 0.1,
`1.5亿` → 0.1亿); *last significant* the worth of the last digit that is not zero (`1,200` → 100):

| wording | interval |
|---|---|
| decimals, scale words from thousand up, percent, money, measures (`8.1`, `1.5亿`, `12 minutes`) | v ± place / 2 |
| an integer without scale, with or without a counted thing (`1,200`, `3 flights`, 三个航班) | v exactly |
| fraction (½, two-thirds, 三分之二, 一半) | v ± 0.005 |
| doubled, halved, 翻一番 | v ± 2.5 % of v (`3x`, 3倍 are rounded as written) |
| about, around, ~, 约, 左右 | v ± greatest of rounding, last significant / 2 (≤ 10 % of v), place (≤ 5 % of v) |
| over, more than, above, 超过, 逾 | v to v + last significant (at most 20 % of v, at least one place) |
| 余, 多 (两千余, 20多万) | v to v + last significant: the remainder below the next unit |
| under, nearly, almost, less than, 近, 不足 | v − last significant (same bounds) to v |
| at least, 至少, 以上 | as over, and down to the rounding of v |
| at most, up to, 至多, 以下 | as under, and up to the rounding of v |
| range (3–5 %, between 3 and 5, 三至五成, 两三天) | its ends; `value` is the midpoint |

Signs: `signed` negative values have the interval on the negative side. A verb's direction is kept apart in
`direction` and never changes the value. `x` is always the ratio new : old, so that 增长了两倍 is 3 and 翻两番 is 4.
"""

from __future__ import annotations

from learngraph_kernel.evidence.numerals.numeral import Direction, Numeral
from learngraph_kernel.evidence.numerals.reader import read_numerals
from learngraph_kernel.evidence.numerals.render import NotRenderable, render

__all__ = ["Direction", "NotRenderable", "Numeral", "read_numerals", "render"]
