"""Service tokens: how a hub, or a process of another user, tells sandboxd on whose behalf it calls.

`base64url(payload).base64url(signature)`: Ed25519 (RFC 8032) over the payload's bytes. The payload is JSON: `sub`
(the user), `aud` (always `learngraph-sandboxd`), `iat`, `exp` (unix seconds, at most 15 minutes apart), `kid` and, to
narrow what the tickets minted under it may allow, `effects`. sandboxd holds public keys only
(`<state>/service-keys/<kid>.pub`).
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from learngraph_kernel.sandbox.answers import Unauthenticated

AUDIENCE = "learngraph-sandboxd"
MAX_LIFE = 900.0
MAX_BYTES = 4096
CLOCK_SKEW = 30.0
_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a valid token says.

    Attributes:
        subject: the user.
        effects: the widest set of effects; None for all.
    """

    subject: str
    effects: frozenset[str] | None


def sign_token(
    key: Ed25519PrivateKey,
    kid: str,
    subject: str,
    *,
    now: float,
    life: float = 300.0,
    effects: Sequence[str] | None = None,
) -> str:
    """A token for `subject`, good for `life` seconds."""
    payload: dict[str, object] = {"sub": subject, "aud": AUDIENCE, "iat": now, "exp": now + life, "kid": kid}
    if effects is not None:
        payload["effects"] = sorted(effects)
    body = json.dumps(payload, separators=(",", ":"), sort_keys=True).encode()
    return f"{_encode(body)}.{_encode(key.sign(body))}"


def check_token(token: str, keys: Mapping[str, Ed25519PublicKey], *, now: float) -> Identity:
    """Who the token speaks for. Raises Unauthenticated, without saying which part was wrong but for expiry."""
    try:
        if len(token) > MAX_BYTES:
            raise ValueError("too long")
        encoded, _, signature = token.partition(".")
        body = _decode(encoded)
        payload = json.loads(body)
        keys[payload["kid"]].verify(_decode(signature), body)
        subject, issued, expires = payload["sub"], float(payload["iat"]), float(payload["exp"])
        effects = payload.get("effects")
        fine = (
            payload["aud"] == AUDIENCE
            and _SUBJECT.fullmatch(subject) is not None
            and 0 < expires - issued <= MAX_LIFE
            and issued <= now + CLOCK_SKEW
        )
        narrowed = None if effects is None else frozenset(map(str, effects))
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise _refused() from error
    if not fine:
        raise _refused()
    if now >= expires:
        raise Unauthenticated(
            "the service token has expired",
            code="token_expired",
            remedy="sign a new one; a token is good for at most 15 minutes",
            zh=("服务令牌已过期", "请重新签发；令牌最长有效 15 分钟"),
        )
    return Identity(subject, narrowed)


def _refused() -> Unauthenticated:
    return Unauthenticated(
        "the service token is not valid here",
        code="token_invalid",
        remedy="sign it with a key whose public half lies in sandboxd's service-keys folder",
        zh=("服务令牌无效", "请使用公钥已放入 sandboxd 的 service-keys 目录的密钥签发"),
    )


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
