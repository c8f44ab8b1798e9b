from __future__ import annotations

import hashlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquire import acquire_git, git_request
from learngraph_kernel.sandbox.acquisition import (
    AcquisitionFailed,
    ApprovalNeeded,
    GitLimits,
    GitRefused,
    LimitExceeded,
)
from learngraph_kernel.sandbox.fetching import Meter
from learngraph_kernel.sandbox.receipts import Receipt
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.sandbox.tunnel import Tunnel
from tests.sandbox.conftest import World
from tests.sandbox.local_site import git_backend

URL = "https://files.example/repo.git"


class Repository:
    """A repository served by the site."""

    def __init__(self, root: Path) -> None:
        self.path = root / "repo.git"
        self.git("init", "--quiet", "--bare", str(self.path), cwd=root)
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")

    def git(self, *words: str, data: bytes = b"", cwd: Path | None = None) -> str:
        environment = {
            "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "a@a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }  # fmt: skip
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.path, input=data, env=environment, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", data=content)

    def commit(self, *entries: str) -> str:
        """From lines of `mode type id<TAB>path`; a branch points to it."""
        tree = self.git("mktree", "--missing", data="\n".join(entries).encode())
        commit = self.git("commit-tree", tree, "-m", "m")
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def files(self, **contents: bytes) -> str:
        return self.commit(*[f"100644 blob {self.blob(content)}\t{name}" for name, content in contents.items()])


@pytest.fixture
def repository(tmp_path: Path, world: World) -> Repository:
    root = tmp_path / "served"
    root.mkdir()
    world.site.routes["/repo.git/*"] = git_backend(root)
    return Repository(root)


def take(world: World, ref: str, url: str = URL, **limits: float) -> Receipt:
    bounds = GitLimits(**limits)  # type: ignore[arg-type]
    world.allow(git_request(url, ref, limits=bounds))
    return acquire_git(url, ref, world.gate, limits=bounds)


def test_the_files_of_a_commit_are_stored_with_a_manifest(world: World, repository: Repository) -> None:
    inner = repository.git("mktree", data=f"100755 blob {repository.blob(b'run')}\trun.sh".encode())
    commit = repository.commit(f"100644 blob {repository.blob(b'1,2')}\tdata.csv", f"040000 tree {inner}\tbin")
    got = take(world, commit)
    manifest = world.store.artifacts.read_json(got.sha256)
    assert manifest == {
        "format": "learngraph-git-manifest-v1",
        "commit": commit,
        "files": [
            {"path": "bin/run.sh", "executable": True, "size": 3, "sha256": hashlib.sha256(b"run").hexdigest()},
            {"path": "data.csv", "executable": False, "size": 3, "sha256": hashlib.sha256(b"1,2").hexdigest()},
        ],
    }
    assert [world.store.artifacts.read(file["sha256"]) for file in manifest["files"]] == [b"run", b"1,2"]
    assert (got.kind, got.commit, got.stored_bytes, got.addresses) == ("git", commit, 6, ("127.0.0.1",))
    assert got.wire_bytes > 500
    assert set(world.connector.asked) == {("127.0.0.1", 443)}


def test_an_older_commit_is_taken_as_it_was(world: World, repository: Repository) -> None:
    old = repository.files(a=b"old")
    repository.git("update-ref", "-d", "refs/heads/main")
    repository.files(a=b"new")
    manifest = world.store.artifacts.read_json(take(world, old).sha256)
    assert world.store.artifacts.read(manifest["files"][0]["sha256"]) == b"old"


def test_a_commit_needs_its_own_approval(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"a")
    with pytest.raises(ApprovalNeeded):
        acquire_git(URL, commit, world.gate)
    assert world.connector.asked == []


REFUSED: list[tuple[str, Callable[[Repository], str], str]] = [
    ("symlink", lambda repo: repo.commit(f"120000 blob {repo.blob(b'/etc/passwd')}\tlink"), "symbolic link"),
    ("submodule", lambda repo: repo.commit(f"160000 commit {'1' * 40}\tsub"), "submodule"),
    ("lfs", lambda repo: repo.files(z=b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "LFS"),
]


@pytest.mark.parametrize(("make", "said"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_not_taken_in_leaves_nothing_behind(
    world: World, repository: Repository, make: Callable[[Repository], str], said: str
) -> None:
    commit = make(repository)
    with pytest.raises(GitRefused, match=said):
        take(world, commit)
    assert world.artifacts() == 0


def test_no_file_is_stored_when_the_last_one_is_refused(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"good", b=b"good too", c=b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(GitRefused):
        take(world, commit)
    assert world.artifacts() == 0


@pytest.mark.parametrize(
    ("limits", "name"),
    [({"files": 1}, "files"), ({"file_bytes": 10}, "file_bytes"), ({"stored_bytes": 30}, "stored_bytes")],
)
def test_size_and_number_of_files_are_limited(
    world: World, repository: Repository, limits: dict[str, float], name: str
) -> None:
    # A tree object is small as well, so the blob is what is over the limit of 10 bytes.
    commit = repository.files(a=b"a" * 20, b=b"b" * 20)
    with pytest.raises(LimitExceeded) as caught:
        take(world, commit, **limits)
    assert caught.value.details["limit"] == name
    assert world.artifacts() == 0


def test_received_bytes_are_limited(world: World, repository: Repository) -> None:
    commit = repository.files(a=hashlib.shake_128(b"noise").digest(500_000))
    with pytest.raises(LimitExceeded) as caught:
        take(world, commit, wire_bytes=50_000)
    assert caught.value.details["limit"] == "wire_bytes"


def test_a_server_that_does_not_answer_meets_the_deadline(world: World) -> None:
    def hang(request: BaseHTTPRequestHandler) -> None:
        time.sleep(5)

    world.site.routes["/repo.git/*"] = hang
    began = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        take(world, "1" * 40, seconds=0.7)
    assert caught.value.details["limit"] == "seconds"
    assert time.monotonic() - began < 4


def test_a_commit_that_is_not_there_is_a_failure(world: World, repository: Repository) -> None:
    repository.files(a=b"a")
    with pytest.raises(AcquisitionFailed, match="could not fetch"):
        take(world, "1" * 40)


def test_a_truncated_repository_is_refused(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"a", b=b"b")
    blob = repository.git("hash-object", "--stdin", data=b"b")
    (repository.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(AcquisitionFailed):
        take(world, commit)
    assert world.artifacts() == 0


@pytest.mark.parametrize(
    "to", ["https://other.example/repo.git/", "https://files.example/other.git/", "http://127.0.0.1/"]
)
def test_git_follows_no_redirect(world: World, repository: Repository, to: str) -> None:
    commit = repository.files(a=b"a")
    world.site.routes.pop("/repo.git/*")
    world.site.redirect("/repo.git/info/refs", to + "info/refs?service=git-upload-pack")
    with pytest.raises(AcquisitionFailed):
        take(world, commit)
    assert all(request.startswith("files.example/repo.git/info/refs") for request in world.site.requests)


def test_git_verifies_the_certificate(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"a")
    world.replace(authorities=None)
    with pytest.raises(AcquisitionFailed):
        take(world, commit)
    assert world.site.requests == []


def test_git_verifies_the_name(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"a")
    world.replace(resolver=FixedResolver({"unlisted.example": ["127.0.0.1"]}))
    with pytest.raises(AcquisitionFailed):
        take(world, commit, "https://unlisted.example/repo.git")
    assert world.site.requests == []


def test_the_users_git_configuration_is_not_read(
    world: World, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.files(a=b"a")
    home = tmp_path / "someone"
    home.mkdir()
    elsewhere = (
        '[url "https://other.example/"]\n  insteadOf = https://files.example/\n[http]\n  proxy = http://127.0.0.1:9\n'
    )
    (home / ".gitconfig").write_text(elsewhere)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")
    assert take(world, commit).commit == commit


# The tunnel


def ask(tunnel: Tunnel, text: str) -> bytes:
    port = int(tunnel.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.sendall(text.encode())
        return sock.recv(100)


def credentials(tunnel: Tunnel) -> str:
    import base64

    word = tunnel.url.removeprefix("http://").partition("@")[0]
    return f"Proxy-Authorization: Basic {base64.b64encode(word.encode()).decode()}\r\n"


def test_the_tunnel_needs_its_word(world: World) -> None:
    meter = Meter.starting(seconds=10, wire_bytes=1000)
    with Tunnel("files.example", ["127.0.0.1"], connector=world.connector, meter=meter) as tunnel:
        for header in ("", "Proxy-Authorization: Basic bGc6bGc=\r\n"):
            assert b" 407 " in ask(tunnel, f"CONNECT files.example:443 HTTP/1.1\r\n{header}\r\n")
    assert world.connector.asked == []


@pytest.mark.parametrize(
    "first",
    [
        "CONNECT other.example:443", "CONNECT files.example:80", "CONNECT 127.0.0.1:443", "GET http://files.example/",
        "CONNECT files.example", "CONNECT files.example:443 x", "connect files.example:443", "POST files.example:443",
    ],
)  # fmt: skip
def test_the_tunnel_leads_to_one_host_and_port(world: World, first: str) -> None:
    meter = Meter.starting(seconds=10, wire_bytes=1000)
    with Tunnel("files.example", ["127.0.0.1"], connector=world.connector, meter=meter) as tunnel:
        assert b" 403 " in ask(tunnel, f"{first} HTTP/1.1\r\n{credentials(tunnel)}\r\n")
    assert world.connector.asked == []
    assert len(tunnel.refused) == 1


def test_no_thread_of_a_tunnel_is_left(world: World) -> None:
    before = threading.active_count()
    meter = Meter.starting(seconds=10, wire_bytes=1000)
    with Tunnel("files.example", ["127.0.0.1"], connector=world.connector, meter=meter) as tunnel:
        assert b" 200 " in ask(tunnel, f"CONNECT files.example:443 HTTP/1.1\r\n{credentials(tunnel)}\r\n")
    assert threading.active_count() <= before + 1  # the site's own thread for the connection may still end


# Some paths only


def test_only_the_paths_that_were_asked_for_are_kept_and_they_are_part_of_the_request(
    world: World, repository: Repository
) -> None:
    inner = repository.git("mktree", data=f"100644 blob {repository.blob(b'1')}\tprices.csv\n".encode())
    lfs = repository.blob(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    commit = repository.commit(f"040000 tree {inner}\tdata", f"100644 blob {lfs}\tdatabase.bin")
    limits = GitLimits(paths=("data",))
    assert git_request(URL, commit, limits=limits).digest != git_request(URL, commit).digest
    world.allow(git_request(URL, commit, limits=limits))
    manifest = world.store.artifacts.read_json(acquire_git(URL, commit, world.gate, limits=limits).sha256)
    assert [file["path"] for file in manifest["files"]] == ["data/prices.csv"] and manifest["paths"] == ["data"]


def test_a_path_that_is_not_in_the_commit_is_refused(world: World, repository: Repository) -> None:
    commit = repository.files(a=b"1")
    limits = GitLimits(paths=("a", "b"))
    world.allow(git_request(URL, commit, limits=limits))
    with pytest.raises(GitRefused, match="no such file") as caught:
        acquire_git(URL, commit, world.gate, limits=limits)
    assert caught.value.where == "b" and world.artifacts() == 0


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a//b", "a/./b"])
def test_a_path_that_leads_elsewhere_is_no_request(path: str) -> None:
    with pytest.raises(BadInput, match="relative and plain"):
        git_request(URL, "a" * 40, limits=GitLimits(paths=(path,)))
