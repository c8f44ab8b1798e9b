"""The seal: an in-toto statement about every file of a run, in a DSSE envelope signed by the instance.

in-toto Statement v1 and DSSE v1.0.2 as published; both the payload and the envelope are canonical JSON, so an envelope
has exactly one spelling and a changed blank in it is as visible as a changed hash.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.runs.keys import PublicKey, Signer
from learngraph_kernel.runs.records import ARTIFACTS, LEDGER, gather_digest
from learngraph_kernel.store.errors import RunChanged

if TYPE_CHECKING:
    from learngraph_kernel.store.database import Store

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:learngraph:run-seal:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


class EnvelopeUnreadable(BadInput):
    """The bytes are no seal of ours."""

    code = "envelope_unreadable"


class SealIncomplete(LearnGraphError):
    """The run names an artifact that the store doesn't hold, so it can't be sealed."""

    code = "seal_incomplete"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A DSSE envelope with one signature.

    Attributes:
        payload: canonical bytes of the statement.
        keyid: fingerprint of the key that is said to have signed.
        signature: 64 bytes.
    """

    payload: bytes
    keyid: str
    signature: bytes

    @property
    def statement(self) -> dict[str, Any]:
        """The in-toto statement."""
        statement: dict[str, Any] = json.loads(self.payload)
        return statement

    def to_bytes(self) -> bytes:
        """The one spelling of this envelope."""
        return canonical_json(
            {
                "payload": base64.b64encode(self.payload).decode(),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"keyid": self.keyid, "sig": base64.b64encode(self.signature).decode()}],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Envelope:
        """Reads an envelope; `to_bytes` of the answer need not equal `data`: the verifier compares.

        Raises:
            EnvelopeUnreadable: not JSON, not an envelope of ours, not a statement of ours.
        """
        try:
            body = json.loads(data)
            (signature,) = body["signatures"]
            envelope = cls(
                base64.b64decode(body["payload"], validate=True),
                str(signature["keyid"]),
                base64.b64decode(signature["sig"], validate=True),
            )
            statement = envelope.statement
            shape = (body["payloadType"], statement["_type"], statement["predicateType"])
            well_formed = isinstance(statement["predicate"], dict) and isinstance(statement["subject"], list)
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            raise EnvelopeUnreadable(f"not a DSSE envelope round an in-toto statement ({error})") from error
        if shape != (PAYLOAD_TYPE, STATEMENT_TYPE, PREDICATE_TYPE) or not well_formed:
            raise EnvelopeUnreadable(f"an envelope, but not of a run's seal: {shape}")
        return envelope

    def signed_by(self, key: PublicKey) -> bool:
        """Whether the signature is this key's, over this payload."""
        return key.verifies(self.signature, pre_authentication_encoding(PAYLOAD_TYPE, self.payload))


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """DSSE's PAE: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def run_statement(files: Mapping[str, str], predicate: Mapping[str, Any]) -> dict[str, Any]:
    """The in-toto statement: every file (name → sha256) a subject, in the order of their names."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": files[name]}} for name in sorted(files)],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }


def seal_run(files: Mapping[str, str], predicate: Mapping[str, Any], signer: Signer) -> Envelope:
    """Signs the statement over the files (name → sha256) and the predicate."""
    payload = canonical_json(run_statement(files, predicate))
    signature = signer.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload))
    return Envelope(payload, signer.public.keyid, signature)


@dataclass(frozen=True, slots=True)
class SealInfo:
    """A run's seal.

    Attributes:
        envelope_sha: artifact of the envelope.
        content_hash: the run's `content` hash, None when it ended without one.
        keyid: fingerprint of the signer.
        statement: the in-toto statement.
    """

    envelope_sha: str
    content_hash: str | None
    keyid: str
    statement: Mapping[str, Any]


def seal_run_in_store(store: Store, run_id: str, *, signer: Signer, actor: str) -> SealInfo:
    """Seals a run that has ended: the last thing that happens to it.

    Everything is taken from the ledger: its closing event (`run.completed`, `run.failed`, `run.cancelled`) names the
    artifacts `content`, `notebook`, `report`, `report_html` and `result` (each may be None), which must be stored
    before. The envelope and the public key become artifacts; a `run.sealed` event after the seal names them, and in the
    same transaction the run's record gets `seal` and `content_hash`. Sealing a sealed run gives its seal again.

    Args:
        store: the open store.
        run_id: the run.
        signer: the instance's key (`load_or_create_signer(home.keys)`).
        actor: who is said to have sealed, e.g. `user:ana`.

    Raises:
        NotFinished: the last event does not end the run.
        SealIncomplete: a named artifact is not in the store.
    """
    earlier = _sealed_already(store, run_id)
    if earlier is not None:
        return earlier
    events = (event.as_json() for event in store.ledger.events(run_id) if not event.after_seal)
    records, ledger_sha = gather_digest(events)
    predicate = records.predicate()
    files = {LEDGER: ledger_sha, **records.file_digests()}
    for name, sha in files.items():
        if name != LEDGER and sha not in store.artifacts:
            raise SealIncomplete(
                f"{name.removeprefix(ARTIFACTS)} is named by the ledger but its artifact is missing",
                where=f"{run_id}, artifact {sha}",
                remedy="learngraph doctor shows the state of the artifact store; run the notebook again",
            )
    envelope = seal_run(files, predicate, signer)
    envelope_sha = store.artifacts.put(envelope.to_bytes())
    key_sha = store.artifacts.put(signer.public.pem)
    info = SealInfo(envelope_sha, predicate["content"], envelope.keyid, envelope.statement)
    details = {"envelope": envelope_sha, "content": info.content_hash, "key": info.keyid}
    try:
        with store.unit_of_work(actor) as work:
            work.expect_run(run_id, seal=None)
            work.append(run_id, "run.sealed", {"envelope": envelope_sha, "key": key_sha}, after_seal=True)
            work.update_run(run_id, seal=envelope_sha, content_hash=info.content_hash)
            work.audit("run.sealed", run_id, details)
            work.emit("run.sealed", run_id, details)
    except RunChanged:
        # Another process has sealed it meanwhile (a resume while its own process was at it): one seal is enough.
        earlier = _sealed_already(store, run_id)
        if earlier is None:
            raise
        return earlier
    return info


def _sealed_already(store: Store, run_id: str) -> SealInfo | None:
    for event in store.ledger.events(run_id, types=["run.sealed"]):
        envelope = Envelope.from_bytes(store.artifacts.read(event.data["envelope"]))
        statement = envelope.statement
        return SealInfo(event.data["envelope"], statement["predicate"]["content"], envelope.keyid, statement)
    return None
