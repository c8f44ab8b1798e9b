"""The instance's Ed25519 key: made once, kept at `<home>/keys/`, named by its fingerprint.

A key's id (its *fingerprint*) is the SHA-256 of its DER SubjectPublicKeyInfo, so it can be computed from the public key
alone. `cryptography` is used directly: `securesystemslib.signer` would add 0.3 to 0.6 s of imports to every sealed run,
and what it would save is the five lines of DSSE's pre-authentication encoding (see `seal.py`; a test checks that
securesystemslib reads our envelopes).
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from learngraph_kernel.canonical import sha256_hex
from learngraph_kernel.errors import BadInput, LearnGraphError

PRIVATE_NAME = "signing-key.pem"
PUBLIC_NAME = "signing-key.pub"
_PEM_REMEDY = "put an Ed25519 public key in PEM there, such as the key.pub of an exported run"


class KeyUnusable(LearnGraphError):
    """The instance's signing key is there but cannot be used."""

    code = "signing_key_unusable"


class NotAPublicKey(BadInput):
    """The bytes are no Ed25519 public key in PEM."""

    code = "not_a_public_key"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key.

    Attributes:
        der: SubjectPublicKeyInfo (RFC 8410).
        keyid: SHA-256 of `der`, 64 hex digits; the fingerprint people compare.
    """

    der: bytes
    keyid: str

    @classmethod
    def of(cls, key: Ed25519PublicKey) -> PublicKey:
        """The public key in our terms."""
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return cls(der, sha256_hex(der))

    @classmethod
    def from_pem(cls, pem: bytes, *, where: str = "public key") -> PublicKey:
        """Reads PEM. Raises NotAPublicKey, naming `where`."""
        try:
            key = serialization.load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise NotAPublicKey("not a PEM public key", where=where, remedy=_PEM_REMEDY) from error
        if not isinstance(key, Ed25519PublicKey):
            raise NotAPublicKey("the key is not Ed25519", where=where, remedy=_PEM_REMEDY)
        return cls.of(key)

    @property
    def pem(self) -> bytes:
        """The one PEM spelling that counts."""
        return self._key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the signature over the message is this key's."""
        try:
            self._key().verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def _key(self) -> Ed25519PublicKey:
        key = serialization.load_der_public_key(self.der)
        assert isinstance(key, Ed25519PublicKey)
        return key


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key that signs, with its public half."""

    private: Ed25519PrivateKey
    public: PublicKey

    @classmethod
    def of(cls, private: Ed25519PrivateKey) -> Signer:
        """A signer for a key that is already in memory."""
        return cls(private, PublicKey.of(private.public_key()))

    def sign(self, message: bytes) -> bytes:
        """64 bytes, RFC 8032."""
        return self.private.sign(message)


def load_or_create_signer(keys: Path) -> Signer:
    """The instance's signer, made on first use; two processes at once end up with the same key.

    Args:
        keys: the folder `<home>/keys`.

    Raises:
        KeyUnusable: the key file is damaged, or readable by others.
    """
    path = keys / PRIVATE_NAME
    if not path.exists():
        keys.mkdir(parents=True, exist_ok=True, mode=0o700)
        _create(path)
    signer = _load(path)
    public = keys / PUBLIC_NAME
    if not public.exists() or public.read_bytes() != signer.public.pem:
        _replace(public, signer.public.pem)
    return signer


def trusted_keys(keys: Path) -> dict[str, Path]:
    """Fingerprint → file of every public key in the folder: the instance's own and those a person put there."""
    return {PublicKey.from_pem(path.read_bytes(), where=str(path)).keyid: path for path in sorted(keys.glob("*.pub"))}


def _create(path: Path) -> None:
    """A new key at `path`; whoever comes first wins (link(2) never replaces)."""
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    temporary = _written(path, pem, 0o600)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was first: its key is the instance's key
    finally:
        temporary.unlink()
    _sync_folder(path.parent)


def _load(path: Path) -> Signer:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise KeyUnusable(
            f"the signing key can be read by others (mode {mode:04o})", where=str(path), remedy=f"chmod 600 {path}"
        )
    try:
        private = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unusable(path) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise _unusable(path)
    return Signer.of(private)


def _unusable(path: Path) -> KeyUnusable:
    return KeyUnusable(
        "the signing key is not an unencrypted Ed25519 key in PEM",
        where=str(path),
        remedy="restore it from a backup, or move it away so that a new key is made (older runs keep their own key)",
    )


def _replace(path: Path, data: bytes) -> None:
    _written(path, data, 0o644).replace(path)
    _sync_folder(path.parent)


def _written(path: Path, data: bytes, mode: int) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
