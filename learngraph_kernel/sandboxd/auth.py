"""Who is calling, and what this call may do.

Who: the peer's uid, which the kernel tells (SO_PEERCRED), or the subject of a service token; never a field of a body.
What: an execution ticket. A user mints one for a scope (one session, one run, or all that is theirs), for some
effects and a short time. It never changes afterwards and nothing can be done with it that its minter could not do, so
holding a ticket gives no way to a wider one: minting needs the user. Its secret is a MAC over its id; the database
holds no secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from learngraph_kernel.sandbox.answers import BadRequest, Forbidden, Unauthenticated
from learngraph_kernel.sandbox.service_tokens import check_token

EFFECTS = ("observe", "files", "exec", "lifecycle", "grant", "kernel")
"""What calls do: look; put and delete files; run commands; create, start, stop, delete; permit deletions; kernels."""

MAX_TICKET_LIFE = 86_400.0
_SCOPE = re.compile(r"owner|(session|run):[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of the socket, as the kernel knows it; pid 0 when it is in another namespace."""

    pid: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user.

    Attributes:
        owner: `uid:1000`, or `user:ana` by token.
        peer: the process that calls.
        effects: the widest tickets they may mint.
    """

    owner: str
    peer: Peer
    effects: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ticket:
    """What one ticket allows; immutable.

    Attributes:
        scope: `owner`, `session:…` or `run:…`.
        expires: unix seconds.
    """

    id: str
    owner: str
    scope: str
    effects: frozenset[str]
    expires: float

    def allows(self, effect: str, scopes: Iterable[str]) -> bool:
        """Whether it covers an effect on something that has one of these scopes."""
        return effect in self.effects and (self.scope == "owner" or self.scope in scopes)


def peer_of(connection: socket.socket) -> Peer:
    """SO_PEERCRED (unix(7))."""
    size = struct.calcsize("3i")
    return Peer(*struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)))


class Authenticator:
    """Decides who calls.

    Args:
        own_uid: the daemon's.
        admit: see `Settings.admit`.
        keys: folder of public keys; read at every token, so that a key can be added or revoked while it runs.
    """

    def __init__(self, own_uid: int, admit: str, keys: Path) -> None:
        self._own, self._admit, self._keys = own_uid, admit, keys

    def caller(self, peer: Peer, authorization: str | None, now: float) -> Caller:
        """The user, from the token if there is one, else from the peer. Raises Unauthenticated."""
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            if scheme != "LearnGraph":
                raise _unknown()
            identity = check_token(token, self._public_keys(), now=now)
            every = frozenset(EFFECTS)
            allowed = every if identity.effects is None else every & identity.effects
            return Caller(f"user:{identity.subject}", peer, allowed)
        if peer.uid in (0, self._own) or self._admit == "group":
            return Caller(f"uid:{peer.uid}", peer, frozenset(EFFECTS))
        raise _unknown()

    def _public_keys(self) -> dict[str, Ed25519PublicKey]:
        keys: dict[str, Ed25519PublicKey] = {}
        for path in sorted(self._keys.glob("*.pub")) if self._keys.is_dir() else ():
            try:
                key = load_pem_public_key(path.read_bytes())
            except (OSError, ValueError, UnsupportedAlgorithm):
                continue  # a file that is no key signs for nobody
            if isinstance(key, Ed25519PublicKey):
                keys[path.stem] = key
        return keys


def check_request(scope: object, effects: object, ttl: object, caller: Caller) -> tuple[str, frozenset[str], float]:
    """What a ticket is asked for. Raises BadRequest, Forbidden."""
    if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
        raise BadRequest("scope must be 'owner', 'session:NAME' or 'run:NAME'", code="bad_scope")
    if not isinstance(effects, list) or not effects or not set(map(str, effects)) <= set(EFFECTS):
        raise BadRequest(f"effects must be a list of: {', '.join(EFFECTS)}", code="bad_effects")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= MAX_TICKET_LIFE:
        raise BadRequest(f"ttl must be seconds up to {MAX_TICKET_LIFE:.0f}", code="bad_ttl")
    wanted = frozenset(map(str, effects))
    if not wanted <= caller.effects:
        raise Forbidden("your service token does not allow these effects", code="effects_exceed_token")
    return scope, wanted, float(ttl)


def ticket_text(identity: str, secret: bytes) -> str:
    """What the holder of a ticket presents."""
    return f"{identity}.{hmac.new(secret, identity.encode(), hashlib.sha256).hexdigest()}"


def ticket_id(presented: str | None, secret: bytes) -> str:
    """The id of an authentic ticket, compared in constant time. Raises Unauthenticated."""
    identity = (presented or "").partition(".")[0]
    if presented is None or not hmac.compare_digest(
        ticket_text(identity, secret).encode(), presented.encode("utf-8", "replace")
    ):
        raise Unauthenticated(
            "this call needs an execution ticket" if presented is None else "this execution ticket is not valid here",
            code="ticket_missing" if presented is None else "ticket_invalid",
            remedy="mint one with POST /v1/tickets",
            zh=("此调用需要有效的执行票据", "请通过 POST /v1/tickets 申请"),
        )
    return identity


def check_ticket(ticket: Ticket, caller: Caller, effect: str, scopes: Iterable[str], now: float) -> None:
    """Refuses what the ticket does not cover. Raises Unauthenticated (expired), Forbidden."""
    if now >= ticket.expires:
        raise Unauthenticated(
            "the execution ticket has expired",
            code="ticket_expired",
            remedy="mint a new one with POST /v1/tickets",
            zh=("执行票据已过期", "请通过 POST /v1/tickets 重新申请"),
        )
    if ticket.owner != caller.owner or not ticket.allows(effect, scopes):
        raise Forbidden(
            f"the execution ticket does not allow {effect!r} here",
            code="ticket_refused",
            remedy="the user can mint one for this session or run with that effect",
            zh=("执行票据不允许此操作", "可由用户为该会话或运行申请包含此权限的票据"),
        )


def _unknown() -> Unauthenticated:
    return Unauthenticated(
        "sandboxd does not know who is calling",
        code="unauthenticated",
        remedy="call as the user who runs sandboxd, or with a service token (Authorization: LearnGraph …)",
        zh=("sandboxd 无法识别调用者", "请以运行 sandboxd 的用户身份调用，或使用服务令牌"),
    )
