"""Secrets, encrypted at rest: a table of ciphertexts, and beside the database the key that only its owner can read.

Nothing here prints or returns a secret but `reveal`, which is for the moment of use; whoever calls it tells the
redactor first. Fernet is the `cryptography` package's recipe (AES-128-CBC with HMAC-SHA256).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select

from learngraph_kernel.errors import BadInput, Unavailable
from learngraph_kernel.store.clock import to_text
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.schema import secrets as table
from learngraph_kernel.store.writer import Batch

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")
SHORTEST, LONGEST = 6, 16_384
KEY_FILE = "vault.key"


class BadSecret(BadInput):
    """A secret's name or value cannot be kept."""

    code = "bad_secret"


class UnknownSecret(Unavailable):
    """There is no secret of this name."""

    code = "unknown_secret"


class VaultLocked(Unavailable):
    """The vault's key is missing, or is not the one that the secrets were encrypted with."""

    code = "vault_locked"


class Vault:
    """The secrets of one home."""

    def __init__(self, store: Store, home: Home) -> None:
        self._store, self._key_file = store, home.keys / KEY_FILE

    def put(self, name: str, value: str, *, actor: str) -> None:
        """Keeps a secret, or replaces it. Raises BadSecret, VaultLocked."""
        if not NAME.match(name):
            raise BadSecret(f"{name!r} is no name for a secret", remedy="a letter, then letters, digits, - and _")
        if not SHORTEST <= len(value) <= LONGEST or not value.isprintable():
            remedy = f"give {SHORTEST} to {LONGEST:,} printable characters"
            raise BadSecret("the value is not one that can be kept and masked", where=name, remedy=remedy)
        token = self._fernet(create=True).encrypt(value.encode())

        def work(batch: Batch) -> None:
            batch.connection.execute(delete(table).where(table.c.name == name))
            row = {
                "name": name,
                "ciphertext": token.decode(),
                "changed_at": to_text(batch.clock()),
                "changed_by": actor,
            }
            batch.connection.execute(table.insert().values(**row))

        with self._store.unit_of_work(actor) as unit:
            unit.change(work)
            unit.audit("secret.set", name)

    def remove(self, name: str, *, actor: str) -> None:
        """Forgets a secret. Raises UnknownSecret."""
        self._row(name)

        def work(batch: Batch) -> None:
            batch.connection.execute(delete(table).where(table.c.name == name))

        with self._store.unit_of_work(actor) as unit:
            unit.change(work)
            unit.audit("secret.removed", name)

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """Name, when and by whom; never a value, not even a part of one."""
        columns = (table.c.name, table.c.changed_at, table.c.changed_by)
        return [dict(row) for row in self._store.rows(select(*columns).order_by(table.c.name))]

    def reveal(self, name: str) -> str:
        """The value, for use. Raises UnknownSecret, VaultLocked."""
        from cryptography.fernet import InvalidToken

        ciphertext = str(self._row(name)["ciphertext"]).encode()
        try:
            value: bytes = self._fernet().decrypt(ciphertext)
        except InvalidToken as error:
            raise _locked(
                "the vault's key is another one than the secret was encrypted with", self._key_file
            ) from error
        return value.decode()

    def _row(self, name: str) -> Mapping[str, Any]:
        rows = self._store.rows(select(table).where(table.c.name == name))
        if not rows:
            raise UnknownSecret(f"there is no secret {name!r}", remedy=f"learngraph secret set {name}")
        return rows[0]

    def _fernet(self, *, create: bool = False) -> Any:
        from cryptography.fernet import Fernet

        try:
            return Fernet(_read(self._key_file))
        except FileNotFoundError as error:
            if not create or self._store.rows(select(table.c.name).limit(1)):
                raise _locked("the vault's key is missing", self._key_file) from error
        except ValueError as error:
            raise _locked("the vault's key is damaged", self._key_file) from error
        _create(self._key_file, Fernet.generate_key())
        return Fernet(_read(self._key_file))


def _locked(what: str, path: Path) -> VaultLocked:
    remedy = "restore the file, or remove the secrets (learngraph secret remove NAME) and set them again"
    return VaultLocked(what, where=str(path), remedy=remedy)


def _read(path: Path) -> bytes:
    """Raises FileNotFoundError, VaultLocked when others may read it."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o077
        if mode:
            raise VaultLocked("others may read the vault's key", where=str(path), remedy=f"chmod 600 {path}")
        return file.read().strip()


def _create(path: Path, key: bytes) -> None:
    """Whole or not at all, and only once: of two processes the first one's key counts."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        temporary.unlink()
