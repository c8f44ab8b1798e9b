"""What can go wrong with stored things, each with its place and its remedy."""

from __future__ import annotations

import errno
from pathlib import Path

from learngraph_kernel.errors import BadInput, LearnGraphError, Unavailable

# No room, a quota, or a limit on the size of a file: the same thing to whoever wanted to store something.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageFull(LearnGraphError):
    """There is no room to store something; what was stored earlier is untouched."""

    code = "storage_full"


class StoreCorrupt(LearnGraphError):
    """The database file is damaged or is no LearnGraph database."""

    code = "store_corrupt"


class StoreTooNew(LearnGraphError):
    """The database was written by a newer version of LearnGraph."""

    code = "store_too_new"


class StoreUnavailable(Unavailable):
    """The database cannot be opened, read or written here."""

    code = "store_unavailable"


class StoreBusy(StoreUnavailable):
    """Another process has held the database for longer than we wait."""

    code = "store_busy"


class StoreClosed(StoreUnavailable):
    """The store was closed before the write was acknowledged."""

    code = "store_closed"


class ArtifactMissing(LearnGraphError):
    """No artifact has that name."""

    code = "artifact_missing"


class ArtifactCorrupt(LearnGraphError):
    """The bytes of an artifact no longer have the hash it is named by."""

    code = "artifact_corrupt"


class UnknownRun(BadInput):
    """There is no such run."""

    code = "unknown_run"


class RunChanged(LearnGraphError):
    """Someone else has changed the run since it was read."""

    code = "run_changed"


class RunExists(BadInput):
    """A run with that id is there already."""

    code = "run_exists"


def storage_full(error: OSError, place: Path) -> StorageFull | None:
    """The `StorageFull` that an operating system error means; None when it means something else."""
    if error.errno not in _FULL:
        return None
    return StorageFull(
        f"no room to write ({error.strerror})",
        where=str(place),
        remedy="free disk space (`learngraph gc` removes unreferenced artifacts) or move LEARNGRAPH_HOME; "
        "earlier runs are untouched",
    )
