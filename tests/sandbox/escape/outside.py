"""Symlinks, races and floods that the container prepared, met by the host side.

Each probe has two readers: ours (`sandboxd`), which must not be led astray, and a trusting one, which must be, or the
trap is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import create_engine

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandboxd.scan import Limits, scan
from learngraph_kernel.sandboxd.schema import metadata
from learngraph_kernel.sandboxd.storage import Storage
from learngraph_kernel.store.artifacts import ArtifactStore
from tests.sandbox.escape.planting import World

LINKS, RESOURCES = "symlinks and races", "resource exhaustion"
RACING = 1.0  # seconds


@dataclass(frozen=True)
class Reader:
    """How the host side meets a trap.

    Attributes:
        ours: raises BadInput or returns what it got; True for having been led astray.
        trusting: the same without any care.
    """

    category: str
    ours: Callable[[World], bool]
    trusting: Callable[[World], bool]


def _reads(path: str, sign: str | None = None) -> Reader:
    def ours(world: World) -> bool:
        with world.folder.open(path.format(secret=world.secret)) as file:
            return (sign or world.marker).encode() in file.read()

    def trusting(world: World) -> bool:
        with open(world.folder.files / path.format(secret=world.secret), "rb") as file:
            return (sign or world.marker).encode() in file.read(1 << 16)

    return Reader(LINKS, ours, trusting)


def _fifo_trusted(world: World) -> bool:
    """Whether an open that trusts hangs."""
    try:
        subprocess.run([sys.executable, "-I", "-c", f"open({str(world.work / 'fifo')!r})"], timeout=1, check=True)
    except subprocess.TimeoutExpired:
        return True
    return False


def _races(read: Callable[[], bytes], secret: str) -> bool:
    """Whether the secret was got, in a second of reading what is swapped all the time (and at least 200 times)."""
    until, number, honest = time.monotonic() + RACING, 0, 0
    while time.monotonic() < until or number < 200:
        number += 1
        try:
            data = read()
        except BadInput:
            continue
        if secret.encode() in data:
            return True
        honest += 1
    assert honest, "the honest file was never there: nothing was raced"
    return False


def _race_ours(world: World) -> bool:
    def read() -> bytes:
        with world.folder.open("work/raced") as file:
            return file.read()

    return _races(read, world.marker)


def _race_trusting(world: World) -> bool:
    """Looks first, opens then."""

    def read() -> bytes:
        path = world.work / "raced"
        if path.is_symlink():
            raise BadInput("a link")
        return path.read_bytes()

    return _races(read, world.marker)


def _write_ours(world: World) -> bool:
    world.folder.put("work/link-to-folder/new", b"x", limits=Limits())
    return (world.base / "outside/new").exists()


def _write_trusting(world: World) -> bool:
    (world.work / "link-to-folder/new").write_bytes(b"x")
    return (world.base / "outside/new").exists()


def _delete_ours(world: World) -> bool:
    world.folder.delete("work/link-to-folder/deletable")
    return not (world.base / "outside/deletable").exists()


def _delete_trusting(world: World) -> bool:
    (world.work / "link-to-folder/deletable").unlink()
    return not (world.base / "outside/deletable").exists()


def _list_ours(world: World) -> bool:
    entries, _ = world.folder.entries("work", recursive=True)
    return any(entry.path.endswith("/f") for entry in entries)


def _list_trusting(world: World) -> bool:
    return any("f" in names for _, _, names in os.walk(world.work, followlinks=True))


def _take_over_ours(world: World) -> bool:
    engine = create_engine(f"sqlite:///{world.base / 'sandboxd.db'}")
    metadata.create_all(engine)
    storage = Storage(engine, ArtifactStore(world.base / "blobs"))
    storage.import_changes("w", world.folder)
    taken = []
    for each in storage.files("w"):
        with storage.open("w", each.path) as file:
            taken.append(file.read())
    engine.dispose()
    assert b"honest" in taken
    return any(world.marker.encode() in data for data in taken)


def _take_over_trusting(world: World) -> bool:
    target = world.base / "copy"
    traps = shutil.ignore_patterns("fifo", "device", "link-to-environment", "raced", "evil", "planted-name")
    shutil.copytree(world.work, target, ignore=traps)
    return (target / "link-to-file").read_text() == world.marker


def _counts(limits: Limits, sign: str) -> Reader:
    def ours(world: World) -> bool:
        return scan(world.folder.files_fd, limits).stopped != sign

    def trusting(world: World) -> bool:
        """Asks nobody: what was made is there."""
        return (
            len(os.listdir(world.work / "many")) > limits.files or (world.work / "sparse").stat().st_size > limits.bytes
        )

    return Reader(RESOURCES, ours, trusting)


READERS: dict[str, Reader] = {
    "link-to-a-file": _reads("work/link-to-file"),
    "relative-link": _reads("work/link-relative"),
    "link-to-a-folder": _reads("work/link-to-folder/f"),
    "link-to-the-reader's-environment": _reads("work/link-to-environment", "PATH="),
    "path-with-dots": _reads("work/../../../secret"),
    "absolute-path": _reads("{secret}"),
    "second-name-of-a-file-outside": _reads("work/planted-name"),
    "device-read": _reads("work/device", "\0"),
    "fifo-read": Reader(LINKS, lambda world: bool(world.folder.open("work/fifo")), _fifo_trusted),
    "swapped-while-read": Reader(LINKS, _race_ours, _race_trusting),
    "write-through-a-link": Reader(LINKS, _write_ours, _write_trusting),
    "delete-through-a-link": Reader(LINKS, _delete_ours, _delete_trusting),
    "list-through-a-link": Reader(LINKS, _list_ours, _list_trusting),
    "take-over-through-a-link": Reader(LINKS, _take_over_ours, _take_over_trusting),
    "many-files": _counts(Limits(files=100), "files"),
    "many-bytes": _counts(Limits(bytes=1 << 20), "bytes"),
}


def meet(world: World, name: str) -> tuple[str, str]:
    """What came of one trap in this world."""
    reader = READERS[name]
    try:
        astray = (reader.ours if world.hardened else reader.trusting)(world)
    except BadInput as error:
        return "held", error.what
    return ("escaped" if astray else "held"), "led astray" if astray else "not led astray"
