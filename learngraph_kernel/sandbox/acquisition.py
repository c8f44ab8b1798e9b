"""The words of an acquisition: what is asked for, how much of it at most, and what can go wrong.

A request's digest is what a person approves. It covers the normal form of the URL, the kind, the commit, the scope (the
session or run it is for) and every limit, so that nothing about a download can change between approval and packet.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import ExitCode, LearnGraphError

Kind: TypeAlias = Literal["file", "image", "git"]
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one download may cost.

    Attributes:
        wire_bytes: received after TLS, headers included.
        stored_bytes: after decoding.
        seconds: for everything, from the first look-up to the last byte.
        redirects: followed at most.
        types: detected media types that are accepted, sorted; None accepts all but executables.
    """

    wire_bytes: int = 64 * MIB
    stored_bytes: int = 256 * MIB
    seconds: float = 60.0
    redirects: int = 5
    types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What one image may cost: `pixels` of all its frames together."""

    wire_bytes: int = 16 * MIB
    pixels: int = 40_000_000
    frames: int = 64
    seconds: float = 30.0
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class GitLimits:
    """What one commit's tree may cost; `wire_bytes` before TLS is taken off, sizes in bytes.

    `paths` are the files and folders that are kept, sorted, or None for all; the whole tree is verified either way.
    """

    wire_bytes: int = 128 * MIB
    files: int = 5_000
    file_bytes: int = 32 * MIB
    stored_bytes: int = 256 * MIB
    depth: int = 32
    seconds: float = 120.0
    paths: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What is approved.

    Attributes:
        url: in its normal form.
        limits: of the kind's own type.
        ref: the commit, 40 hex digits, for `git`.
        scope: session or run it is for; an approval for one is none for another.
    """

    kind: Kind
    url: str
    limits: Limits | ImageLimits | GitLimits
    ref: str | None = None
    scope: str = ""

    def as_json(self) -> dict[str, Any]:
        """What the digest covers, and what a person is shown."""
        limits = {
            # JSON has one kind of number; a tuple would not be canonical.
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self.limits).items()
        }
        return {
            "format": "learngraph-acquire-v1",
            "kind": self.kind,
            "url": self.url,
            "ref": self.ref,
            "scope": self.scope,
            "limits": limits,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical request."""
        return digest(self.as_json())


class ApprovalNeeded(LearnGraphError):
    """No unused, unexpired approval for exactly this request; `details["request"]` is what to approve."""

    code = "approval_needed"
    exit_code = ExitCode.WAITING

    def __init__(self, request: Request, *, redirected_from: str | None = None, remedy: str | None = None) -> None:
        asked = f"fetching {request.url} needs an approval of the request {request.digest}"
        via = "" if redirected_from is None else " (a redirect leads to another host)"
        super().__init__(
            asked + via,
            where=redirected_from,
            remedy=remedy or "a person has to allow exactly this request once",
            details={"request": request.as_json(), "digest": request.digest, "redirected_from": redirected_from},
        )
        self.request = request


class AcquisitionFailed(LearnGraphError):
    """The other side did not give what was asked for."""

    code = "acquisition_failed"


class LimitExceeded(AcquisitionFailed):
    """A limit on bytes, time, redirects, pixels, frames or files; `details["limit"]` names it."""

    code = "acquisition_limit"


class TypeRefused(AcquisitionFailed):
    """What came is of a kind that is not accepted."""

    code = "acquisition_type"


class GitRefused(AcquisitionFailed):
    """The tree holds something that is not taken in: a link, a submodule, an LFS pointer, a bad name, a gap."""

    code = "acquisition_git"


@dataclass(slots=True)
class Trail:
    """What a receipt needs to know of the way; filled as it is walked, so that a failure can be recorded too."""

    request: Request
    approvals: list[str] = field(default_factory=list)
    redirects: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    final_url: str = ""
    wire_bytes: int = 0
