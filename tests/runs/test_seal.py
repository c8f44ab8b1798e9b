"""Sealing: what is signed, that it is deterministic, and that others can read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from learngraph_kernel.canonical import canonical_json, sha256_hex
from learngraph_kernel.runs.keys import Signer
from learngraph_kernel.runs.records import NotFinished
from learngraph_kernel.runs.seal import Envelope, EnvelopeUnreadable, SealIncomplete, seal_run, seal_run_in_store
from learngraph_kernel.store.database import Home, Store
from tests.runs.sample_run import ACTOR, RUN, SIGNER, record_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def sealed(store: Store) -> Envelope:
    info = seal_run_in_store(store, RUN, signer=SIGNER, actor=ACTOR)
    return Envelope.from_bytes(store.artifacts.read(info.envelope_sha))


def test_the_statement_lists_every_file_with_its_hash(store: Store) -> None:
    record_run(store)
    envelope = sealed(store)
    digests = {item["name"]: item["digest"]["sha256"] for item in envelope.statement["subject"]}
    artifacts = {name for name in digests if name.startswith("artifacts/")}
    assert set(digests) - artifacts == {
        "ledger.jsonl", "content.json", "notebook.ipynb", "report.json", "report.html", "result.json"
    }  # fmt: skip
    assert len(artifacts) == 4
    assert all(name == f"artifacts/{digests[name]}" for name in artifacts)
    sealed_events = [event for event in store.ledger.events(RUN) if not event.after_seal]
    ledger = b"".join(canonical_json(event.as_json()) + b"\n" for event in sealed_events)
    assert digests["ledger.jsonl"] == sha256_hex(ledger)


def test_the_predicate_says_what_when_and_by_whom(store: Store) -> None:
    record_run(store)
    predicate = sealed(store).statement["predicate"]
    last = list(store.ledger.events(RUN))[-2]
    assert predicate["ledger"] == {"events": 8, "head": last.hash}
    assert predicate["content"] == last.data["content"]
    assert (predicate["run"], predicate["tier"], predicate["status"]) == (RUN, "formal", "completed")
    assert (predicate["actor"], predicate["isolation"]) == (ACTOR, "host")
    assert predicate["started"] < predicate["finished"]


def test_the_seal_is_noted_after_the_seal_and_in_the_record(store: Store) -> None:
    record_run(store)
    info = seal_run_in_store(store, RUN, signer=SIGNER, actor=ACTOR)
    event = list(store.ledger.events(RUN))[-1]
    assert (event.type, event.after_seal, event.data["envelope"]) == ("run.sealed", True, info.envelope_sha)
    assert store.artifacts.read(event.data["key"]) == SIGNER.public.pem
    record = store.run(RUN)
    assert (record.seal, record.content_hash) == (info.envelope_sha, info.content_hash)


def test_sealing_twice_gives_the_first_seal(store: Store) -> None:
    record_run(store)
    first = seal_run_in_store(store, RUN, signer=SIGNER, actor=ACTOR)
    other = Signer.of(Ed25519PrivateKey.generate())
    assert seal_run_in_store(store, RUN, signer=other, actor=ACTOR) == first
    assert [event.type for event in store.ledger.events(RUN)].count("run.sealed") == 1


def test_a_run_that_has_not_ended_cannot_be_sealed(store: Store) -> None:
    record_run(store)
    store.ledger.append(RUN, "run.resumed", {"from_seq": 1}, actor=ACTOR)
    with pytest.raises(NotFinished):
        seal_run_in_store(store, RUN, signer=SIGNER, actor=ACTOR)


def test_a_failed_run_can_be_sealed(store: Store) -> None:
    record_run(store, closing="run.failed")
    assert sealed(store).statement["predicate"]["status"] == "failed"


def test_a_missing_artifact_stops_the_seal_and_is_named(store: Store) -> None:
    record_run(store)
    gone = next(store.ledger.events(RUN)).data["source"]
    store.artifacts.path(gone).unlink()
    with pytest.raises(SealIncomplete, match=gone):
        seal_run_in_store(store, RUN, signer=SIGNER, actor=ACTOR)


def test_the_same_statement_gives_the_same_envelope() -> None:
    files = {"b": "2" * 64, "a": "1" * 64}
    first = seal_run(files, {"run": "r_1"}, SIGNER).to_bytes()
    assert first == seal_run(dict(reversed(files.items())), {"run": "r_1"}, SIGNER).to_bytes()
    assert Envelope.from_bytes(first).to_bytes() == first


def test_securesystemslib_reads_and_verifies_our_envelope() -> None:
    dsse = pytest.importorskip("securesystemslib.dsse")
    from securesystemslib.signer import SSlibKey

    envelope = seal_run({"a": "1" * 64}, {"run": "r_1"}, SIGNER)
    theirs = dsse.Envelope.from_dict(json.loads(envelope.to_bytes()))
    key = SSlibKey(envelope.keyid, "ed25519", "ed25519", {"public": SIGNER.public.der[-32:].hex()})
    assert set(theirs.verify([key], 1)) == {SIGNER.public.keyid}


@pytest.mark.parametrize(
    "damage",
    [b"", b"{}", b"[]", b"null", b'{"payload":"e30=","payloadType":"x","signatures":[]}', b"\xff\xfe"],
    ids=["empty", "object", "list", "null", "no signature", "not text"],
)
def test_what_is_no_envelope_is_refused(damage: bytes) -> None:
    with pytest.raises(EnvelopeUnreadable):
        Envelope.from_bytes(damage)
