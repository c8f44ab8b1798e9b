"""The instance's key: made once, private, the same for everybody who asks at once."""

from __future__ import annotations

import hashlib
import multiprocessing
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from learngraph_kernel.runs.keys import (
    PRIVATE_NAME,
    PUBLIC_NAME,
    KeyUnusable,
    NotAPublicKey,
    PublicKey,
    Signer,
    load_or_create_signer,
    trusted_keys,
)


def test_the_key_is_made_on_first_use_and_kept(tmp_path: Path) -> None:
    first = load_or_create_signer(tmp_path / "keys")
    again = load_or_create_signer(tmp_path / "keys")
    assert first.public == again.public
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == [PRIVATE_NAME, PUBLIC_NAME]


def test_only_its_owner_can_read_the_private_key(tmp_path: Path) -> None:
    load_or_create_signer(tmp_path)
    assert stat.S_IMODE((tmp_path / PRIVATE_NAME).stat().st_mode) == 0o600


def test_the_fingerprint_is_the_hash_of_the_public_key_in_der(tmp_path: Path) -> None:
    signer = load_or_create_signer(tmp_path)
    der = signer.private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert signer.public.keyid == hashlib.sha256(der).hexdigest()
    assert PublicKey.from_pem((tmp_path / PUBLIC_NAME).read_bytes()) == signer.public


def _fingerprint(keys: Path, start: object, answers: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    answers.put(load_or_create_signer(keys).public.keyid)  # type: ignore[attr-defined]


def test_processes_that_come_at_once_get_the_same_key(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        start, answers = context.Barrier(6), context.Queue()
        arguments = (tmp_path / str(attempt), start, answers)
        processes = [context.Process(target=_fingerprint, args=arguments) for _ in range(6)]
        for process in processes:
            process.start()
        found = {answers.get(timeout=20) for _ in processes}
        for process in processes:
            process.join()
        assert len(found) == 1
        assert len(list((tmp_path / str(attempt)).iterdir())) == 2


def test_a_key_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    load_or_create_signer(tmp_path)
    (tmp_path / PRIVATE_NAME).chmod(0o644)
    with pytest.raises(KeyUnusable, match="chmod 600"):
        load_or_create_signer(tmp_path)


@pytest.mark.parametrize(
    "damage", [b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"\xff" * 40]
)
def test_a_damaged_key_is_refused_and_not_replaced(tmp_path: Path, damage: bytes) -> None:
    load_or_create_signer(tmp_path)
    (tmp_path / PRIVATE_NAME).write_bytes(damage)
    with pytest.raises(KeyUnusable, match="restore it"):
        load_or_create_signer(tmp_path)
    assert (tmp_path / PRIVATE_NAME).read_bytes() == damage


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / PRIVATE_NAME).write_bytes(pem)
    (tmp_path / PRIVATE_NAME).chmod(0o600)
    with pytest.raises(KeyUnusable):
        load_or_create_signer(tmp_path)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(NotAPublicKey, match="Ed25519"):
        PublicKey.from_pem(public)


def test_a_public_key_that_does_not_fit_is_written_again(tmp_path: Path) -> None:
    signer = load_or_create_signer(tmp_path)
    (tmp_path / PUBLIC_NAME).write_bytes(b"something else")
    load_or_create_signer(tmp_path)
    assert (tmp_path / PUBLIC_NAME).read_bytes() == signer.public.pem


def test_keys_that_a_person_adds_are_trusted(tmp_path: Path) -> None:
    own = load_or_create_signer(tmp_path)
    colleague = Signer.of(Ed25519PrivateKey.generate())
    (tmp_path / "colleague.pub").write_bytes(colleague.public.pem)
    assert set(trusted_keys(tmp_path)) == {own.public.keyid, colleague.public.keyid}
    assert trusted_keys(tmp_path / "none") == {}
