"""Filling the cache: every file under its hash, checked before it gets its name there.

The cache lies outside the checkout and outlives it; with a filled cache a build needs no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from learngraph_kernel.sandboxd.image.errors import FetchError
from learngraph_kernel.sandboxd.image.locks import Pinned
from learngraph_kernel.sandboxd.image.mirrors import addresses

SECONDS = 120.0
CHUNK = 1 << 20
MANYLINUX = (36, 35, 34, 31, 28, 27, 26, 24, 17, 12, 5)
"""glibc versions up to Debian 12's whose wheels run in the image (PEP 600)."""


def cache_folder() -> Path:
    """`LEARNGRAPH_IMAGE_CACHE`, else `learngraph/sandbox-image` in the user's cache folder."""
    chosen = os.environ.get("LEARNGRAPH_IMAGE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "learngraph" / "sandbox-image"


def cached(cache: Path, item: Pinned, suffix: str) -> Path:
    """Where the file of a package lies in the cache."""
    return cache / "files" / f"{item.sha256}{suffix}"


def fetch_packages(
    items: Sequence[Pinned], cache: Path, progress: Callable[[float], None], snapshot: str
) -> list[Path]:
    """The files of Debian packages, downloaded where the cache lacks them.

    Args:
        items: what the lock names.
        cache: where they go.
        progress: hears the share that is there.
        snapshot: the time of the lock.

    Raises:
        FetchError: not to be had (Debian keeps only the newest version of a package), or not what the lock names.
    """
    paths = []
    for number, item in enumerate(items):
        target = cached(cache, item, ".deb")
        if not target.exists():
            _download(item, target, snapshot)
        paths.append(target)
        progress((number + 1) / len(items))
    return paths


def _download(item: Pinned, target: Path, snapshot: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for address in addresses(item.path, snapshot):
        try:
            with (
                urllib.request.urlopen(address, timeout=SECONDS) as source,
                tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file,
            ):
                shutil.copyfileobj(source, file, CHUNK)
        except OSError as error:
            failures.append(f"{address}: {error}")
            continue
        _keep(Path(file.name), target, item)
        return
    raise FetchError(
        f"cannot be downloaded: {'; '.join(failures)}",
        where=f"{item.name} {item.version}",
        remedy="a mirror drops a version when it has a newer one: make the lock anew with `make image-lock`, "
        "or fill LEARNGRAPH_IMAGE_CACHE from a machine that has it",
    )


def fetch_wheels(items: Sequence[Pinned], cache: Path, progress: Callable[[float], None]) -> list[Path]:
    """The wheels, downloaded by pip (which knows the site's index and proxy) where the cache lacks them.

    Raises:
        FetchError: pip could not get one, or it is not what the lock names.
    """
    missing = [item for item in items if not cached(cache, item, ".whl").exists()]
    if missing:
        (cache / "files").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _pip_download(missing, Path(folder))
            by_hash = {_sha256(path): path for path in Path(folder).glob("*.whl")}
            for item in missing:
                if item.sha256 not in by_hash:
                    raise FetchError("pip brought another file", where=item.name, remedy="run `make image-lock`")
                _keep(by_hash[item.sha256], cached(cache, item, ".whl"), item)
    progress(1.0)
    return [cached(cache, item, ".whl") for item in items]


def pip_download_options() -> list[str]:
    """What makes pip take the wheels for the image's Python, whatever it runs on itself."""
    options = ["--no-deps", "--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp"]
    for abi in ("cp311", "abi3", "none"):
        options += ["--abi", abi]
    for minor in MANYLINUX:
        options += ["--platform", f"manylinux_2_{minor}_x86_64"]
    for name in ("manylinux2014", "manylinux2010", "manylinux1"):
        options += ["--platform", f"{name}_x86_64"]
    return options


def _pip_download(items: Sequence[Pinned], folder: Path) -> None:
    requirements = folder / "wanted.txt"
    requirements.write_text("".join(f"{item.as_requirement()}\n" for item in items))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    command += [*pip_download_options(), "--dest", str(folder), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FetchError(
            f"pip could not download the wheels: {done.stderr.strip()[-500:]}",
            remedy="check pip's index and proxy settings, or fill LEARNGRAPH_IMAGE_CACHE from a machine that has them",
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep(path: Path, target: Path, item: Pinned) -> None:
    """Into the cache, if it is what the lock names."""
    found = _sha256(path)
    if found != item.sha256:
        path.unlink()
        raise FetchError(
            f"has the hash {found}, the lock names {item.sha256}",
            where=f"{item.name} {item.version}",
            remedy="the mirror or the way to it changed the file; nothing was installed",
        )
    os.replace(path, target)
