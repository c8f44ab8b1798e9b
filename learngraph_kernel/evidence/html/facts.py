"""What a page says about its run that the document, being free of runs and clocks, does not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SealFacts:
    """A seal as the page states it.

    Attributes:
        key: id of the signing key.
        envelope: sha256 of the DSSE envelope.
        sealed_at: ISO time.
        state: `sealed`, or `unsealed` while the run goes on.
    """

    key: str | None = None
    envelope: str | None = None
    sealed_at: str | None = None
    state: str = "sealed"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run as the page states it; whatever is None is left out."""

    run_id: str
    content_hash: str | None = None
    notebook: str | None = None
    actor: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    isolation: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture the run made: caption, MIME type (png, jpeg, gif, webp or svg+xml), base64 data, and words for it."""

    title: str
    mime: str
    base64: str
    alt: str = ""
