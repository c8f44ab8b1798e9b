"""Who may call and what a ticket allows: pure decisions, table by table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from learngraph_kernel.sandbox.answers import BadRequest, Forbidden, Unauthenticated
from learngraph_kernel.sandbox.service_tokens import sign_token
from learngraph_kernel.sandboxd.auth import (
    EFFECTS,
    Authenticator,
    Caller,
    Peer,
    Ticket,
    check_request,
    check_ticket,
    ticket_id,
    ticket_text,
)

NOW = 1_000_000.0
OWN = 1000
EVERY = frozenset(EFFECTS)
SECRET = b"s" * 32
ANA = Caller("user:ana", Peer(1, 33, 33), EVERY)


@pytest.fixture
def key(tmp_path: Path) -> Ed25519PrivateKey:
    private = Ed25519PrivateKey.generate()
    (tmp_path / "hub.pub").write_bytes(
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return private


def caller(keys: Path, *, uid: int = 33, token: str | None = None, admit: str = "owner", now: float = NOW) -> Caller:
    authorization = None if token is None else f"LearnGraph {token}"
    return Authenticator(OWN, admit, keys).caller(Peer(7, uid, uid), authorization, now)


@pytest.mark.parametrize(
    ("uid", "admit", "owner"),
    [(OWN, "owner", "uid:1000"), (0, "owner", "uid:0"), (33, "owner", None), (33, "group", "uid:33")],
)
def test_the_peer_decides_without_a_token(tmp_path: Path, uid: int, admit: str, owner: str | None) -> None:
    if owner is None:
        with pytest.raises(Unauthenticated):
            caller(tmp_path, uid=uid, admit=admit)
    else:
        assert caller(tmp_path, uid=uid, admit=admit).owner == owner


def test_a_token_names_the_user(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    assert caller(tmp_path, token=sign_token(key, "hub", "ana", now=NOW)).owner == "user:ana"


def test_a_token_narrows_what_may_be_minted(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    ana = caller(tmp_path, token=sign_token(key, "hub", "ana", now=NOW, effects=["observe", "made-up"]))
    assert ana.effects == {"observe"}
    with pytest.raises(Forbidden):
        check_request("owner", ["exec"], 60, ana)


def bad_tokens(key: Ed25519PrivateKey) -> dict[str, str]:
    good = sign_token(key, "hub", "ana", now=NOW)
    body, _, signature = good.partition(".")
    return {
        "expired": sign_token(key, "hub", "ana", now=NOW - 301),
        "not yet": sign_token(key, "hub", "ana", now=NOW + 60),
        "too long": sign_token(key, "hub", "ana", now=NOW, life=901),
        "unknown key": sign_token(key, "other", "ana", now=NOW),
        "foreign key": sign_token(Ed25519PrivateKey.generate(), "hub", "ana", now=NOW),
        "changed body": f"{body[:-2]}AA.{signature}",
        "changed signature": f"{body}.{signature[:-4]}AAAA",
        "no signature": body,
        "empty": "",
        "no base64": "%%%.%%%",
        "huge": "A" * 5000,
        "bad subject": sign_token(key, "hub", "../root", now=NOW),
        "owner's spelling": sign_token(key, "hub", "uid:0", now=NOW),
    }


@pytest.mark.parametrize("case", bad_tokens(Ed25519PrivateKey.generate()))
def test_a_bad_token_is_refused_even_for_the_owner(tmp_path: Path, key: Ed25519PrivateKey, case: str) -> None:
    with pytest.raises(Unauthenticated):
        caller(tmp_path, uid=0, token=bad_tokens(key)[case])


def test_a_revoked_key_signs_for_nobody(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    token = sign_token(key, "hub", "ana", now=NOW)
    (tmp_path / "hub.pub").unlink()
    with pytest.raises(Unauthenticated):
        caller(tmp_path, token=token)


def ticket(scope: str = "session:s1", effects: tuple[str, ...] = ("exec",), owner: str = "user:ana") -> Ticket:
    return Ticket("t_1", owner, scope, frozenset(effects), NOW + 60)


@pytest.mark.parametrize(
    ("held", "effect", "scopes", "now", "refusal"),
    [
        (ticket(), "exec", ["session:s1"], NOW, None),
        (ticket("owner"), "exec", ["session:s1"], NOW, None),
        (ticket("owner"), "exec", [], NOW, None),
        (ticket(), "exec", ["session:s2"], NOW, Forbidden),
        (ticket(), "exec", [], NOW, Forbidden),
        (ticket(), "grant", ["session:s1"], NOW, Forbidden),
        (ticket("run:s1"), "exec", ["session:s1"], NOW, Forbidden),
        (ticket(owner="user:bob"), "exec", ["session:s1"], NOW, Forbidden),
        (ticket(), "exec", ["session:s1"], NOW + 60, Unauthenticated),
    ],
)
def test_a_ticket_covers_its_owner_scope_effects_and_time(
    held: Ticket, effect: str, scopes: list[str], now: float, refusal: type[Exception] | None
) -> None:
    if refusal is None:
        check_ticket(held, ANA, effect, scopes, now)
    else:
        with pytest.raises(refusal):
            check_ticket(held, ANA, effect, scopes, now)


def test_only_the_secret_makes_a_ticket() -> None:
    good = ticket_text("t_1", SECRET)
    assert ticket_id(good, SECRET) == "t_1"
    for bad in (None, "", "t_1", "t_1.", good[:-1], good + "0", good.replace("t_1", "t_2"), "t_1." + "0" * 64, "é.é"):
        with pytest.raises(Unauthenticated):
            ticket_id(bad, SECRET)


@pytest.mark.parametrize(
    ("scope", "effects", "ttl"),
    [
        ("everything", ["exec"], 60),
        ("session:", ["exec"], 60),
        ("session:a b", ["exec"], 60),
        (None, ["exec"], 60),
        ("owner", [], 60),
        ("owner", ["sudo"], 60),
        ("owner", "exec", 60),
        ("owner", ["exec"], 0),
        ("owner", ["exec"], 1e9),
        ("owner", ["exec"], True),
        ("owner", ["exec"], float("nan")),
    ],
)
def test_a_ticket_that_makes_no_sense_is_not_minted(scope: object, effects: object, ttl: object) -> None:
    with pytest.raises(BadRequest):
        check_request(scope, effects, ttl, ANA)
