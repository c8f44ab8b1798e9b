"""What can go wrong with an image, each with its remedy."""

from __future__ import annotations

from learngraph_kernel.errors import BadInput, LearnGraphError, Unavailable


class LockError(BadInput):
    """A lock file of the image says something that cannot be used."""

    code = "image_lock"


class FetchError(Unavailable):
    """A package of the lock cannot be had, or is not the file the lock names."""

    code = "image_fetch"


class EngineError(Unavailable):
    """Docker is not there, or refused what the build asked for."""

    code = "engine"


class NotReproducible(LearnGraphError):
    """The same lock gave other bytes than the ones on record; the image is not used."""

    code = "image_not_reproducible"
