"""What a person can name to `verify` and `export`: a run in the store, an exported folder, or a bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from learngraph_kernel.errors import BadInput
from learngraph_kernel.runs.bundle import is_bundle, page_findings, parts_of_bundle
from learngraph_kernel.runs.folder import RunParts, is_sealed_folder, parts_of_folder
from learngraph_kernel.runs.keys import PublicKey, trusted_keys
from learngraph_kernel.runs.stored import parts_of_run
from learngraph_kernel.runs.verify import Finding, Verification, verify_parts
from learngraph_kernel.store.errors import UnknownRun
from learngraph_kernel.store.home import Home

if TYPE_CHECKING:
    from learngraph_kernel.store.database import RunRecord, Store

_FINGERPRINT = frozenset("0123456789abcdef")


class NothingToVerify(BadInput):
    """The target is no run, no sealed folder and no bundle."""

    code = "nothing_to_verify"


@contextmanager
def opened(target: str, *, home: Home) -> Iterator[tuple[RunParts, Callable[[Verification], list[Finding]]]]:
    """The sealed files a person named, and what is to be checked of them beyond `verify_parts`.

    Args:
        target: path of an exported folder or a bundle, or the id of a run in the store.
        home: where the store is; it need not exist for a folder or a bundle.

    Raises:
        NothingToVerify: it is none of these.
        NotSealed: the run is in the store and has no seal.
    """
    path = Path(target)
    if path.is_dir():
        if not is_sealed_folder(path):
            raise _nothing(target, "the folder holds no sealed run")
        yield parts_of_folder(path), lambda _: []
    elif path.is_file():
        if not is_bundle(path):
            raise _nothing(target, "the file is no bundle")
        parts = parts_of_bundle(path)
        yield parts, lambda _: page_findings(path, parts)
    elif not home.database.exists():
        raise _nothing(target, "no such file or folder, and there are no runs here")
    else:
        from learngraph_kernel.store.database import Store

        with Store.open(home) as store:
            record = _record(store, target)
            yield parts_of_run(store, target), lambda verification: _record_findings(record, verification)


def verify(target: str, *, home: Home, pin: str | None = None) -> Verification:
    """Verifies whatever the target is; needs no server and no network.

    Args:
        target: as for `opened`.
        home: as for `opened`; its `keys` folder holds the keys this instance trusts.
        pin: fingerprint of the key that must have signed.

    Raises:
        NothingToVerify, NotSealed: as `opened`.
    """
    with opened(target, home=home) as (parts, more):
        return completed(verify_parts(parts, pin=pin, trusted=trusted_keys(home.keys)), more)


def verify_run(store: Store, run_id: str, *, pin: str | None = None) -> Verification:
    """Verifies a run in an open store, without copying; its row in the table of runs must say what its seal says.

    Raises:
        NothingToVerify: there is no such run.
        NotSealed: it has no seal.
    """
    record = _record(store, run_id)
    verification = verify_parts(parts_of_run(store, run_id), pin=pin, trusted=trusted_keys(store.home.keys))
    return completed(verification, lambda verification: _record_findings(record, verification))


def completed(verification: Verification, more: Callable[[Verification], list[Finding]]) -> Verification:
    """The verification with the findings that depend on where the files came from."""
    return replace(verification, findings=(*verification.findings, *more(verification)))


def _record(store: Store, run_id: str) -> RunRecord:
    try:
        return store.run(run_id)
    except UnknownRun as error:
        raise _nothing(run_id, "no such file or folder, and no such run") from error


def pinned_key(text: str) -> str:
    """The fingerprint that `--key` names: 64 hex digits, or a file with a PEM public key.

    Raises:
        NotAPublicKey: the file holds something else.
        BadInput: neither a fingerprint nor a file.
    """
    fingerprint = text.lower().removeprefix("sha256:")
    if len(fingerprint) == 64 and set(fingerprint) <= _FINGERPRINT:
        return fingerprint
    path = Path(text)
    if not path.is_file():
        raise BadInput(
            f"{text!r} is neither a fingerprint nor a file",
            where="--key",
            remedy="give the 64 hex digits of the key's fingerprint, or the path of a public key (PEM)",
        )
    return PublicKey.from_pem(path.read_bytes(), where=text).keyid


def _record_findings(record: RunRecord, verification: Verification) -> list[Finding]:
    said = {
        "content_hash": (verification.content_hash, record.content_hash),
        "tier": (verification.seal.get("tier"), record.tier),
    }
    return [
        Finding(
            "record_disagrees", f"the table of runs differs from the seal in {name!r}", f"runs, {name}", sealed, got
        )
        for name, (sealed, got) in said.items()
        if verification.seal and sealed != got
    ]


def _nothing(target: str, why: str) -> NothingToVerify:
    return NothingToVerify(
        why, where=target, remedy="name a run (learngraph list), a folder from `export --to`, or a bundle"
    )
