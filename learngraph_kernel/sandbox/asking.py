"""Downloads with a person at hand: each request is shown and allowed by its digest before anything is sent.

A redirect to another host is a request of its own: it is shown as such, and only then may the download be tried again,
from the start and under fresh approvals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox.acquire import Gate, acquire, acquire_git, acquire_images
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, GitLimits, ImageLimits, Limits, Request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.receipts import Receipt

Ask: TypeAlias = Callable[[Request, str | None], bool]
"""(request, the URL that redirected to it or None) → whether the person allows exactly this once."""


class NotApproved(BadInput):
    """The person said no; nothing was sent."""

    code = "not_approved"


def by_digests(digests: Sequence[str]) -> Ask:
    """A person who has allowed some requests beforehand, by naming their digests; anything else is not allowed."""
    allowed = frozenset(digests)

    def ask(request: Request, redirected_from: str | None) -> bool:
        if request.digest in allowed:
            return True
        raise ApprovalNeeded(request, redirected_from=redirected_from)

    return ask


@dataclass
class Acquiring:
    """Downloads for one person.

    Attributes:
        gate: what they go through; its approvals are a store's.
        by: the person, e.g. `user:ana`.
        ask: shows a request and gives the answer.
    """

    gate: Gate
    by: str
    ask: Ask
    _asked: list[Request] = field(default_factory=list)

    def file(self, request: Request, limits: Limits) -> Receipt:
        """A file. Raises NotApproved, ApprovalNeeded, and as `acquire`."""
        return self._until_through(request, lambda: acquire(request.url, self.gate, limits=limits))

    def git(self, request: Request, limits: GitLimits) -> Receipt:
        """A commit's files. Raises NotApproved, ApprovalNeeded, and as `acquire_git`."""
        assert request.ref is not None
        ref = request.ref
        return self._until_through(request, lambda: acquire_git(request.url, ref, self.gate, limits=limits))

    def images(self, requests: Sequence[Request], limits: ImageLimits) -> list[Receipt | LearnGraphError]:
        """Up to 8 images; each has its own answer, and a failure stops no other."""
        for request in requests:
            self._allow(request, None)
            self._grant(request)
        return acquire_images([request.url for request in requests], self.gate, limits=limits)

    def _until_through(self, request: Request, go: Callable[[], Receipt]) -> Receipt:
        self._asked.clear()
        self._allow(request, None)
        while True:
            for asked in self._asked:
                self._grant(asked)
            try:
                return go()
            except ApprovalNeeded as needed:
                if any(asked.digest == needed.request.digest for asked in self._asked):
                    raise  # it was allowed and is needed once more: a redirect in circles
                self._allow(needed.request, needed.where)

    def _allow(self, request: Request, redirected_from: str | None) -> None:
        if not self.ask(request, redirected_from):
            raise NotApproved("it was not allowed, and nothing was sent", where=request.url, remedy="nothing to do")
        self._asked.append(request)

    def _grant(self, request: Request) -> None:
        StoredApprovals(self.gate.store, self.gate.actor).grant(request, by=self.by)
