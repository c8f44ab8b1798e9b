from __future__ import annotations

import datetime as dt
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.acquire import file_request, git_request, image_request
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, GitLimits, Limits, Request
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.hostnames import UrlRefused
from learngraph_kernel.store.database import Home, Store

URL = "https://files.example/a"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def approvals(store: Store) -> StoredApprovals:
    return StoredApprovals(store, "session:s1")


def claims(approvals: StoredApprovals, request: Request) -> bool:
    try:
        approvals.claim(request)
    except ApprovalNeeded:
        return False
    return True


def test_of_many_threads_one_gets_the_approval(approvals: StoredApprovals) -> None:
    approvals.grant(file_request(URL), by="user:ana")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: claims(approvals, file_request(URL)), range(40)))
    assert sum(won) == 1


def test_of_several_processes_one_gets_the_approval(approvals: StoredApprovals, tmp_path: Path) -> None:
    approvals.grant(file_request(URL), by="user:ana")
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from learngraph_kernel.sandbox.acquire import file_request\n"
        "from learngraph_kernel.sandbox.acquisition import ApprovalNeeded\n"
        "from learngraph_kernel.sandbox.approvals import StoredApprovals\n"
        "from learngraph_kernel.store.database import Home, Store\n"
        "with Store.open(Home(Path(sys.argv[1]))) as store:\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    try: print(StoredApprovals(store, 'session:p').claim(file_request(sys.argv[2])))\n"
        "    except ApprovalNeeded: print('none')\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "home"), URL]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.communicate(timeout=60)[0].strip() for child in children]
    assert sorted(word != "none" for word in said) == [False, False, True]


def test_two_approvals_allow_two_claims_the_older_first(approvals: StoredApprovals) -> None:
    granted = [approvals.grant(file_request(URL), by="user:ana") for _ in range(2)]
    assert [approvals.claim(file_request(URL)) for _ in range(2)] == granted
    assert not claims(approvals, file_request(URL))


OTHERS = [
    ("another path", file_request(URL + "b")),
    ("another query", file_request(URL + "?x")),
    ("another host", file_request("https://other.example/a")),
    ("another scope", file_request(URL, scope="session:s2")),
    ("more bytes", file_request(URL, limits=Limits(wire_bytes=1))),
    ("more time", file_request(URL, limits=Limits(seconds=61))),
    ("another type", file_request(URL, limits=Limits(types=("text/plain",)))),
    ("another kind", image_request(URL)),
    ("a repository", git_request(URL, COMMIT)),
]


@pytest.mark.parametrize("request_", [request for _, request in OTHERS], ids=[name for name, _ in OTHERS])
def test_an_approval_is_for_exactly_one_request(approvals: StoredApprovals, request_: Request) -> None:
    approvals.grant(file_request(URL), by="user:ana")
    assert not claims(approvals, request_)
    assert claims(approvals, file_request(URL))


def test_a_commit_is_part_of_the_request(approvals: StoredApprovals) -> None:
    approvals.grant(git_request(URL, COMMIT), by="user:ana")
    assert not claims(approvals, git_request(URL, COMMIT[::-1]))
    assert not claims(approvals, git_request(URL, COMMIT, limits=GitLimits(files=1)))
    assert claims(approvals, git_request(URL, COMMIT))


@pytest.mark.parametrize("spelling", ["HTTPS://FILES.EXAMPLE:443/a", "https://files.example./x/../a#part"])
def test_spellings_of_one_url_are_one_request(spelling: str) -> None:
    assert file_request(spelling).digest == file_request(URL).digest


def test_an_approval_expires(tmp_path: Path) -> None:
    now = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    with Store.open(Home(tmp_path / "home"), clock=lambda: now) as store:
        approvals = StoredApprovals(store, "session:s1")
        approvals.grant(file_request(URL), by="user:ana", ttl=dt.timedelta(minutes=5))
        now += dt.timedelta(minutes=5)
        assert not claims(approvals, file_request(URL))


@pytest.mark.parametrize("ttl", [dt.timedelta(0), dt.timedelta(seconds=-1), dt.timedelta(hours=25)])
def test_a_senseless_lifetime_is_refused(approvals: StoredApprovals, ttl: dt.timedelta) -> None:
    with pytest.raises(BadInput):
        approvals.grant(file_request(URL), by="user:ana", ttl=ttl)


@pytest.mark.parametrize(
    "ref", ["main", "HEAD", "", COMMIT[:39], COMMIT + "0", COMMIT.upper(), "v1.0", "--upload-pack=x", COMMIT + "\n"]
)
def test_a_ref_that_is_no_commit_is_refused(ref: str) -> None:
    with pytest.raises(BadInput, match="not a commit"):
        git_request(URL, ref)


def test_the_url_of_a_repository_has_no_query() -> None:
    with pytest.raises(UrlRefused, match="query"):
        git_request(URL + "?service=x", COMMIT)
