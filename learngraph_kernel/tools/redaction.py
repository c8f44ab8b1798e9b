"""What must not be shown: named arguments, secrets that the platform knows, and texts that look like credentials.

References to artifacts (64 hex digits) are not secrets and are never masked by their look.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from learngraph_kernel.errors import BadInput

MASK = "•••"
SHORTEST_SECRET = 6
"""Shorter texts are not registered: masking each `abc` would destroy what is shown, and the gaps would tell."""

# Every pattern starts where a word does and has bounded parts, so that no text takes more than linear time.
_LOOKS_LIKE_A_TOKEN = re.compile(
    "|".join((
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bxox[abposr]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # JSON Web Token
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    ))
)  # fmt: skip
_CARRIED = re.compile(r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}")
_IN_URL = re.compile(r"((?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/:@]{0,200}:)[^\s/@]+(?=@)")
_NAMED = (
    r"(?i)\b((?:password|passwd|pwd|secret|client_secret|token|access_token|refresh_token|api[_-]?key)[\"']?"
    r"[ \t]{0,20}[=:][ \t]{0,20}"
)
_QUOTED = re.compile(_NAMED + r"[\"'])[^\"'\n]{6,200}(?=[\"'])")
# With a digit and no call after it: `pwd = os.getcwd()` and `token = get_token2()` are code, not credentials.
_BARE = re.compile(_NAMED + r")(?=[A-Za-z_+/=~-]{0,200}[0-9])[A-Za-z0-9_+/=~-]{8,}(?![\w.(\[])")
_SECRET_KEYS = frozenset(
    "password passwd pwd secret client_secret token access_token refresh_token api_key apikey authorization private_key"
    " set-cookie cookie".split()
)


class Redactor:
    """Masks secrets in text and JSON. One for a runtime; whoever decrypts a secret registers it here first."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: re.Pattern[str] | None = None
        self._spellings: set[str] = set()
        for secret in secrets:
            self.register(secret)

    def register(self, secret: str) -> None:
        """From now on this text is masked, also percent-encoded and in base64. Raises BadInput when it is too short."""
        if len(secret) < SHORTEST_SECRET:
            raise BadInput(
                f"a secret of fewer than {SHORTEST_SECRET} characters cannot be masked",
                remedy="use a longer one; so short a secret protects nothing",
            )
        encoded = base64.b64encode(secret.encode()).decode()
        self._spellings |= {secret, quote(secret, safe=""), encoded, encoded.rstrip("=")}
        longest_first = sorted(self._spellings, key=lambda spelling: (-len(spelling), spelling))
        self._known = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        """The text with every secret and everything that looks like one masked."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        text = _LOOKS_LIKE_A_TOKEN.sub(MASK, text)
        for pattern in (_CARRIED, _IN_URL, _QUOTED, _BARE):
            text = pattern.sub(rf"\g<1>{MASK}", text)
        return text

    def value(self, value: Any, names: frozenset[str] = frozenset()) -> Any:
        """The JSON value, masked; what stands under one of `names` (or a name like `password`) goes whole."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self._member(key, item, names) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, names) for item in value]
        return value

    def _member(self, key: str, item: Any, names: frozenset[str]) -> Any:
        if key in names or (key.lower() in _SECRET_KEYS and isinstance(item, str) and item):
            return MASK
        return self.value(item, names)
