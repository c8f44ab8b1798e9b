"""Canonical bytes and their hashes: the one place where a value becomes something that can be signed.

JSON is canonicalised by RFC 8785 (JCS). Values JSON has no type for travel tagged, so that nothing loses precision on
the way through a socket, a ledger or a seal: `{"$decimal": "1.10"}`, `{"$int": "9007199254740993"}`,
`{"$float": "nan" | "inf" | "-inf" | "1e+17"}`, `{"$date": …}`, `{"$datetime": …}`, `{"$time": …}`,
`{"$bytes": base64}`, `{"$seconds": …}` (a duration). An object whose own key starts with `$` is refused.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from learngraph_kernel.errors import BadInput

JSON_SAFE_INTEGER = 2**53 - 1  # RFC 8785 section 3.2.2.3: IEEE 754 double


class NotCanonical(BadInput):
    """The value has no canonical form."""

    code = "not_canonical"


def canonical_json(value: Any) -> bytes:
    """RFC 8785 bytes of a JSON value (already encoded by `encode_value`)."""
    import rfc8785

    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise NotCanonical(f"value cannot be canonicalised: {error}") from error


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes, 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of a JSON value."""
    return sha256_hex(canonical_json(value))


def encode_value(value: Any) -> Any:
    """A Python value as tagged JSON; the inverse of `decode_value`."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= JSON_SAFE_INTEGER else {"$int": str(value)}
    if isinstance(value, float):
        # RFC 8785 writes 1e17 as 100000000000000000, which reads back as an integer that has no canonical form.
        return value if math.isfinite(value) and abs(value) <= JSON_SAFE_INTEGER else {"$float": str(value)}
    if isinstance(value, Mapping):
        return {_plain_key(key): encode_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode_value(item) for item in value]
    return _encode_scalar(value)


def _plain_key(key: Any) -> str:
    if not isinstance(key, str) or key.startswith("$"):
        raise NotCanonical(f"object key {key!r} must be a string that does not start with '$'")
    return key


def _encode_scalar(value: Any) -> dict[str, str]:
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, dt.datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, dt.date):
        return {"$date": value.isoformat()}
    if isinstance(value, dt.time):
        return {"$time": value.isoformat()}
    if isinstance(value, dt.timedelta):
        return {"$seconds": str(Decimal(value // dt.timedelta(microseconds=1)) / 1_000_000)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise NotCanonical(f"a value of type {type(value).__name__} does not travel")


_DECODERS: dict[str, Any] = {
    "$int": int,
    "$float": float,
    "$decimal": Decimal,
    "$date": dt.date.fromisoformat,
    "$datetime": dt.datetime.fromisoformat,
    "$time": dt.time.fromisoformat,
    "$seconds": lambda text: dt.timedelta(microseconds=int(Decimal(text) * 1_000_000)),
    "$bytes": base64.b64decode,
}


def decode_value(value: Any) -> Any:
    """Tagged JSON back to Python values."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((key, text),) = value.items()
            if key in _DECODERS:
                return _DECODERS[key](text)
        return {key: decode_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    return value
