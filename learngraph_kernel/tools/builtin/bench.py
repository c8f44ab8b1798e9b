"""What the built-in tools work with: store, home, and the folder of the conversation, looked at anew each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from learngraph_kernel.data.workspace import Workspace, load_workspace
from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

Isolation = Literal["docker", "host"]


class OutsideWorkspace(BadInput):
    """A path leads out of the conversation's workspace."""

    code = "outside_workspace"


@dataclass(frozen=True, slots=True)
class Bench:
    """The surroundings of the tools.

    Attributes:
        store: open, of `home`.
        isolation: where notebooks that an agent wrote run. `docker` is the closed box and the only choice of a
            product; `host` exists for tests of everything else, on a machine without an engine.
        open_path: whether a notebook is open in a browser, so that its file must not be written.
    """

    store: Store
    home: Home
    isolation: Isolation = "docker"
    open_path: Callable[[Path], bool] = lambda path: False

    @contextmanager
    def workspace(self, root: Path) -> Iterator[Workspace]:
        """The declared workspace of a folder; its sources are closed afterwards."""
        workspace = load_workspace(root)
        try:
            yield workspace
        finally:
            workspace.close()


def inside(root: Path, name: str, *, suffix: str | None = None) -> Path:
    """A path of the workspace from what a model named.

    Args:
        root: the workspace's folder.
        name: relative, with `/`.
        suffix: what the name has to end with.

    Raises:
        OutsideWorkspace: absolute, with `..`, hidden, or led elsewhere by a symbolic link.
    """
    parts = Path(name).parts
    bad = Path(name).is_absolute() or "\\" in name or "\0" in name or not parts
    if bad or any(part == ".." or part.startswith(".") for part in parts):
        raise OutsideWorkspace(
            "the path is not one of the workspace",
            where=name[:200],
            remedy="give a relative path such as answers/week.ipynb, without `..` and hidden folders",
        )
    if suffix is not None and not name.endswith(suffix):
        raise OutsideWorkspace("the name has another ending", where=name[:200], remedy=f"end it with {suffix}")
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise OutsideWorkspace(
            "a symbolic link leads out of the workspace", where=name[:200], remedy="choose another folder"
        )
    return path
