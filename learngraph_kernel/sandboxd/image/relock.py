"""Making the locks anew: what Debian and the package index have today, fixed to one file each.

Debian's lists are believed only when `InRelease` carries the archive's signature (gpgv) and names their hash.
Dependencies are followed as Debian states them, the first of alternatives, minus what `packages.in` excludes (a
leading `-`): nothing in the image installs, configures or removes packages, so what only serves that is not needed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.sandboxd.image.errors import FetchError, LockError
from learngraph_kernel.sandboxd.image.fetch import SECONDS, pip_download_options
from learngraph_kernel.sandboxd.image.locks import Pinned
from learngraph_kernel.sandboxd.image.mirrors import mirror

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, slots=True)
class Archive:
    """One Debian archive: its name at a mirror and the suite that is read from it."""

    name: str
    suite: str


ARCHIVES = (
    Archive("debian", "bookworm"),
    Archive("debian-security", "bookworm-security"),
)

HEADER = "# Made by `make image-lock` from {}; do not edit.\n"


@dataclass(frozen=True, slots=True)
class Stanza:
    """A package as an archive describes it."""

    name: str
    version: str
    sha256: str
    path: str
    depends: tuple[str, ...]


def lock_packages(wanted: str, now: dt.datetime) -> str:
    """The text of `packages.lock`.

    Args:
        now: the time, in UTC.
        wanted: the text of `packages.in`: a package a line; `-name` is never taken; `#` starts a comment.

    Raises:
        FetchError: the archive cannot be reached or its signature or hashes are wrong.
        LockError: a package or dependency does not exist.
    """
    known: dict[str, Stanza] = {}
    for archive in ARCHIVES:
        for stanza in _stanzas(_package_list(archive), archive):
            other = known.get(stanza.name)
            if other is None or newer(stanza.version, other.version):
                known[stanza.name] = stanza
    words = [line.partition("#")[0].strip() for line in wanted.splitlines()]
    names = [word for word in words if word and not word.startswith("-")]
    chosen = closure(names, known, {word[1:] for word in words if word.startswith("-")})
    lines = [Pinned(s.name, s.version, s.sha256, s.path).as_package() for s in chosen]
    snapshot = f"# snapshot {now:%Y%m%dT%H%M%SZ}\n"
    return HEADER.format("packages.in") + snapshot + "".join(f"{line}\n" for line in lines)


def closure(names: Iterable[str], known: Mapping[str, Stanza], excluded: set[str]) -> list[Stanza]:
    """The packages and all they depend on, by name. Raises LockError naming what does not exist."""
    found: dict[str, Stanza] = {}
    waiting = [(name, "packages.in") for name in names]
    while waiting:
        name, asker = waiting.pop()
        if name in found or name in excluded:
            continue
        if name not in known:
            raise LockError(f"{asker} needs {name}, which the archive does not have", remedy=f"exclude it: -{name}")
        found[name] = known[name]
        waiting += [(dependency, name) for dependency in known[name].depends]
    return [found[name] for name in sorted(found)]


def _package_list(archive: Archive) -> str:
    base = f"{mirror()}/{archive.name}/dists/{archive.suite}"
    index = "main/binary-amd64/Packages.xz"
    release = _verified(_get(f"{base}/InRelease"), base)
    match = re.search(rf"^ ([0-9a-f]{{64}}) +\d+ {re.escape(index)}$", release, re.MULTILINE)
    data = _get(f"{base}/{index}")
    if match is None or hashlib.sha256(data).hexdigest() != match[1]:
        raise FetchError("is not the list its InRelease names", where=f"{base}/{index}", remedy="try again later")
    return lzma.decompress(data).decode()


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            data: bytes = answer.read()
            return data
    except OSError as error:
        raise FetchError(f"cannot be read: {error}", where=url, remedy="check the network and the mirror") from error


def _verified(signed: bytes, where: str) -> str:
    """The signed text. Raises FetchError unless the archive's key signed it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "InRelease"), Path(folder, "Release")
        source.write_bytes(signed)
        command = ["gpgv", "--quiet", "--keyring", str(KEYRING), "--output", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FetchError(f"its signature is not Debian's: {done.stderr.strip()[-300:]}", where=where)
        return target.read_text()


def _stanzas(text: str, archive: Archive) -> Iterable[Stanza]:
    for block in text.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", block, re.MULTILINE))
        if fields:
            groups = ",".join(filter(None, (fields.get("Pre-Depends"), fields.get("Depends")))).split(",")
            depends = [re.split(r"[|(:\[ ]", group.strip())[0] for group in groups]
            yield Stanza(
                fields["Package"],
                fields["Version"],
                fields["SHA256"],
                f"{archive.name}/{fields['Filename']}",
                tuple(name for name in depends if name),
            )


def newer(version: str, other: str) -> bool:
    """Whether a Debian version is higher than another."""
    from learngraph_kernel.sandboxd.versions import debian_key

    return debian_key(version) > debian_key(other)


def lock_requirements(wanted: Path) -> str:
    """The text of `requirements.lock`: what pip resolves for the image's Python, by the hash of each wheel.

    Raises:
        FetchError: pip or uv said no.
    """
    with tempfile.TemporaryDirectory() as folder:
        resolved, wheels = Path(folder, "resolved.txt"), Path(folder, "wheels")
        options = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:"]
        _run([_uv(), "pip", "compile", str(wanted), *options, "--no-annotate", "--output-file", str(resolved)])
        download = [sys.executable, "-m", "pip", "download", "--quiet", *pip_download_options()]
        _run([*download, "--dest", str(wheels), "--requirement", str(resolved)])
        lines = [_pinned_wheel(path).as_requirement() for path in sorted(wheels.glob("*.whl"))]
    return HEADER.format("requirements.in") + "".join(f"{line}\n" for line in sorted(lines, key=str.lower))


def _uv() -> str:
    found = shutil.which("uv")
    if found is None:
        raise FetchError("uv is not there, which resolves the requirements", remedy="run `make image-lock`")
    return found


def _run(command: list[str]) -> None:
    # This machine's own pip settings (extra indexes, wheels lying about) must not get into a lock made for everyone.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
    if "PIP_CERT" in os.environ:
        environment["PIP_CERT"] = os.environ["PIP_CERT"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise FetchError(f"{Path(command[0]).name}: {done.stderr.strip()[-500:]}")


def _pinned_wheel(path: Path) -> Pinned:
    name, version = path.name.split("-")[:2]
    return Pinned(name.replace("_", "-"), version, hashlib.sha256(path.read_bytes()).hexdigest())
