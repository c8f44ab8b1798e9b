"""Bytes by their hash: what is stored under a SHA-256 is that, or it is reported as damaged.

An artifact appears under its name in one step: its bytes go to a temporary file, are flushed to disk, the file is
renamed, the folder is flushed. So a crash or a full disk leaves either the whole artifact or none, and two writers of
the same content cannot disturb each other. Reading hashes again. The layout is `sha256/ab/<64 hex>`.

Storing content that is there already renews its time, under a lock shared with the garbage collector: whoever has
just been given a name has the grace period to refer to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.errors import ArtifactCorrupt, ArtifactMissing, StoreUnavailable, storage_full

CHUNK = 1 << 20
_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)
_READ_ONLY = 0o444


class ArtifactWriter(io.RawIOBase):
    """A write-only file whose content becomes an artifact when the `with` block of `ArtifactStore.writer` ends.

    Attributes:
        size: bytes written so far.
    """

    def __init__(self, descriptor: int, root: Path) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._root = root
        self._hash = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """Hash of what has been written so far; the artifact's name once the block has ended."""
        return self._hash.hexdigest()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any) -> int:
        """Writes all of a bytes-like object; returns its length in bytes. Raises StorageFull, StoreUnavailable."""
        view = memoryview(data).cast("B")
        done = 0
        with _translated(self._root):
            while done < len(view):
                done += os.write(self._descriptor, view[done:])
        self._hash.update(view)
        self.size += len(view)
        return len(view)


class _HashingReader(io.RawIOBase):
    """Reads an artifact forwards and compares the hash when the end is reached."""

    def __init__(self, file: BinaryIO, sha256: str, path: Path) -> None:
        super().__init__()
        self._file = file
        self._expected = sha256
        self._path = path
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = self._file.readinto(view)  # type: ignore[attr-defined]
        if count:
            self._hash.update(view[:count])
        elif len(view) and self._hash.hexdigest() != self._expected:
            raise _corrupt(self._expected, self._path)
        return int(count)

    def close(self) -> None:
        self._file.close()
        super().close()


class ArtifactStore:
    """Content-addressed files below a folder. Safe to use from several threads and processes at once."""

    def __init__(self, root: Path) -> None:
        """Takes the folder; it is made when the first artifact is stored."""
        self.root = root
        self._objects = root / "sha256"
        self._prefix = str(self._objects)
        self._temporary = root / "tmp"

    # Writing

    def put(self, data: bytes) -> str:
        """Stores bytes; returns their name. Raises StorageFull, StoreUnavailable."""
        sha256 = hashlib.sha256(data).hexdigest()
        if not self._renew(sha256, len(data)):
            with self.writer() as artifact:
                artifact.write(data)
        return sha256

    def put_json(self, value: Any) -> str:
        """Stores the canonical bytes of a JSON value; returns their name. Raises NotCanonical, StorageFull."""
        return self.put(canonical_json(value))

    def adopt(self, path: Path, *, move: bool = False) -> str:
        """Stores a file of any size; returns its name.

        Args:
            path: the file, left as it is unless `move`.
            move: the file may be taken away instead of copied. It must then be ours alone and no longer be written.

        Raises:
            BadInput: the file cannot be read.
            StorageFull, StoreUnavailable: it cannot be stored.
        """
        try:
            with path.open("rb") as source:
                if move and self._same_device(path):
                    return self._take(path, source)
                with self.writer() as artifact:
                    while chunk := source.read(CHUNK):
                        artifact.write(chunk)
            if move:
                path.unlink()
        except OSError as error:
            raise BadInput(
                f"file cannot be read ({error.strerror})", where=str(path), remedy="check that it exists"
            ) from error
        return artifact.sha256

    @contextlib.contextmanager
    def writer(self) -> Iterator[ArtifactWriter]:
        """A file to write to; the artifact exists once the block has ended without an exception.

        Raises:
            StorageFull, StoreUnavailable: nothing was stored, no partial file is left.
        """
        with _translated(self.root):
            self._temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._temporary)
        temporary = Path(name)
        try:
            artifact = ArtifactWriter(descriptor, self.root)
            yield artifact
            with _translated(self.root):
                os.fchmod(descriptor, _READ_ONLY)
                os.fsync(descriptor)
                self._publish(temporary, artifact.sha256, artifact.size)
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)

    # Reading

    def read(self, sha256: str) -> bytes:
        """The bytes, hashed again. Raises ArtifactMissing, ArtifactCorrupt."""
        path = self.path(sha256)
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _corrupt(sha256, path)
        return data

    def read_json(self, sha256: str) -> Any:
        """The JSON value of an artifact. Raises ArtifactMissing, ArtifactCorrupt, BadInput (it is not JSON)."""
        data = self.read(sha256)
        try:
            return json.loads(data)
        except ValueError as error:
            raise BadInput(f"artifact is not JSON ({error})", where=str(self.path(sha256))) from error

    def open(self, sha256: str) -> BinaryIO:
        """A stream of the bytes, forwards only; reading its end raises ArtifactCorrupt when the hash differs.

        Raises:
            ArtifactMissing: there is no such artifact.
        """
        path = self.path(sha256)
        reader = _HashingReader(path.open("rb", buffering=0), sha256, path)
        return cast(BinaryIO, io.BufferedReader(reader, CHUNK))

    def verify(self, sha256: str) -> int:
        """Hashes the artifact; returns its size in bytes. Raises ArtifactMissing, ArtifactCorrupt."""
        path = self.path(sha256)
        with path.open("rb", buffering=0) as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
        if actual != sha256:
            raise _corrupt(sha256, path)
        return size

    def path(self, sha256: str) -> Path:
        """The file of an artifact, for mapping into memory; not hashed. Raises ArtifactMissing, BadInput."""
        path = self._place(sha256)
        if not path.is_file():
            raise ArtifactMissing(
                f"artifact {sha256} is not in the store",
                where=str(self.root),
                remedy="restore it from a backup or an exported bundle of the run, or rerun the run",
            )
        return path

    def size(self, sha256: str) -> int:
        """Size in bytes. Raises ArtifactMissing."""
        return self.path(sha256).stat().st_size

    def __contains__(self, sha256: object) -> bool:
        return isinstance(sha256, str) and self._is_there(sha256)

    def iterate(self) -> Iterator[str]:
        """The names of all artifacts, in no particular order."""
        if not self._objects.is_dir():
            return
        with os.scandir(self._objects) as folders:
            shards = [folder.path for folder in folders if folder.is_dir()]
        for shard in shards:
            with os.scandir(shard) as files:
                yield from (file.name for file in files if _NAME.fullmatch(file.name))

    # What the garbage collector needs

    def stored_at(self, sha256: str) -> float:
        """When the artifact was last stored, in seconds since the epoch. Raises ArtifactMissing."""
        return self.path(sha256).stat().st_mtime

    def remove_if_older(self, sha256: str, before: float) -> bool:
        """Removes an artifact unless it was stored (again) at or after `before`, in seconds since the epoch.

        Returns:
            Whether it was removed; False when it was kept or is gone already.
        """
        path = self._place(sha256)
        with self._lock(fcntl.LOCK_EX):
            try:
                if path.stat().st_mtime >= before:
                    return False
                path.unlink()
            except FileNotFoundError:
                return False
        return True

    def stale_temporaries(self, before: float) -> dict[Path, int]:
        """Temporary files that a killed writer left, last written before `before`, with their sizes in bytes."""
        stale: dict[Path, int] = {}
        if self._temporary.is_dir():
            for file in self._temporary.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    status = file.stat()
                    if status.st_mtime < before:
                        stale[file] = status.st_size
        return stale

    # Inside

    def _is_there(self, sha256: str) -> bool:
        """Without a Path: the ledger asks for every name in every event."""
        return _NAME.fullmatch(sha256) is not None and os.path.isfile(f"{self._prefix}/{sha256[:2]}/{sha256}")

    def _place(self, sha256: str) -> Path:
        if not _NAME.fullmatch(sha256):
            raise BadInput(f"{sha256!r} is not the name of an artifact", remedy="give 64 lower-case hex digits")
        return self._objects / sha256[:2] / sha256

    def _publish(self, temporary: Path, sha256: str, size: int) -> None:
        """Gives a finished, flushed file its name."""
        if self._renew(sha256, size):
            return
        place = self._place(sha256)
        if not place.parent.is_dir():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _flush_folder(self._objects)
            _flush_folder(self.root)
        with self._lock(fcntl.LOCK_SH):
            os.utime(temporary)
            os.rename(temporary, place)
        _flush_folder(place.parent)

    def _renew(self, sha256: str, size: int) -> bool:
        """Whether the artifact is there, of the right size; if so its grace period starts again.

        The folder is flushed here as well: another writer may have renamed the file a moment ago.
        """
        place = self._place(sha256)
        if not place.is_file():
            return False
        with self._lock(fcntl.LOCK_SH), _translated(self.root):
            try:
                if place.stat().st_size != size:
                    return False
                os.utime(place)
            except FileNotFoundError:
                return False
        _flush_folder(place.parent)
        return True

    def _take(self, path: Path, source: BinaryIO) -> str:
        sha256 = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
        with _translated(self.root):
            self._temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.fchmod(source.fileno(), _READ_ONLY)
            os.fsync(source.fileno())
            self._publish(path, sha256, os.fstat(source.fileno()).st_size)
        path.unlink(missing_ok=True)
        return sha256

    def _same_device(self, path: Path) -> bool:
        self._objects.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path.stat().st_dev == self._objects.stat().st_dev

    @contextlib.contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        descriptor = os.open(self.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _translated(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = storage_full(error, root)
        if full is not None:
            raise full from error
        raise StoreUnavailable(
            f"artifact cannot be stored ({error.strerror})",
            where=str(error.filename or root),
            remedy="check that the folder may be written, or move LEARNGRAPH_HOME",
        ) from error


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _corrupt(sha256: str, path: Path) -> ArtifactCorrupt:
    return ArtifactCorrupt(
        f"artifact {sha256} is damaged: its bytes have another hash",
        where=str(path),
        remedy="delete the file and restore it from a backup or an exported bundle of the run, or rerun the run",
    )
