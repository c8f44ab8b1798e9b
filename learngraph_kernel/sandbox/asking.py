"""Downloads with a person at hand: each request is shown and allowed by its digest before anything is sent.

A redirect to another host is a request of its own: it is shown as such, and only then may the download be tried again,
from the start and under fresh approvals.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from learngraph_kernel.errors import BadInput, LearnGraphError
from learngraph_kernel.sandbox.acquire import IMAGES_AT_ONCE, Gate, acquire, acquire_git, acquire_images
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, GitLimits, ImageLimits, Limits, Request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.receipts import Receipt

GRANTED_FOR = dt.timedelta(minutes=10)
"""It is claimed at once; what a download that failed half-way left unclaimed does not stay open for an hour."""

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
        words = " ".join(f"--approve {digest}" for digest in [*dict.fromkeys(digests), request.digest])
        raise ApprovalNeeded(
            request, redirected_from=redirected_from, remedy=f"when a person has allowed exactly this, add {words}"
        )

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

    def file(self, request: Request, limits: Limits) -> Receipt:
        """A file. Raises NotApproved, ApprovalNeeded, and as `acquire`."""
        return self._until_through(request, lambda: acquire(request.url, self.gate, limits=limits))

    def git(self, request: Request, limits: GitLimits) -> Receipt:
        """A commit's files. Raises NotApproved, ApprovalNeeded, and as `acquire_git`."""
        assert request.ref is not None
        ref = request.ref
        return self._until_through(request, lambda: acquire_git(request.url, ref, self.gate, limits=limits))

    def images(self, requests: Sequence[Request], limits: ImageLimits) -> list[Receipt | LearnGraphError]:
        """Images, 8 at a time; each has its own answer: neither a no nor a failure stops any other."""
        asked: list[list[Request]] = [[] for _ in requests]
        answers: list[Receipt | LearnGraphError] = []
        waiting: list[int] = []
        for index, request in enumerate(requests):
            refused = self._refusal(request, None, asked[index])
            # A placeholder until it is fetched; every index in `waiting` gets its own answer below.
            answers.append(refused or ApprovalNeeded(request))
            if refused is None:
                waiting.append(index)
        while waiting:
            now, waiting = waiting[:IMAGES_AT_ONCE], waiting[IMAGES_AT_ONCE:]
            for index in now:
                self._grant(asked[index])
            came = acquire_images([requests[index].url for index in now], self.gate, limits=limits)
            for index, answer in zip(now, came, strict=True):
                if isinstance(answer, ApprovalNeeded) and answer.request not in asked[index]:
                    refused = self._refusal(answer.request, answer.where, asked[index])
                    if refused is None:
                        waiting.append(index)
                        continue
                    answer = refused
                answers[index] = answer
        return answers

    def _until_through(self, request: Request, go: Callable[[], Receipt]) -> Receipt:
        asked: list[Request] = []
        self._allow(request, None, asked)
        while True:
            self._grant(asked)
            try:
                return go()
            except ApprovalNeeded as needed:
                if needed.request in asked:
                    raise  # it was allowed and is needed once more: a redirect in circles
                self._allow(needed.request, needed.where, asked)

    def _allow(self, request: Request, redirected_from: str | None, asked: list[Request]) -> None:
        if not self.ask(request, redirected_from):
            remedy = "ask again when it is to be fetched after all"
            raise NotApproved("it was not allowed, and nothing was sent there", where=request.url, remedy=remedy)
        asked.append(request)

    def _refusal(
        self, request: Request, redirected_from: str | None, asked: list[Request]
    ) -> NotApproved | ApprovalNeeded | None:
        try:
            self._allow(request, redirected_from, asked)
        except (NotApproved, ApprovalNeeded) as refused:
            return refused
        return None

    def _grant(self, requests: Sequence[Request]) -> None:
        approvals = StoredApprovals(self.gate.store, self.gate.actor)
        for request in requests:
            approvals.grant(request, by=self.by, ttl=GRANTED_FOR)
