"""Downloads by the host for a box that stays offline: `acquire`, `acquire_images`, `acquire_git`.

The order is the point. The URL is read, then the approval is used up, then the name is looked up, then every address is
checked, then one of the checked addresses is connected to. A redirect within the host is read, looked up and checked
again; one to another host needs an approval of its own. What comes is stored by its hash, with a receipt.
"""

from __future__ import annotations

import re
import secrets
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urljoin

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox import fetching, git_source, images, media_types, receipts
from learngraph_kernel.sandbox.acquisition import GitLimits, ImageLimits, Limits, Request, Trail, TypeRefused
from learngraph_kernel.sandbox.addresses import AddressPolicy, refusal_of
from learngraph_kernel.sandbox.hostnames import UrlRefused
from learngraph_kernel.sandbox.receipts import Receipt
from learngraph_kernel.sandbox.resolvers import SystemResolver
from learngraph_kernel.sandbox.urls import Decision, ParsedUrl, Resolver, check_host, parse_url, refuse_characters
from learngraph_kernel.store.clock import to_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from learngraph_kernel.sandbox.approvals import Approvals
    from learngraph_kernel.sandbox.fetching import Answer, Connector, Sink
    from learngraph_kernel.store.database import Store

IMAGES_AT_ONCE = 8
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
Progress: TypeAlias = Callable[[str, int], None]
"""(normalised URL of the request, decoded bytes that just came)"""
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)


def _unseen(url: str, count: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a download goes through. The defaults are the real network, public addresses and the machine's authorities.

    Attributes:
        store: where the bytes, the receipt and the audit record go.
        approvals: who may say yes.
        actor: on whose behalf, e.g. `session:…`.
        scope: session or run; part of what is approved.
        authorities: a PEM file for `git`, as `tls` is for HTTPS; None for the machine's own.
        progress: told of every piece that came; of several images from several threads.
    """

    store: Store
    approvals: Approvals
    actor: str
    scope: str = ""
    resolver: Resolver = field(default_factory=SystemResolver)
    connector: Connector = field(default_factory=fetching.DirectConnector)
    tls: ssl.SSLContext = field(default_factory=fetching.default_tls)
    authorities: Path | None = None
    policy: AddressPolicy = refusal_of
    progress: Progress = _unseen


def file_request(url: str, *, scope: str = "", limits: Limits | None = None) -> Request:
    """What has to be approved for `acquire`. Raises UrlRefused."""
    return Request("file", parse_url(url).normalised, limits or Limits(), scope=scope)


def image_request(url: str, *, scope: str = "", limits: ImageLimits | None = None) -> Request:
    """What has to be approved for one of `acquire_images`. Raises UrlRefused."""
    return Request("image", parse_url(url).normalised, limits or ImageLimits(), scope=scope)


def git_request(url: str, ref: str, *, scope: str = "", limits: GitLimits | None = None) -> Request:
    """What has to be approved for `acquire_git`. Raises UrlRefused, BadInput (no whole commit id, no path)."""
    if not _COMMIT.fullmatch(ref):
        raise BadInput(
            "the ref is not a commit", where=ref[:80], remedy="give all 40 hex digits of the commit (git rev-parse)"
        )
    for path in (limits.paths or ()) if limits is not None else ():
        if not path or any(part in ("", ".", "..") for part in path.split("/")):
            raise BadInput("a path in a repository is relative and plain", where=path, remedy="write data/prices.csv")
    parsed = parse_url(url)
    if "?" in parsed.target:
        raise UrlRefused("the URL of a repository has no query", where=parsed.normalised)
    return Request("git", parsed.normalised, limits or GitLimits(), ref=ref, scope=scope)


def acquire(url: str, gate: Gate, *, limits: Limits | None = None) -> Receipt:
    """Downloads a file and stores it by its hash.

    Args:
        url: https, of a public server.
        gate: what it goes through.
        limits: part of what was approved.

    Raises:
        UrlRefused: by its text, or by one of its addresses.
        ApprovalNeeded: for the request, or for the host that a redirect leads to.
        LimitExceeded, TypeRefused, AcquisitionFailed: nothing is stored, the approval is used up.
    """
    limits = limits or Limits()
    request = file_request(url, scope=gate.scope, limits=limits)
    with _audited(request, gate) as trail:
        head = bytearray()
        with gate.store.artifacts.writer() as artifact:

            def keep(piece: bytes) -> None:
                if len(head) < media_types.HEAD_BYTES:
                    head.extend(piece[: media_types.HEAD_BYTES - len(head)])
                artifact.write(piece)

            answer = _download(limits, gate, trail, stored_limit=limits.stored_bytes, sink=keep)
            detected = media_types.detect(bytes(head))
            _refuse_type(detected, limits.types)
        return _receipt(trail, gate, answer.declared_type, detected, artifact.sha256, artifact.size)


def acquire_images(
    urls: Sequence[str], gate: Gate, *, limits: ImageLimits | None = None
) -> list[Receipt | LearnGraphError]:
    """Downloads up to 8 images at once; each is decoded and written anew before it is stored.

    Returns:
        For each URL, in order, its receipt or the error that kept it out; one failure does not stop the rest.

    Raises:
        BadInput: more than 8.
    """
    if len(urls) > IMAGES_AT_ONCE:
        raise BadInput(f"{len(urls)} images asked for, at most {IMAGES_AT_ONCE} at once")

    def one(url: str) -> Receipt | LearnGraphError:
        try:
            return _acquire_image(url, gate, limits or ImageLimits())
        except LearnGraphError as error:
            return error

    with ThreadPoolExecutor(IMAGES_AT_ONCE, thread_name_prefix="learngraph-image") as pool:
        return list(pool.map(one, urls))


def acquire_git(url: str, ref: str, gate: Gate, *, limits: GitLimits | None = None) -> Receipt:
    """Takes in the files of one commit; every file is verified against the commit's id before any is stored.

    Args:
        url: of the repository, https.
        ref: the commit, 40 hex digits.

    Returns:
        A receipt whose artifact is the manifest, `{"format", "commit", "files": [{"path", "executable", "size",
        "sha256"}]}`; every file is an artifact.

    Raises:
        UrlRefused, ApprovalNeeded, BadInput, LimitExceeded, AcquisitionFailed, GitRefused, Unavailable (no git).
    """
    limits = limits or GitLimits()
    request = git_request(url, ref, scope=gate.scope, limits=limits)
    with _audited(request, gate) as trail:
        parsed = parse_url(request.url)
        trail.approvals.append(gate.approvals.claim(request))
        decision = _checked(parsed, gate, trail)
        manifest, trail.wire_bytes = git_source.take_commit(
            parsed,
            decision.addresses,
            ref,
            limits,
            connector=gate.connector,
            authorities=gate.authorities,
            artifacts=gate.store.artifacts,
        )
        sha256 = gate.store.artifacts.put_json(manifest.as_json())
        return _receipt(trail, gate, None, git_source.MANIFEST_TYPE, sha256, manifest.bytes, commit=ref)


def _acquire_image(url: str, gate: Gate, limits: ImageLimits) -> Receipt:
    request = image_request(url, scope=gate.scope, limits=limits)
    with _audited(request, gate) as trail:
        received = BytesIO()
        answer = _download(limits, gate, trail, stored_limit=limits.wire_bytes, sink=received.write)
        picture = images.reencode(received.getvalue(), limits)
        sha256 = gate.store.artifacts.put(picture.data)
        return _receipt(trail, gate, answer.declared_type, picture.media_type, sha256, len(picture.data))


def _download(limits: Limits | ImageLimits, gate: Gate, trail: Trail, *, stored_limit: int, sink: Sink) -> Answer:
    """Claims, checks and fetches, from the first URL to the content."""
    request = trail.request
    parsed = parse_url(request.url)
    trail.approvals.append(gate.approvals.claim(request))
    meter = fetching.Meter.starting(seconds=limits.seconds, wire_bytes=limits.wire_bytes)
    accept = ", ".join(images.ACCEPTED) if request.kind == "image" else "*/*"

    def counted(piece: bytes) -> None:
        sink(piece)
        gate.progress(request.url, len(piece))

    while True:
        decision = _checked(parsed, gate, trail)
        try:
            answer = fetching.get(
                parsed,
                decision.addresses,
                connector=gate.connector,
                tls=gate.tls,
                meter=meter,
                stored_limit=stored_limit,
                accept=accept,
                sink=counted,
            )
        finally:
            trail.wire_bytes = meter.received
        if answer.location is None:
            return answer
        if len(trail.redirects) == limits.redirects:
            raise fetching.over("redirects", f"more than {limits.redirects} redirects")
        parsed = _redirected(parsed, answer.location, gate, trail)


def _redirected(here: ParsedUrl, location: str, gate: Gate, trail: Trail) -> ParsedUrl:
    """Where a redirect leads, once it may be followed."""
    request = trail.request
    there = parse_url(_absolute(here, location))
    if there.host != here.host:
        asked = Request(request.kind, there.normalised, request.limits, scope=request.scope)
        trail.approvals.append(gate.approvals.claim(asked, redirected_from=here.normalised))
    trail.redirects.append(there.normalised)
    return there


def _absolute(here: ParsedUrl, location: str) -> str:
    """A Location as a URL; `urljoin` repairs blanks and control characters, so they are refused before it."""
    refuse_characters(location)
    return location if _HAS_SCHEME.match(location) else urljoin(here.normalised, location)


def _checked(parsed: ParsedUrl, gate: Gate, trail: Trail) -> Decision:
    trail.final_url = parsed.normalised
    decision = check_host(parsed, gate.resolver, policy=gate.policy)
    if not decision.allowed:
        raise UrlRefused(decision.reason, where=parsed.normalised, remedy="ask for a public server")
    trail.addresses[:] = decision.addresses
    return decision


def _refuse_type(detected: str, accepted: tuple[str, ...] | None) -> None:
    refused = detected in media_types.EXECUTABLES if accepted is None else detected not in accepted
    if refused:
        raise TypeRefused(f"what came is {detected}, which is not accepted", details={"detected": detected})


@contextmanager
def _audited(request: Request, gate: Gate) -> Iterator[Trail]:
    """A trail; when the block fails, the failure is recorded for the audit, and nothing else is."""
    trail = Trail(request, final_url=request.url)
    try:
        yield trail
    except LearnGraphError as error:
        facts = {
            "request": request.digest,
            "code": error.code,
            "approvals": trail.approvals,
            "final_url": trail.final_url,
            "addresses": trail.addresses,
            "wire_bytes": trail.wire_bytes,
        }
        with gate.store.unit_of_work(gate.actor) as work:
            work.audit("acquire.failed", request.url, facts)
        raise


def _receipt(
    trail: Trail,
    gate: Gate,
    declared: str | None,
    detected: str,
    sha256: str,
    stored: int,
    *,
    commit: str | None = None,
) -> Receipt:
    receipt = Receipt(
        id=f"rc_{secrets.token_hex(16)}",
        kind=trail.request.kind,
        request=trail.request.digest,
        requested_url=trail.request.url,
        final_url=trail.final_url,
        redirects=tuple(trail.redirects),
        addresses=tuple(trail.addresses),
        declared_type=declared,
        detected_type=detected,
        wire_bytes=trail.wire_bytes,
        stored_bytes=stored,
        sha256=sha256,
        commit=commit,
        approval=trail.approvals[0],
        redirect_approvals=tuple(trail.approvals[1:]),
        at=to_text(gate.store.clock()),
    )
    receipts.record(gate.store, receipt, actor=gate.actor)
    return receipt
