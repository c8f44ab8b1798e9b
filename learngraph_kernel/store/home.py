"""Where runtime data lies: one folder, private to its owner, with a fixed place for each kind of thing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.store.errors import StoreUnavailable, storage_full


@dataclass(frozen=True, slots=True)
class Home:
    """The folder that holds everything LearnGraph writes for itself.

    Attributes:
        root: the folder; `ensure` makes it.
    """

    root: Path

    @classmethod
    def default(cls) -> Home:
        """`LEARNGRAPH_HOME` when set and not empty, else `~/.local/share/learngraph`; absolute."""
        chosen = os.environ.get("LEARNGRAPH_HOME")
        root = Path(chosen).expanduser() if chosen else Path.home() / ".local" / "share" / "learngraph"
        return cls(root.absolute())

    @property
    def database(self) -> Path:
        return self.root / "learngraph.db"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def samples(self) -> Path:
        return self.root / "samples"

    def ensure(self) -> None:
        """Makes the folder and its parts, readable by their owner only (0700).

        A folder that exists keeps its mode, except the root and `keys`, which are tightened.

        Raises:
            StoreUnavailable: a part cannot be made (no permission, a file is in the way).
            StorageFull: no room.
        """
        parts = (self.root, self.artifacts, self.runs, self.keys, self.samples)
        try:
            for part in parts:
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
            for private in (self.root, self.keys):
                if private.stat().st_mode & 0o077:
                    private.chmod(0o700)
        except OSError as error:
            full = storage_full(error, self.root)
            if full is not None:
                raise full from error
            raise StoreUnavailable(
                f"cannot make the data folder ({error.strerror})",
                where=str(error.filename or self.root),
                remedy="set LEARNGRAPH_HOME to a folder that you may write",
            ) from error
