"""The files of one commit, by the machine's `git` in a bare corner: no hooks, no configuration, no way out but ours.

`git` only transports: it talks through a `Tunnel` to the checked addresses of one host, and what it brings is read back
object by object and verified here (`git_objects`). The clone lives in a temporary folder and no tree is checked out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from learngraph_kernel.errors import Unavailable
from learngraph_kernel.sandbox.acquisition import MIB, AcquisitionFailed, GitLimits, GitRefused
from learngraph_kernel.sandbox.fetching import Connector, Meter, over
from learngraph_kernel.sandbox.git_objects import Reader, TreeFile, read_file, walk
from learngraph_kernel.sandbox.tunnel import Tunnel
from learngraph_kernel.sandbox.urls import ParsedUrl

if TYPE_CHECKING:
    from learngraph_kernel.store.artifacts import ArtifactStore

MANIFEST_FORMAT = "learngraph-git-manifest-v1"
MANIFEST_TYPE = "application/vnd.learngraph.git-manifest+json"
_ADDRESS_SPACE_KIB = 4 << 20  # of each git process; a pack of deltas can ask for far more than it weighs
_SHELL = 'ulimit -v "$1" && ulimit -f "$2" && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A verified file; `size` in bytes, `sha256` its artifact."""

    path: str
    executable: bool
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a commit, sorted by path: every one, or those below `paths`."""

    commit: str
    files: tuple[ManifestFile, ...]
    paths: tuple[str, ...] | None = None

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def as_json(self) -> dict[str, Any]:
        files = [
            {"path": file.path, "executable": file.executable, "size": file.size, "sha256": file.sha256}
            for file in self.files
        ]
        chosen = {} if self.paths is None else {"paths": list(self.paths)}
        return {"format": MANIFEST_FORMAT, "commit": self.commit, "files": files} | chosen


def take_commit(
    url: ParsedUrl,
    addresses: Sequence[str],
    commit: str,
    limits: GitLimits,
    *,
    connector: Connector,
    authorities: Path | None,
    artifacts: ArtifactStore,
) -> tuple[Manifest, int]:
    """Fetches a commit, verifies all of it, then stores its files.

    Args:
        url: of the repository, parsed.
        addresses: of its host, checked.
        commit: 40 hex digits.
        authorities: a PEM file, or None for those git was built with.
        artifacts: nothing is written to it before every file has been verified.

    Returns:
        The manifest, and the bytes received.

    Raises:
        Unavailable: there is no git here.
        AcquisitionFailed, LimitExceeded, GitRefused.
    """
    program = shutil.which("git")
    if program is None:
        raise Unavailable("git is not installed", remedy="install git (on Debian: apt-get install git)")
    meter = Meter.starting(seconds=limits.seconds, wire_bytes=limits.wire_bytes)
    with tempfile.TemporaryDirectory(prefix="lg-git-") as folder:
        git = _Git(program, Path(folder), limits, meter)
        git.run("init", "--quiet", "--bare", "--template=", str(git.repository))
        _fetch(git, url, addresses, commit, connector=connector, authorities=authorities)
        with _objects(git) as read:
            files = _kept(walk(commit, read, limits), limits.paths)
            verified = tuple(_verified(files, read, limits, meter))
            for file, entry in zip(files, verified, strict=True):
                if artifacts.put(read_file(file, read, limits)) != entry.sha256:
                    raise GitRefused("a file changed while it was stored", where=entry.path)
    return Manifest(commit, verified, limits.paths), meter.received


def _kept(files: list[TreeFile], paths: tuple[str, ...] | None) -> list[TreeFile]:
    """The files that were asked for; each path names at least one."""
    if paths is None:
        return files
    for path in paths:
        if not any(_below(file.path, path) for file in files):
            raise GitRefused("the commit has no such file or folder", where=path)
    return [file for file in files if any(_below(file.path, path) for path in paths)]


def _below(file: str, path: str) -> bool:
    return file == path or file.startswith(path + "/")


def _verified(files: list[TreeFile], read: Reader, limits: GitLimits, meter: Meter) -> Iterator[ManifestFile]:
    total = 0
    for file in files:
        meter.left()
        content = read_file(file, read, limits)
        total += len(content)
        if total > limits.stored_bytes:
            raise over("stored_bytes", f"the files are larger than {limits.stored_bytes} bytes together")
        yield ManifestFile(file.path, file.executable, len(content), hashlib.sha256(content).hexdigest())


def _fetch(
    git: _Git,
    url: ParsedUrl,
    addresses: Sequence[str],
    commit: str,
    *,
    connector: Connector,
    authorities: Path | None,
) -> None:
    with Tunnel(url.host, addresses, connector=connector, meter=git.meter) as tunnel:
        settings = {"http.proxy": tunnel.url, "http.proxyAuthMethod": "basic"}
        if authorities is not None:
            settings["http.sslCAInfo"] = str(authorities)
        code, said = git.attempt(
            "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--depth=1",
            "--end-of-options", url.normalised, commit, settings=settings,
        )  # fmt: skip
    if tunnel.exceeded is not None:
        raise tunnel.exceeded
    if code != 0:
        raise AcquisitionFailed(
            "git could not fetch the commit",
            where=url.normalised,
            remedy="check that the repository is public and that the commit is reachable on the server",
            details={"exit": code, "last": said, "refused": tunnel.refused},
        )


@dataclass(frozen=True, slots=True)
class _Git:
    """Runs `git` with nothing of the user's or the machine's configuration."""

    program: str
    folder: Path
    limits: GitLimits
    meter: Meter

    @property
    def repository(self) -> Path:
        return self.folder / "repository.git"

    def run(self, *arguments: str) -> None:
        """Raises AcquisitionFailed."""
        code, said = self.attempt(*arguments)
        if code != 0:
            raise AcquisitionFailed(f"git {arguments[0]} failed", details={"exit": code, "last": said})

    def attempt(self, *arguments: str, settings: dict[str, str] | None = None) -> tuple[int, str]:
        """The exit code and the last line it said. Raises LimitExceeded when the time is up."""
        process = self.start(*arguments, settings=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(timeout=self.meter.left())
        except subprocess.TimeoutExpired as error:
            raise over("seconds", "the download took too long") from error
        finally:
            _end(process)
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return process.returncode, ascii(lines[-1][:300])[1:-1] if lines else ""

    def start(self, *arguments: str, settings: dict[str, str] | None = None, **pipes: Any) -> subprocess.Popen[bytes]:
        """A git process in a session of its own, under limits of memory and of the size of a file."""
        blocks = (self.limits.wire_bytes + 64 * MIB) // 512
        shell = ["/bin/sh", "-c", _SHELL, "sh", str(_ADDRESS_SPACE_KIB), str(blocks)]
        return subprocess.Popen(
            [*shell, self.program, *arguments],
            cwd=self.folder,
            env=self._environment(settings or {}),
            start_new_session=True,
            **{"stdin": subprocess.DEVNULL, **pipes},
        )

    def _environment(self, settings: dict[str, str]) -> dict[str, str]:
        """All of it: nothing is inherited but the search path."""
        configured = {
            "core.hooksPath": os.devnull,
            "core.fsmonitor": "false",
            "core.attributesFile": os.devnull,
            "credential.helper": "",
            "fetch.fsckObjects": "true",
            "fetch.unpackLimit": "1",  # keep the pack: thousands of loose files are of no use here
            "gc.auto": "0",
            "maintenance.auto": "false",
            "http.followRedirects": "false",
            "http.sslVerify": "true",
            "http.maxRequests": "1",
            "protocol.allow": "never",
            "protocol.https.allow": "always",
            "submodule.recurse": "false",
            "fetch.recurseSubmodules": "false",
            "transfer.bundleURI": "false",
            "uploadpack.packObjectsHook": "",
            **settings,
        }
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self.repository),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "false",
            "GIT_ALLOW_PROTOCOL": "https",
            "GIT_PROTOCOL_FROM_USER": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_COUNT": str(len(configured)),
        }
        for index, (key, value) in enumerate(configured.items()):
            environment[f"GIT_CONFIG_KEY_{index}"] = key
            environment[f"GIT_CONFIG_VALUE_{index}"] = value
        return environment


@contextmanager
def _objects(git: _Git) -> Iterator[Reader]:
    """A reader over one `git cat-file`; an object's size is known before its content is read."""
    process = git.start(
        "cat-file", "--batch-command", "--buffer",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    requests, answers = _pipe(process.stdin), _pipe(process.stdout)

    def ask(command: str, name: str) -> list[bytes]:
        requests.write(f"{command} {name}\nflush\n".encode())
        requests.flush()
        words = answers.readline(256).split()
        if len(words) not in (2, 3):
            raise AcquisitionFailed("git stopped while it was read")
        return words

    def read(name: str, limit: int) -> tuple[str, bytes] | None:
        git.meter.left()
        words = ask("info", name)
        if len(words) == 2:  # `<name> missing`
            return None
        size = int(words[2])
        if size > limit:
            raise over("file_bytes", f"an object of the tree is larger than {limit} bytes")
        ask("contents", name)
        content = answers.read(size + 1)[:-1]
        if len(content) != size:
            raise AcquisitionFailed("git stopped while it was read")
        return words[1].decode(), content

    try:
        yield read
    except BrokenPipeError as error:
        raise AcquisitionFailed("git stopped while it was read") from error
    finally:
        requests.close()
        _end(process)
        answers.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # it was asked for
    return pipe


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and what it started; they share a session of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
