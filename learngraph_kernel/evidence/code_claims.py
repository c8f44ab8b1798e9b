"""Numbers in back-ticks and fences: which are code, and which are a claim in a typewriter face.

`where delay > 15` is code and `v1.2` a name; `45 flights`, `up 45 %` and `share = 0.084` are statements that only look
like code. A number in code counts as a claim when a unit, a percent sign or a currency makes it one, when it is what a
name is said to equal, or when nothing around it is code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from learngraph_kernel.evidence.code_spans import CodeRange
from learngraph_kernel.evidence.numerals.numeral import Numeral

ReadNumerals = Callable[[str], Sequence[Numeral]]

WHOLE_NUMBER = re.compile(r"\W{0,4}\d[\d.,'\u00a0 _]*\s?[\w%％‰$€£¥]{0,3}", re.UNICODE)
_CODE_SIGN = re.compile(r"[=<>(){}\[\];*\"'\\_|@]|::|[-+/] *[A-Za-z(]")
_CODE_WORD = re.compile(
    r"\s*(?:select|limit|offset|fetch|group by|order by|partition by|having|when|then|else|return|between|interval"
    r"|import|def|round|cast|count|sum|avg|pip|learngraph|python|make|git|sort|head|tail)\b",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"\s*([^\W\d][\w .%-]{0,60}?)\s*(?:=|==|:=|:|≈|≃|~|→|->|=>|is|was)\s*[-+−]?[$€£¥]?\d[\d.,_ ]*\s*[%\w]{0,8}\s*"
)
_OPERAND = re.compile(r"\s*[\w(]")


def claims_in_code(
    span: CodeRange, read_numerals: ReadNumerals, known_names: Collection[str]
) -> Iterator[Numeral | None]:
    """The claims in one stretch of code; None stands for the whole of it.

    `known_names` are the tables and columns of the run, lower case: a condition on a column (`cancelled = 1`) is code.
    """
    if span.inline and WHOLE_NUMBER.fullmatch(span.content):
        yield None
        return
    for line in span.content.split("\n"):
        yield from _in_line(line, read_numerals, known_names)


def _in_line(line: str, read_numerals: ReadNumerals, known_names: Collection[str]) -> Iterator[Numeral]:
    if assigned := _ASSIGNED.fullmatch(line):
        is_condition = assigned.group(1).strip().casefold() in known_names and re.search(r"\D\d{1,2}\s*\Z", line)
        yield from () if is_condition else [found for found in read_numerals(line) if found.conclusion]
        return
    is_code = _CODE_SIGN.search(line) is not None or _CODE_WORD.match(line) is not None or " " not in line.strip()
    for numeral in read_numerals(line):
        if numeral.conclusion and (not is_code or _has_unit(line, numeral) or numeral.text == line.strip()):
            yield numeral


def _has_unit(line: str, numeral: Numeral) -> bool:
    """A unit that is no operator: `45 % up`; but not `n % 45`, `45 % 7`, `1e6`, `limit 10 offset 5`."""
    if numeral.kind == "percent" and numeral.text.endswith("%"):
        return _OPERAND.match(line, numeral.end) is None
    return numeral.kind in ("percent", "points", "multiple", "money") or numeral.unit is not None
