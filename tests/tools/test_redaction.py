from __future__ import annotations

import base64
import time
from urllib.parse import quote

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.tools.redaction import MASK, Redactor

SECRET = "pa ss/wörd+1"


@pytest.mark.parametrize("spelling", [SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode()])
def test_a_registered_secret_is_masked_however_it_is_spelled(spelling: str) -> None:
    redactor = Redactor([SECRET])
    assert redactor.text(f"before {spelling} after") == f"before {MASK} after"
    assert redactor.value({"a": [f"x{spelling}"], spelling: 1}) == {"a": [f"x{MASK}"], MASK: 1}


def test_of_two_secrets_that_begin_alike_nothing_of_the_longer_one_is_left() -> None:
    assert Redactor(["secret", "secret-longer"]).text("secret-longer secret") == f"{MASK} {MASK}"


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(BadInput):
        Redactor(["abc"])


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("key sk-abcdefghijklmnop1234 ok", f"key {MASK} ok"),
        ("ghp_abcdefghijklmnopqrst1234", MASK),
        ("AKIAABCDEFGHIJKLMNOP", MASK),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", MASK),
        ("Authorization: Bearer abcdefghijklmnop", f"Authorization: Bearer {MASK}"),
        ("postgres://ana:hunter2@db/shop", f"postgres://ana:{MASK}@db/shop"),
        ('{"password": "hunter22"}', f'{{"password": "{MASK}"}}'),
        ("api_key=abcdef123456&x=1", f"api_key={MASK}&x=1"),
        ("PASSWORD = 'correct horse'", f"PASSWORD = '{MASK}'"),
        ("password: hunter22\nuser: ana", f"password: {MASK}\nuser: ana"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nrest", f"{MASK}\nrest"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", MASK),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, left: str) -> None:
    assert Redactor().text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "a" * 64,
        "artifact 6f1ed002ab5595859014ebf0951522d9e3b0c44298fc1c149afbf4c8996fb924",
        "tokens: 123456",
        "select password_hash from users",
        "https://example.org/a:b@c",
        "我的密码是什么",
        "pwd = os.getcwd()",
        "token = get_token2()",
        "token = tokens[0]",
        "secret: everybody knows",
        "password = getpass.getpass('password: ')",
    ],
)
def test_references_and_ordinary_words_are_left(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "piece",
    ["x", "a://", "a:", "eyJ", "eyJaaaaaaaa.", "-----BEGIN ", "token=", "token=a", "pwd: '", "sk-", "a.b@", "="],
)
def test_no_text_takes_long(piece: str) -> None:
    begin = time.process_time()
    Redactor([SECRET]).text(piece * 100_000)
    assert time.process_time() - begin < 2.5  # quadratic time is more than 5 s of processor already for the shortest


def test_named_arguments_are_masked_at_any_depth_and_whole() -> None:
    value = {"body": {"pin": [1, 2]}, "pin": 1234, "other": 1, "password": "x"}
    masked = {"body": {"pin": MASK}, "pin": MASK, "other": 1, "password": MASK}
    assert Redactor().value(value, frozenset({"pin"})) == masked
