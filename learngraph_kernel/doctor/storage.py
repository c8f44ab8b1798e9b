"""Home, database and signing key. A thing that is not there yet is fine: the first run makes it."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from learngraph_kernel.doctor.report import CheckResult, Surroundings

GIB = 1024**3
WARN_BELOW = GIB
FAIL_BELOW = GIB // 16


def home(around: Surroundings) -> Iterator[CheckResult]:
    """The folder of runtime data: a folder, writable, private, with room."""
    folder = around.home
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    move = "set LEARNGRAPH_HOME to a folder of yours"
    if not existing.is_dir():
        yield CheckResult("home", "failed", f"{existing} is not a folder", f"move it away, or {move}")
        return
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        yield CheckResult(
            "home", "failed", f"{existing} cannot be written: {error.strerror}", f"chmod u+rwx {existing}, or {move}"
        )
        return
    if existing == folder and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield CheckResult("home", "warning", f"{folder} can be read by others", f"chmod 700 {folder}")
    yield _room(folder, existing, move)


def _room(folder: Path, existing: Path, move: str) -> CheckResult:
    free = shutil.disk_usage(existing).free
    state = f"{folder}{'' if existing == folder else ' (made by the first run)'}, {free / GIB:.1f} GiB free"
    if free >= WARN_BELOW:
        return CheckResult("home", "ok", state)
    remedy = f"free some room (learngraph gc removes what nothing refers to), or {move}"
    return CheckResult("home", "failed" if free < FAIL_BELOW else "warning", state, remedy)


def database(around: Surroundings) -> Iterator[CheckResult]:
    """Opens, is whole, and the artifacts of its runs are there; deep: with the bytes they had."""
    from learngraph_kernel.store.database import Store
    from learngraph_kernel.store.home import Home

    place = Home(around.home)
    if not place.database.exists():
        yield CheckResult("database", "ok", "none yet (made by the first run)")
        return
    with Store.open(place) as store:
        findings = store.check(rehash=around.deep)
        runs = len(store.runs())
    for finding in findings:
        detail = finding.what if finding.where is None else f"{finding.where}: {finding.what}"
        yield CheckResult("database", "failed", detail, finding.remedy)
    if not findings:
        hashed = "every artifact re-hashed" if around.deep else "artifacts present (--deep re-hashes them)"
        yield CheckResult("database", "ok", f"{place.database}: {runs} runs, {hashed}")


def signing_key(around: Surroundings) -> Iterator[CheckResult]:
    """The key that seals runs."""
    from learngraph_kernel.runs.keys import PRIVATE_NAME, load_or_create_signer
    from learngraph_kernel.store.home import Home

    keys = Home(around.home).keys
    if not (keys / PRIVATE_NAME).exists():
        yield CheckResult("signing key", "ok", "none yet (made by the first sealed run)")
        return
    signer = load_or_create_signer(keys)
    yield CheckResult("signing key", "ok", f"Ed25519, fingerprint {signer.public.keyid}")
