"""What a box may reach, as an immutable value: exact host names, port 443, for a time, by one person's approval.

Off is the default: without a policy there is no network and no proxy. A policy is named by the digest of all it says,
so a changed one is another one. The two kinds never stand in for each other: `fetch` serves the web-fetch runner,
`general` the programs of a workspace; neither allows a download by the host (`acquisition`), whose approvals are
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.hostnames import UrlRefused, normal_host
from learngraph_kernel.sandbox.urls import HTTPS_PORT

EgressKind: TypeAlias = Literal["fetch", "general"]

FORMAT = "learngraph-egress-v1"
MAX_HOSTS = 32
MIN_TTL, MAX_TTL = 60.0, 86_400.0


class BadEgress(BadInput):
    """Such a policy cannot be made."""

    code = "bad_egress"


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """One policy.

    Attributes:
        hosts: exact names in their normal form, sorted.
        session: the chat session it is for.
        owner: whose session.
        approval: id of the record of who allowed it, and when.
        begins, ends: unix seconds.
    """

    kind: EgressKind
    hosts: tuple[str, ...]
    owner: str
    session: str
    approval: str
    begins: float
    ends: float

    def as_json(self) -> dict[str, Any]:
        """What the digest covers."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "hosts": list(self.hosts),
            "port": HTTPS_PORT,
            "owner": self.owner,
            "session": self.session,
            "approval": self.approval,
            # Whole milliseconds: JSON's numbers have one spelling each only where they are exact.
            "begins": int(self.begins * 1000),
            "ends": int(self.ends * 1000),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> EgressPolicy:
        """The inverse of `as_json`."""
        return cls(
            body["kind"],
            tuple(body["hosts"]),
            body["owner"],
            body["session"],
            body["approval"],
            body["begins"] / 1000,
            body["ends"] / 1000,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical policy: its name."""
        return digest(self.as_json())

    def refusal(self, host: str, port: int, now: float) -> str | None:
        """Why a connection is refused, for a person; None when it is allowed. `host` as it was asked for."""
        if not self.begins <= now < self.ends:
            return "the policy is not in force"
        if port != HTTPS_PORT:
            return f"port {port} is not {HTTPS_PORT}"
        if host not in self.hosts:
            return "the host is not in the policy"
        return None


def egress_policy(
    kind: object, hosts: object, *, owner: str, session: str, approval: str, now: float, ttl: object
) -> EgressPolicy:
    """A policy from what was asked for.

    Args:
        kind: `fetch` or `general`.
        hosts: 1 to 32 public DNS names, in any spelling `check_url` takes; no wildcard, no address.
        ttl: seconds, 60 to 86,400.

    Raises:
        BadEgress: naming what is wrong.
    """
    if kind not in ("fetch", "general"):
        raise BadEgress("kind must be fetch or general", where=str(kind)[:40])
    if not isinstance(hosts, list | tuple) or not 0 < len(hosts) <= MAX_HOSTS:
        raise BadEgress(f"hosts must be a list of 1 to {MAX_HOSTS} host names")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not MIN_TTL <= ttl <= MAX_TTL:
        raise BadEgress(f"ttl must be {MIN_TTL:.0f} to {MAX_TTL:.0f} seconds")
    begins = int(now * 1000) / 1000
    names = tuple(sorted(set(_names(hosts))))
    return EgressPolicy(kind, names, owner, session, approval, begins, begins + float(ttl))


def _names(hosts: Iterable[object]) -> Iterable[str]:
    for host in hosts:
        if not isinstance(host, str) or "*" in host:
            raise BadEgress("a host is one exact name, no wildcard", where=str(host)[:80])
        try:
            yield normal_host(host)
        except UrlRefused as error:
            raise BadEgress(
                error.what, where=host[:80], remedy="name a public server, such as www.example.org"
            ) from error
