"""Verifying a sealed folder: whatever is done to it is found and named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from learngraph_kernel.canonical import canonical_json, digest, sha256_hex
from learngraph_kernel.runs.folder import RunParts, UnsafeName, holds, parts_of_folder, write_folder
from learngraph_kernel.runs.keys import Signer
from learngraph_kernel.runs.records import artifacts_named
from learngraph_kernel.runs.seal import Envelope, seal_run, seal_run_in_store
from learngraph_kernel.runs.stored import parts_of_run
from learngraph_kernel.runs.verify import Verification, verify_parts
from learngraph_kernel.store.database import Home, Store
from tests.runs.sample_run import ACTOR, OTHER_RUN, RUN, SIGNER, SNAPSHOT, record_run


@pytest.fixture
def files(pristine: dict[str, dict[str, bytes]]) -> dict[str, bytes]:
    return dict(pristine[RUN])


def verify(files: dict[str, bytes], **options: Any) -> Verification:
    return verify_parts(RunParts("folder", {name: holds(data) for name, data in files.items()}), **options)


def named(verification: Verification) -> set[str]:
    return {finding.where for finding in verification.findings}


def codes(verification: Verification) -> set[str]:
    return {finding.code for finding in verification.findings}


def test_an_untouched_folder_verifies(files: dict[str, bytes]) -> None:
    verification = verify(files)
    assert verification.findings == ()
    assert verification.ok
    assert (verification.run_id, verification.signer, verification.trust) == (RUN, SIGNER.public.keyid, "none")
    assert (verification.events, verification.later_events) == (8, 2)
    assert verification.content_hash == sha256_hex(files["content.json"])


def test_a_run_verifies_in_the_store_without_copying(sealed_store: Store) -> None:
    assert verify_parts(parts_of_run(sealed_store, RUN)).ok


def test_every_flipped_byte_of_every_file_is_found_and_its_file_named(files: dict[str, bytes]) -> None:
    missed = []
    for name, data in files.items():
        for at in range(len(data)):
            flipped = bytearray(data)
            flipped[at] ^= (0x01, 0x20, 0x80, 0xFF)[at % 4]
            verification = verify({**files, name: bytes(flipped)}, hashers=1)
            if not any(place.split(",")[0] == name for place in named(verification)):
                missed.append((name, at, named(verification)))
    assert missed == []


def test_every_dropped_file_is_named(files: dict[str, bytes]) -> None:
    for name in files:
        verification = verify({other: data for other, data in files.items() if other != name})
        assert name in named(verification), name
        assert "file_missing" in codes(verification)


@pytest.mark.parametrize("name", ["artifacts/" + "0" * 64, "notes.txt", "artifacts/sub/x", "ledger.jsonl.bak"])
def test_an_extra_file_is_named(files: dict[str, bytes], name: str) -> None:
    verification = verify({**files, name: b"x"})
    assert (codes(verification), named(verification)) == ({"file_extra"}, {name})


def test_two_swapped_artifacts_are_named_with_each_other(files: dict[str, bytes]) -> None:
    first, second = sorted(name for name in files if name.startswith("artifacts/"))[:2]
    files[first], files[second] = files[second], files[first]
    verification = verify(files)
    by_place = {finding.where: finding.what for finding in verification.findings if finding.code == "file_altered"}
    assert second in by_place[first]
    assert first in by_place[second]


def lines_of(files: dict[str, bytes], name: str = "ledger.jsonl") -> list[bytes]:
    return files[name].splitlines(keepends=True)


EDITS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str, int]] = {
    "the first dropped": (lambda lines: lines[1:], "event_missing", 1),
    "one in the middle dropped": (lambda lines: lines[:3] + lines[4:], "event_missing", 4),
    "the last dropped": (lambda lines: lines[:-1], "event_missing", 8),
    "one repeated": (lambda lines: lines[:3] + lines[2:], "event_added", 3),
    "one repeated at the end": (lambda lines: [*lines, lines[1]], "event_added", 2),
    "two neighbours swapped": (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], "event_reordered", 3),
    "the first moved to the end": (lambda lines: [*lines[1:], lines[0]], "event_reordered", 1),
    "one altered": (
        lambda lines: [*lines[:3], lines[3].replace(b"select 1", b"select 2"), *lines[4:]],
        "event_altered",
        4,
    ),
    "a blank put in": (lambda lines: [lines[0].replace(b'","', b'", "', 1), *lines[1:]], "event_altered", 1),
    "an empty line put in": (lambda lines: [*lines[:2], b"\n", *lines[2:]], "event_altered", 3),
    "the last line's end cut": (lambda lines: [*lines[:-1], lines[-1][:-1]], "event_altered", 8),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_ledger_is_named_by_event(files: dict[str, bytes], edit: str) -> None:
    change, code, seq = EDITS[edit]
    lines = change(lines_of(files))
    verification = verify({**files, "ledger.jsonl": b"".join(lines)})
    assert f"ledger.jsonl, event {seq}" in {f.where for f in verification.findings if f.code == code}


def rewritten(line: bytes, **changes: Any) -> bytes:
    """An event changed by someone who also makes its hash fit."""
    body = {**json.loads(line), **changes}
    del body["hash"]
    return canonical_json({**body, "hash": digest(body)}) + b"\n"


def test_an_event_rewritten_with_a_fitting_hash_is_named(files: dict[str, bytes]) -> None:
    lines = lines_of(files)
    lines[3] = rewritten(lines[3], actor="user:mallory")
    verification = verify({**files, "ledger.jsonl": b"".join(lines)})
    assert "ledger.jsonl, event 4" in {f.where for f in verification.findings if f.code == "event_replaced"}


def test_an_event_forged_onto_the_end_is_named(files: dict[str, bytes]) -> None:
    lines = lines_of(files)
    last = json.loads(lines[-1])
    lines.append(rewritten(lines[-1], seq=last["seq"] + 1, prev=last["hash"]))
    verification = verify({**files, "ledger.jsonl": b"".join(lines)})
    assert "ledger.jsonl, event 9" in {f.where for f in verification.findings if f.code == "event_added"}


def test_a_chain_rewritten_from_end_to_end_is_not_the_sealed_one(files: dict[str, bytes]) -> None:
    lines, previous = [], "0" * 64
    for line in lines_of(files):
        lines.append(rewritten(line, actor="user:mallory", prev=previous))
        previous = json.loads(lines[-1])["hash"]
    verification = verify({**files, "ledger.jsonl": b"".join(lines)})
    assert {"ledger_head", "file_altered", "predicate_disagrees"} <= codes(verification)


@pytest.mark.parametrize("edit", ["dropped first", "swapped", "unmarked"])
def test_events_after_the_seal_are_chained_to_it(files: dict[str, bytes], edit: str) -> None:
    lines = lines_of(files, "after_seal.jsonl")
    changed = {
        "dropped first": lines[1:],
        "swapped": lines[::-1],
        "unmarked": [lines[0], rewritten(lines[1], after_seal=False)],
    }[edit]
    verification = verify({**files, "after_seal.jsonl": b"".join(changed)})
    assert {place.split(",")[0] for place in named(verification)} == {"after_seal.jsonl"}


@pytest.mark.parametrize("names", [("seal.dsse.json",), ("seal.dsse.json", "after_seal.jsonl")])
def test_the_envelope_of_another_run_is_found(
    files: dict[str, bytes], pristine: dict[str, dict[str, bytes]], names: tuple[str, ...]
) -> None:
    verification = verify({**files, **{name: pristine[OTHER_RUN][name] for name in names}})
    assert "predicate_disagrees" in codes(verification)
    assert any("'run'" in finding.what for finding in verification.findings)


def test_the_signature_of_another_run_is_invalid(
    files: dict[str, bytes], pristine: dict[str, dict[str, bytes]]
) -> None:
    own = Envelope.from_bytes(files["seal.dsse.json"])
    other = Envelope.from_bytes(pristine[OTHER_RUN]["seal.dsse.json"])
    files["seal.dsse.json"] = Envelope(own.payload, own.keyid, other.signature).to_bytes()
    assert "signature_invalid" in codes(verify(files))


@pytest.mark.parametrize("name", ["seal.dsse.json", "key.pub"])
def test_another_spelling_of_seal_or_key_is_named(files: dict[str, bytes], name: str) -> None:
    verification = verify({**files, name: files[name] + b"\n"})
    assert any(f.where == name and f.code.endswith("not_canonical") for f in verification.findings)


def resealed(files: dict[str, bytes], signer: Signer, **changed: bytes) -> dict[str, bytes]:
    """The run sealed again by whoever holds a key, after changing files."""
    files = {**files, **changed}
    predicate = Envelope.from_bytes(files["seal.dsse.json"]).statement["predicate"]
    unsealed = {"seal.dsse.json", "key.pub", "after_seal.jsonl"}
    digests = {name: sha256_hex(data) for name, data in files.items() if name not in unsealed}
    envelope = seal_run(digests, predicate, signer).to_bytes()
    lines = lines_of(files, "after_seal.jsonl")
    data = {"envelope": sha256_hex(envelope), "key": sha256_hex(signer.public.pem)}
    return {
        **files,
        "seal.dsse.json": envelope,
        "key.pub": signer.public.pem,
        "after_seal.jsonl": rewritten(lines[0], data=data),
    }


def test_a_run_resealed_with_another_key_is_found_when_the_key_is_pinned(files: dict[str, bytes]) -> None:
    forged = resealed(files, Signer.of(Ed25519PrivateKey.generate()))
    assert verify(forged).ok
    assert verify(forged).trust == "none"
    verification = verify(forged, pin=SIGNER.public.keyid)
    assert codes(verification) == {"signer_not_pinned"}


def test_a_pinned_and_an_own_key_are_said_to_be_trusted(files: dict[str, bytes]) -> None:
    assert verify(files, pin=SIGNER.public.keyid).trust == "pinned"
    assert verify(files, trusted=[SIGNER.public.keyid]).trust == "own"


@pytest.mark.parametrize(
    ("name", "old", "new", "word"),
    [
        ("notebook.ipynb", b"6077 flights", b"9999 flights", "count: output"),
        ("notebook.ipynb", b"select 1", b"select 9", "count: code"),
        ("report.json", b"learngraph-report-v1", b"learngraph-report-v2", "report"),
        ("result.json", b"6077", b"9999", "result"),
        ("content.json", b'"week":7', b'"week":9', "parameter week: 9"),
        ("content.json", b'"sql":"select 2"', b'"sql":"select 3"', "input Q2: SQL"),
        ("content.json", b'"version":"1.0.0"', b'"version":"2.0.0"', "metric weekly/flights: version"),
    ],
)
def test_a_seal_over_files_that_disagree_is_found_even_when_signed(
    files: dict[str, bytes], name: str, old: bytes, new: bytes, word: str
) -> None:
    assert old in files[name]
    verification = verify(resealed(files, SIGNER, **{name: files[name].replace(old, new)}))
    assert any(word in finding.what for finding in verification.findings if finding.code == "content_disagrees")
    assert "ledger_disagrees" in codes(verification)


def test_a_link_in_the_folder_is_no_part_of_the_run(sealed_store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_folder(parts_of_run(sealed_store, RUN), folder)
    (folder / "result.json").rename(tmp_path / "result.json")
    (folder / "result.json").symlink_to(tmp_path / "result.json")
    os.mkfifo(folder / "pipe")
    verification = verify_parts(parts_of_folder(folder))
    assert {"result.json", "pipe"} <= named(verification)


def test_an_artifact_damaged_in_the_store_is_named(tmp_path: Path) -> None:
    with Store.open(Home(tmp_path / "home")) as own:
        record_run(own)
        seal_run_in_store(own, RUN, signer=SIGNER, actor=ACTOR)
        sha = sha256_hex(SNAPSHOT + bytes([7]))
        path = own.artifacts.path(sha)
        path.chmod(0o600)
        path.write_bytes(b"other")
        verification = verify_parts(parts_of_run(own, RUN))
        assert codes(verification) == {"file_altered"}
        assert named(verification) == {f"artifacts/{sha}"}
        path.unlink()
        assert codes(verify_parts(parts_of_run(own, RUN))) == {"file_missing"}


def test_a_partly_written_folder_is_never_left(sealed_store: Store, tmp_path: Path) -> None:
    parts = parts_of_run(sealed_store, RUN)

    def fails() -> Any:
        raise OSError(28, "No space left on device")

    broken = RunParts(parts.where, {**parts.files, "zzz": fails})
    with pytest.raises(OSError, match="No space"):
        write_folder(broken, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "payload",
    [
        {"subject": [], "predicate": {}},
        {"subject": [{"name": "x", "digest": {}}], "predicate": {}},
        {"subject": [1], "predicate": {}},
        {"subject": [], "predicate": {"ledger": {"events": 10**15, "head": 5}, "run": []}},
    ],
    ids=["lists nothing", "no digest", "no object", "absurd count"],
)
def test_a_malformed_statement_is_a_finding_and_not_a_crash(files: dict[str, bytes], payload: dict[str, Any]) -> None:
    own = Envelope.from_bytes(files["seal.dsse.json"])
    body = canonical_json({**own.statement, **payload})
    files["seal.dsse.json"] = Envelope(body, own.keyid, own.signature).to_bytes()
    assert "seal.dsse.json" in named(verify(files))


@pytest.mark.parametrize("name", ["../x", "artifacts/../../x", "/etc/x", "artifacts/a/b", ".hidden", ""])
def test_a_name_that_would_leave_the_folder_is_never_written(
    files: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    parts = RunParts("hostile", {**{own: holds(data) for own, data in files.items()}, name: holds(b"x")})
    with pytest.raises(UnsafeName):
        write_folder(parts, tmp_path / "in" / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_hash_names_no_artifact() -> None:
    data = {"result": {"$artifact": "../../x"}, "artifacts": ["/etc/passwd", 5, {"a": 1}, "a" * 64]}
    assert list(artifacts_named({"type": "call.completed", "data": data})) == ["a" * 64]


def test_an_empty_folder_that_was_added_is_named(files: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_folder(RunParts("run", {name: holds(data) for name, data in files.items()}), folder)
    (folder / "notes" / "old").mkdir(parents=True)
    verification = verify_parts(parts_of_folder(folder))
    assert (codes(verification), named(verification)) == ({"file_extra"}, {"notes/old"})
