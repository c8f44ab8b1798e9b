"""Verifying a sealed run: everything that does not fit is a `Finding` with a name and a place.

Offline and suspicious: whatever is read may have been written by someone who wants to be believed, so nothing raises
on strange content and nothing is trusted before its hash fits. The order is from the outside in: the envelope and its
signature, the files it lists, the chain of events, and at last whether the files say the same thing (the content
document is computed again from the ledger and the notebook).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from learngraph_kernel.canonical import canonical_json, sha256_hex
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.runs.chain_check import ChainReader
from learngraph_kernel.runs.content import ContentRecords, explain_difference
from learngraph_kernel.runs.folder import Opener, RunParts
from learngraph_kernel.runs.keys import NotAPublicKey, PublicKey
from learngraph_kernel.runs.records import (
    AFTER_SEAL,
    ARTIFACTS,
    CONTENT,
    ENVELOPE,
    KEY,
    LEDGER,
    NOTEBOOK,
    REPORT,
    RESULT,
    UNSEALED,
    NotFinished,
    Records,
)
from learngraph_kernel.runs.seal import Envelope

MAX_HASHERS = 4
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, LearnGraphError)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit.

    Attributes:
        code: stable, e.g. `file_altered`, `event_missing`, `signature_invalid`.
        what: one sentence.
        where: file, event or member it is about.
        expected: what the seal (or the other file) says.
        got: what is there.
    """

    code: str
    what: str
    where: str
    expected: str | None = None
    got: str | None = None

    def as_json(self) -> dict[str, Any]:
        """JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying found.

    Attributes:
        target: what was verified, as given.
        run_id: id of the run, as its seal says.
        signer: fingerprint of the key that signed, None when the signature is not valid.
        trust: why the signer is believed: `pinned` (the caller named the key), `own` (a key of this instance's `keys`
            folder), or `none`: anyone could have signed, compare the fingerprint.
        content_hash: the run's content hash, as sealed.
        files: number of files that were hashed.
        events: number of events before the seal.
        later_events: number of events added after the seal, outside it.
        seal: the signed statement's predicate (run, times, actor, tier, …), empty when the seal can't be read.
        findings: empty when everything fits.
    """

    target: str
    run_id: str | None
    signer: str | None
    trust: str
    content_hash: str | None
    files: int
    events: int
    later_events: int
    seal: Mapping[str, Any]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether everything fits."""
        return not self.findings

    @property
    def pinned(self) -> bool:
        """Whether the signer is a key that the caller or this instance trusts."""
        return self.trust != "none"

    def as_json(self) -> dict[str, Any]:
        """JSON form, as `learngraph verify --json` prints it."""
        body = {name: getattr(self, name) for name in self.__slots__}
        return {"ok": self.ok, **body, "findings": [finding.as_json() for finding in self.findings]}


def verify_parts(
    parts: RunParts, *, pin: str | None = None, trusted: Iterable[str] = (), hashers: int | None = None
) -> Verification:
    """Verifies the sealed files of a run.

    Args:
        parts: the files.
        pin: fingerprint that must have signed; another signer is a finding.
        trusted: fingerprints that this instance trusts.
        hashers: threads that hash files (SHA-256 releases the interpreter's lock); default: one a core, at most 4.
    """
    check = _Check(parts)
    check.envelope()
    signer = check.signature()
    trust = check.trust(signer, pin, frozenset(trusted))
    with ThreadPoolExecutor(hashers or min(MAX_HASHERS, os.cpu_count() or 1)) as pool:
        pending = check.start_hashing(pool)
        check.ledger()
        for name, future in pending.items():
            check.digests[name] = future.result()
    check.subjects()
    check.records()
    check.content()
    check.later()
    return Verification(
        target=parts.where,
        run_id=check.predicate.get("run"),
        signer=signer,
        trust=trust,
        content_hash=check.predicate.get("content"),
        files=len(check.digests),
        events=check.gathered.count,
        later_events=check.later_events,
        seal=check.predicate,
        findings=tuple(check.findings),
    )


@dataclass(slots=True)
class _Check:
    """One verification under way: each method is one check and adds what it finds."""

    parts: RunParts
    findings: list[Finding] = field(default_factory=list)
    sealed: Envelope | None = None
    predicate: Mapping[str, Any] = field(default_factory=dict)
    listed: dict[str, str] = field(default_factory=dict)
    digests: dict[str, str | None] = field(default_factory=dict)
    gathered: Records = field(default_factory=Records)
    contents: ContentRecords | None = None
    later_events: int = 0

    def found(self, code: str, what: str, where: str, expected: object = None, got: object = None) -> None:
        self.findings.append(Finding(code, what, where, _text(expected), _text(got)))

    def envelope(self) -> None:
        """The envelope parses, has its one spelling, and its statement is well formed."""
        if ENVELOPE not in self.parts.files:
            self.found("file_missing", "the seal is missing", ENVELOPE)
            return
        data = self.parts.read(ENVELOPE)
        try:
            envelope = Envelope.from_bytes(data)
            statement = envelope.statement
            listed = {item["name"]: item["digest"]["sha256"] for item in statement["subject"]}
            well_formed = all(isinstance(text, str) for pair in listed.items() for text in pair)
            canonical = canonical_json(statement) == envelope.payload and envelope.to_bytes() == data
        except _MALFORMED as error:
            self.found("envelope_unreadable", f"the seal cannot be read: {error}", ENVELOPE)
            return
        if not well_formed:
            self.found("envelope_unreadable", "the seal's list of files is malformed", ENVELOPE)
            return
        if not canonical or len(listed) != len(statement["subject"]):
            self.found("envelope_not_canonical", "the seal was written differently than a seal is written", ENVELOPE)
        if LEDGER not in listed:
            self.found("statement_incomplete", "the seal does not list the ledger, so it seals no run", ENVELOPE)
        self.sealed, self.predicate, self.listed = envelope, statement["predicate"], listed

    def signature(self) -> str | None:
        """The signature is that of `key.pub`; returns its fingerprint when it is."""
        if KEY not in self.parts.files:
            self.found("file_missing", "the signer's public key is missing", KEY)
            return None
        pem = self.parts.read(KEY)
        try:
            key = PublicKey.from_pem(pem, where=KEY)
        except NotAPublicKey as error:
            self.found("key_unreadable", error.what, KEY)
            return None
        if key.pem != pem:
            self.found("key_not_canonical", "the key file was written differently than a key is written", KEY)
        if self.sealed is None:
            return None
        signed = self.sealed.signed_by(key)
        if key.keyid != self.sealed.keyid:
            # When the key did sign, it is the name in the envelope that was changed.
            place = ENVELOPE if signed else KEY
            self.found("key_mismatch", "the seal names another key", place, self.sealed.keyid, key.keyid)
        if not signed:
            self.found("signature_invalid", f"the signature is not by {key.keyid} over this statement", ENVELOPE)
            return None
        return key.keyid

    def trust(self, signer: str | None, pin: str | None, trusted: frozenset[str]) -> str:
        """Why the signer is believed."""
        if pin is not None and signer is not None and signer != pin:
            self.found("signer_not_pinned", "signed by another key than the one asked for", KEY, pin, signer)
        if pin is not None and signer == pin:
            return "pinned"
        return "own" if signer in trusted else "none"

    def start_hashing(self, pool: ThreadPoolExecutor) -> dict[str, Any]:
        """Hashes every file the seal lists, but the ledger, which is hashed while it is read."""
        names = (name for name in self.listed if name in self.parts.files and name != LEDGER)
        return {name: pool.submit(_file_digest, self.parts.files[name]) for name in names}

    def ledger(self) -> None:
        """The chain is whole and ends where the seal says."""
        if LEDGER not in self.parts.files:
            return
        sealed = self.predicate.get("ledger")
        sealed = sealed if isinstance(sealed, Mapping) else {}
        count = sealed.get("events")
        reader = ChainReader(run=self.predicate.get("run"), count=count if isinstance(count, int) else None)
        self.contents = ContentRecords(self._read_json)
        hasher = hashlib.sha256()
        try:
            for event in reader.read(_hashed(self.parts.lines(LEDGER), hasher)):
                self.gathered.add(event)
                self._note_content(event)
            self.digests[LEDGER] = hasher.hexdigest()
        except (*_MALFORMED, OSError) as error:
            self.found("ledger_unreadable", f"the ledger cannot be read: {error}", f"{LEDGER}")
        self._chain(reader, LEDGER)
        if sealed and not reader.faults and (count, sealed.get("head")) != (self.gathered.count, self.gathered.head):
            self.found(
                "ledger_head",
                "the events are whole in themselves but are not the sealed ones",
                LEDGER,
                f"{count} events, head {sealed.get('head')}",
                f"{self.gathered.count} events, head {self.gathered.head}",
            )

    def _chain(self, reader: ChainReader, name: str) -> None:
        for fault in reader.faults:
            self.found(f"event_{fault.kind}", fault.what, f"{name}, event {fault.seq}")

    def _note_content(self, event: Mapping[str, Any]) -> None:
        """Takes note of what counts; an answer that can't be read leaves nothing to compare (its artifact is named)."""
        if self.contents is None:
            return
        try:
            self.contents.add(event)
        except _MALFORMED as error:
            self.contents = None
            what = f"the content cannot be computed again: the answer of event {event['seq']} is unreadable ({error})"
            self.found("content_unreadable", what, CONTENT)

    def _read_json(self, sha: str) -> Any:
        return json.loads(self.parts.read(ARTIFACTS + sha))

    def subjects(self) -> None:
        """Every listed file is there and unchanged, and no other file is."""
        if self.sealed is None:
            return
        holders = {sha: name for name, sha in self.listed.items()}
        for name, expected in self.listed.items():
            if name not in self.parts.files:
                self.found("file_missing", f"{name} is sealed but is not there", name, expected)
                continue
            got = self.digests.get(name)
            if got is None:
                self.found("file_unreadable", f"{name} cannot be read", name, expected)
            elif got != expected:
                other = holders.get(got)
                swapped = "" if other is None else f": it holds what {other} should hold"
                self.found("file_altered", f"{name} is not what was sealed{swapped}", name, expected, got)
        for name in sorted(set(self.parts.files) - set(self.listed) - UNSEALED):
            self.found("file_extra", f"{name} is not part of the sealed run", name)
        for name in self.parts.strange:
            self.found("file_extra", f"{name} is no regular file, or cannot be decoded", name)

    def records(self) -> None:
        """What the ledger says about the run and its files is what the seal says."""
        if self.sealed is None or LEDGER not in self.parts.files:
            return
        try:
            expected = self.gathered.predicate()
            files = self.gathered.file_digests()
        except (NotFinished, *_MALFORMED) as error:
            self.found("ledger_incomplete", f"the ledger does not tell of a run that ended: {error}", LEDGER)
            return
        for key in sorted({*expected, *self.predicate} - {"ledger"}):
            if expected.get(key) != self.predicate.get(key):
                place = f"{ENVELOPE}, {key}"
                self.found("predicate_disagrees", f"seal and ledger differ in {key!r}", place, *(
                    mapping.get(key) for mapping in (self.predicate, expected)
                ))  # fmt: skip
        listed = {name: sha for name, sha in self.listed.items() if name != LEDGER}
        for name in sorted({*files, *listed}):
            if files.get(name) != listed.get(name):
                what = f"ledger and seal differ about {name}"
                self.found("ledger_disagrees", what, name, listed.get(name), files.get(name))

    def content(self) -> None:
        """The content document is the sealed one and says what the ledger, notebook, report and result say."""
        if CONTENT not in self.parts.files or self.contents is None:
            return
        data = self.parts.read(CONTENT)
        if self.sealed is not None and sha256_hex(data) != self.predicate.get("content"):
            what = "the content document does not have the sealed content hash"
            self.found("content_altered", what, CONTENT, self.predicate.get("content"), sha256_hex(data))
        try:
            document = json.loads(data)
            computed = self.contents.document(
                json.loads(self.parts.read(NOTEBOOK)) if NOTEBOOK in self.parts.files else None,
                report=self.parts.read(REPORT) if REPORT in self.parts.files else None,
                result=self.parts.read(RESULT) if RESULT in self.parts.files else None,
            )
            differences = explain_difference(document, computed)
            if not differences and data != canonical_json(computed):
                differences = ["it is written differently than a content document is written"]
        except _MALFORMED as error:
            self.found("content_unreadable", f"the content cannot be computed again: {error}", CONTENT)
            return
        for line in differences:
            self.found("content_disagrees", f"content document ≠ the other files: {line}", CONTENT)

    def later(self) -> None:
        """Events after the seal continue the chain, are marked, and one of them names this seal."""
        if AFTER_SEAL not in self.parts.files:
            self.found(
                "file_missing", "the events after the seal are missing (the first tells of the seal)", AFTER_SEAL
            )
            return
        sealed = self.predicate.get("ledger")
        sealed = sealed if isinstance(sealed, Mapping) else {}
        count, head = sealed.get("events"), sealed.get("head")
        if not isinstance(count, int) or not isinstance(head, str):
            count, head = self.gathered.count, self.gathered.head
        reader = ChainReader(run=self.predicate.get("run"), first=count + 1, previous=head, after_seal=True)
        seals = []
        try:
            for event in reader.read(self.parts.lines(AFTER_SEAL)):
                self.later_events += 1
                if event["type"] == "run.sealed":
                    seals.append((event["data"].get("envelope"), event["data"].get("key")))
        except (*_MALFORMED, OSError) as error:
            self.found("ledger_unreadable", f"the events after the seal cannot be read: {error}", AFTER_SEAL)
        self._chain(reader, AFTER_SEAL)
        own = tuple(sha256_hex(self.parts.read(name)) for name in (ENVELOPE, KEY) if name in self.parts.files)
        if not reader.faults and own not in seals:
            self.found("seal_not_recorded", "no event after the seal names this seal and this key", AFTER_SEAL)


def _hashed(lines: Iterable[bytes], hasher: Any) -> Iterator[bytes]:
    for line in lines:
        hasher.update(line)
        yield line


def _file_digest(opener: Opener) -> str | None:
    """SHA-256 of a file; None when it cannot be read."""
    try:
        with opener() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except OSError:
        return None


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
