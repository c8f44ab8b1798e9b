"""A number that was written can be read and written again: events and content documents are."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from learngraph_kernel.canonical import canonical_json, decode_value, encode_value


@given(st.floats() | st.integers())
def test_every_number_survives_writing_and_reading_twice(value: Any) -> None:
    once = canonical_json(encode_value(value))
    read = json.loads(once)
    assert canonical_json(read) == once
    again = decode_value(read)
    assert again == value or (math.isnan(again) and math.isnan(value))
