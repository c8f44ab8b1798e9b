"""Archive bombs and traversal: made here, then given to the reader of the world.

Hardened: `sandbox.inside.inspect_file`, which must say what is wrong and write nothing. Open: an unpacker that trusts
the archive.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from probing import PARAMETERS, PROBES, Outcome, Probe, escaped, held

ARCHIVES = "archives"
PLACE = Path("/tmp/archives")
CANARY = PLACE / "outside"
MUCH = 48 << 20
INSPECT = ("python3", "-I", "-B", "-m", "learngraph_kernel.sandbox.inside.inspect_file", "inspect")


def _zip(*entries: tuple[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return target.getvalue()


def _tar(*entries: tuple[str, bytes, str, int]) -> bytes:
    """Entries: name, type, target, mode; files hold `x`."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, kind, link, mode in entries:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, link, mode
            member.devmajor, member.devminor = 1, 5
            member.size = 1 if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(b"x"))
    return target.getvalue()


class _Runs:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(CANARY / "made"),)


# What the unpacker that trusts does


def _unzip(path: Path, target: Path) -> int:
    written = 0
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            (target / name).write_bytes(data)
            written += len(data)
            if name.endswith(".zip"):
                written += _unzip(target / name, target)
    return written


def _untar(path: Path, target: Path) -> int:
    with tarfile.open(path) as archive:
        if hasattr(tarfile, "fully_trusted_filter"):
            archive.extraction_filter = staticmethod(tarfile.fully_trusted_filter)
        archive.extractall(target)
    return 0


def _gunzip(path: Path, target: Path) -> int:
    return len(gzip.decompress(path.read_bytes()))


def _unpickle(path: Path, target: Path) -> int:
    pickle.loads(path.read_bytes())
    return 0


FILE, LINK, HARD, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
Unpack = Callable[[Path, Path], int]
CASES: list[tuple[str, str, Callable[[], bytes], Unpack, str]] = [
    ("zip-traversal", "a.zip", lambda: _zip(("../outside/made", b"x")), _unzip, "traversal"),
    ("zip-absolute-name", "a.zip", lambda: _zip((f"{CANARY}/made", b"x")), _unzip, "traversal"),
    ("tar-traversal", "a.tar", lambda: _tar(("../outside/made", FILE, "", 0o644)), _untar, "traversal"),
    ("tar-absolute-name", "a.tar", lambda: _tar((f"{CANARY}/made", FILE, "", 0o644)), _untar, "traversal"),
    (
        "tar-through-a-link",
        "a.tar",
        lambda: _tar(("l", LINK, str(CANARY), 0o777), ("l/made", FILE, "", 0o644)),
        _untar,
        "special_entry",
    ),
    (
        "tar-link-to-the-secret",
        "a.tar",
        lambda: _tar(("l", LINK, PARAMETERS["secret"], 0o777)),
        _untar,
        "special_entry",
    ),
    ("tar-hard-link-outside", "a.tar", lambda: _tar(("l", HARD, "../outside/kept", 0o644)), _untar, "special_entry"),
    ("tar-set-user-id", "a.tar", lambda: _tar(("s", FILE, "", 0o4755)), _untar, "set_id"),
    ("tar-device", "a.tar", lambda: _tar(("d", DEVICE, "", 0o666)), _untar, "special_entry"),
    ("zip-bomb", "a.zip", lambda: _zip(("b", bytes(MUCH))), _unzip, "bomb"),
    ("gzip-bomb", "a.gz", lambda: gzip.compress(bytes(MUCH), 1, mtime=0), _gunzip, "bomb"),
    ("nested-zip-bomb", "a.zip", lambda: _zip(("b.zip", _zip(("b", bytes(MUCH))))), _unzip, "nested"),
    ("many-entries", "a.zip", lambda: _zip(*((str(number), b"") for number in range(11_000))), _unzip, "many_entries"),
    ("pickle-that-runs-code", "a.pkl", lambda: pickle.dumps(_Runs()), _unpickle, "executable"),
]


def _damage(target: Path) -> list[str]:
    """What an archive should never have been able to do."""
    found = [f"{entry.name} outside" for entry in CANARY.iterdir() if entry.name != "kept"]
    if (CANARY / "kept").stat().st_nlink > 1:
        found.append("a second name for a file outside")
    for entry in target.iterdir():
        mode = entry.lstat().st_mode
        if stat.S_ISCHR(mode) or mode & stat.S_ISUID:
            found.append(f"{stat.filemode(mode)} {entry.name}")
        if stat.S_ISLNK(mode) and entry.exists() and str(CANARY) not in os.readlink(entry):
            found.append("a link to the secret that opens")
    return found


def _given(name: str, make: Callable[[], bytes], unpack: Unpack, warning: str) -> Outcome:
    target = PLACE / "in"
    shutil.rmtree(PLACE, ignore_errors=True)
    for folder in (PLACE, CANARY, target):
        folder.mkdir()
    (CANARY / "kept").touch()
    path = PLACE / name
    path.write_bytes(make())
    if not PARAMETERS["hardened"]:
        written = unpack(path, target)
        files = sum(1 for _ in target.iterdir())
        found = _damage(target) + [f"{written} bytes"] * (written >= MUCH) + [f"{files} files"] * (files >= 11_000)
        shutil.rmtree(PLACE)
        return escaped(found[0]) if found else held("nothing came of it")
    done = subprocess.run([*INSPECT, str(path)], stdout=subprocess.PIPE, check=True)
    codes = [each["code"] for each in json.loads(done.stdout)["warnings"]]
    found = _damage(target)
    if found:
        return escaped(found[0])
    return held(f"warned: {warning}") if warning in codes else ("broken", f"no warning {warning!r} among {codes}")


for _name, _file, _make, _unpack, _warning in CASES:
    PROBES.append(Probe(_name, ARCHIVES, partial(_given, _file, _make, _unpack, _warning), seconds=20))
