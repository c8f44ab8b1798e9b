"""`learngraph sandbox acquire` and `acquire-git`: a person sees the request, allows it, and gets a receipt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from learngraph_kernel.cli.main import group
from learngraph_kernel.cli.sandbox import acquiring
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.acquire import file_request, git_request
from learngraph_kernel.sandbox.acquisition import ApprovalNeeded, GitLimits, Limits, Request
from learngraph_kernel.sandbox.asking import Acquiring, NotApproved, by_digests
from learngraph_kernel.sandbox.receipts import receipts_of
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.sandbox.conftest import World
from tests.sandbox.test_git_source import Repository, repository
from tests.sandboxd.running import Sandboxd

__all__ = ["repository"]
URL = "https://files.example/prices.csv"
CSV = b"item,price\ntea,3\n"
LIMITS = Limits()


@pytest.fixture
def person(world: World) -> Callable[..., Acquiring]:
    """Somebody who answers yes, or what they are told to, and remembers what they were shown."""

    def make(*answers: bool) -> Acquiring:
        shown: list[tuple[Request, str | None]] = []

        def ask(request: Request, redirected_from: str | None) -> bool:
            shown.append((request, redirected_from))
            return answers[len(shown) - 1] if answers else True

        made = Acquiring(world.gate, "user:ana", ask)
        made.shown = shown  # type: ignore[attr-defined]
        return made

    return make


def test_a_person_is_shown_the_exact_request_and_gets_a_receipt(world: World, person: Any) -> None:
    world.site.serve("/prices.csv", CSV, Content_Type="text/csv")
    ana = person()
    receipt = ana.file(file_request(URL), LIMITS)
    assert world.store.artifacts.read(receipt.sha256) == CSV
    assert [request.digest for request, _ in ana.shown] == [receipt.request]


def test_a_no_sends_nothing(world: World, person: Any) -> None:
    with pytest.raises(NotApproved):
        person(False).file(file_request(URL), LIMITS)
    assert world.site.requests == [] and world.connector.asked == []


def test_a_redirect_to_another_host_is_asked_for_by_itself(world: World, person: Any) -> None:
    world.site.redirect("/prices.csv", "https://other.example/real.csv")
    world.site.serve("/real.csv", CSV)
    ana = person()
    receipt = ana.file(file_request(URL), LIMITS)
    assert receipt.final_url == "https://other.example/real.csv"
    assert [where for _, where in ana.shown] == [None, URL]
    assert len(receipt.redirect_approvals) == 1


def test_a_no_to_the_redirect_reaches_no_other_host(world: World, person: Any) -> None:
    world.site.redirect("/prices.csv", "https://other.example/real.csv")
    with pytest.raises(NotApproved):
        person(True, False).file(file_request(URL), LIMITS)
    assert all(request.startswith("files.example") for request in world.site.requests)


def test_a_redirect_in_circles_ends(world: World, person: Any) -> None:
    world.site.redirect("/prices.csv", "https://other.example/back.csv")
    world.site.redirect("/back.csv", URL)
    with pytest.raises(LearnGraphError):
        person().file(file_request(URL), LIMITS)


@pytest.mark.parametrize("change", ["url", "limits", "kind", "digest"])
def test_another_request_than_the_digest_names_sends_nothing(world: World, change: str) -> None:
    allowed = {
        "url": file_request(URL + "?v=2").digest,
        "limits": file_request(URL, limits=Limits(wire_bytes=1)).digest,
        "kind": git_request(URL, "a" * 40).digest,
        "digest": "0" * 64,
    }[change]
    with pytest.raises(ApprovalNeeded) as caught:
        Acquiring(world.gate, "user:ana", by_digests([allowed])).file(file_request(URL), LIMITS)
    assert caught.value.details["digest"] == file_request(URL).digest
    assert world.site.requests == [] and world.connector.asked == []


def test_a_digest_allows_one_download_a_call_and_leaves_no_approval_behind(world: World) -> None:
    world.site.serve("/prices.csv", CSV)
    request = file_request(URL)
    ana = Acquiring(world.gate, "user:ana", by_digests([request.digest]))
    ana.file(request, LIMITS)
    with pytest.raises(ApprovalNeeded):
        world.approvals.claim(request)


def test_the_files_of_a_commit_come_with_one_yes(world: World, repository: Repository, person: Any) -> None:
    commit = repository.files(**{"prices.csv": CSV})
    ana = person()
    receipt = ana.git(git_request("https://files.example/repo.git", commit), GitLimits())
    manifest = world.store.artifacts.read_json(receipt.sha256)
    assert [file["path"] for file in manifest["files"]] == ["prices.csv"] and len(ana.shown) == 1


# The command


@pytest.fixture
def command(world: World, monkeypatch: pytest.MonkeyPatch, home: Path) -> Callable[..., Result]:
    """The command in this process, so that its network is the local site; its store is the home's."""

    def gate_of(store: Store, actor: str) -> Any:
        from dataclasses import replace

        from learngraph_kernel.sandbox.approvals import StoredApprovals

        return replace(world.gate, store=store, actor=actor, approvals=StoredApprovals(store, actor))

    monkeypatch.setattr(acquiring, "gate_of", gate_of)

    def run(*words: object) -> Result:
        return CliRunner().invoke(group, ["sandbox", *map(str, words)], standalone_mode=False)

    return run


@contextmanager
def at(home: Path) -> Iterator[Store]:
    with Store.open(Home(home)) as store:
        yield store


def test_a_script_sees_the_digest_first_and_then_names_it(
    world: World, command: Any, workspace: Path, home: Path
) -> None:
    world.site.serve("/prices.csv", CSV, Content_Type="text/csv")
    refused = command("acquire", URL, "--json")
    assert isinstance(refused.exception, ApprovalNeeded) and world.site.requests == []
    digest = json.loads(command("acquire", URL, "--dry-run", "--json").stdout)["requests"][0]["digest"]
    assert digest == refused.exception.details["digest"]
    words = ("acquire", URL, "--approve", digest, "--as", "prices", "--workspace", workspace, "--json")
    done = command(*words)
    assert done.exception is None, done.output
    receipt = json.loads(done.stdout)["receipts"][0]
    assert f'sha256 = "{receipt["sha256"]}"' in (workspace / "learngraph.toml").read_text()
    listed = json.loads(command("acquisitions", "--json").stdout)
    assert [item["id"] for item in listed] == [receipt["id"]]
    with at(home) as store:
        assert store.artifacts.read(receipt["sha256"]) == CSV


def test_one_image_that_fails_stops_no_other(world: World, command: Any) -> None:
    from io import BytesIO

    from PIL import Image

    picture = BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    world.site.serve("/good.png", picture.getvalue(), Content_Type="image/png")
    world.site.serve("/bad.png", b"no picture", Content_Type="image/png")
    urls = ["https://files.example/good.png", "https://files.example/bad.png"]
    shown = json.loads(command("acquire", "--image", *urls, "--dry-run", "--json").stdout)["requests"]
    approve = [word for item in shown for word in ("--approve", item["digest"])]
    done = command("acquire", "--image", *urls, *approve, "--json")
    body = json.loads(done.stdout)
    assert [item["requested_url"] for item in body["receipts"]] == urls[:1]
    assert [item["url"] for item in body["failed"]] == urls[1:] and done.return_value != 0


# In a run


NOTEBOOK = (
    "import csv\nimport learngraph_kernel as lg\npath = lg.acquired('prices')\n"
    "rows = list(csv.DictReader(path.open()))\nprint(rows)",
    "try:\n    path.open('a')\n    locked = False\nexcept OSError:\n    locked = True\n"
    "lg.output(items=len(rows), locked=locked)",
)


def acquire_prices(command: Any, world: World, workspace: Path) -> str:
    world.site.serve("/prices.csv", CSV, Content_Type="text/csv")
    digest = file_request(URL).digest
    done = command("acquire", URL, "--approve", digest, "--as", "prices", "--workspace", workspace, "--json")
    assert done.exception is None, done.output
    return str(json.loads(done.stdout)["receipts"][0]["sha256"])


@pytest.mark.parametrize("where", ["host", "docker"])
def test_a_notebook_reads_what_was_acquired_and_the_seal_names_it(
    where: str,
    world: World,
    command: Any,
    learngraph: Any,
    workspace: Path,
    write_notebook: Any,
    request: pytest.FixtureRequest,
    home: Path,
    tmp_path: Path,
) -> None:
    environment: dict[str, str] = {}
    if where == "docker":
        sandboxd: Sandboxd = request.getfixturevalue("sandboxd")
        environment["LEARNGRAPH_SANDBOXD"] = str(sandboxd.socket)
    sha256 = acquire_prices(command, world, workspace)
    done = learngraph("run", write_notebook(*NOTEBOOK), "--sandbox", where, "--json", **environment)
    assert done.code == 0, done.err
    if where == "docker":
        assert done.json["result"] == {"items": 1, "locked": True}
    run = done.json["run_id"]
    content = tmp_path / "exported"
    assert learngraph("export", run, "--to", content).code == 0
    (entry,) = json.loads((content / "content.json").read_text())["inputs"]
    assert entry == {"ref": "acquired/prices", "source": URL, "sql": None, "artifact": sha256}
    assert (content / "artifacts" / sha256).read_bytes() == CSV
    with at(home) as store:
        (receipt,) = receipts_of(store, sha256)
        given = [event.data["result"] for event in store.ledger.events(run, types=["call.completed"])]
    assert [result["receipt"] for result in given if result and result.get("name") == "prices"] == [receipt.id]
    # The workspace pins something else by now: a rerun takes the bytes of the record.
    toml = workspace / "learngraph.toml"
    toml.write_text(toml.read_text().replace(sha256, "0" * 64))
    again = learngraph("rerun", run, "--json", **environment)
    assert (again.code, again.json["same"]) == (0, True), again.err
    (content / "artifacts" / sha256).chmod(0o600)
    (content / "artifacts" / sha256).write_bytes(CSV.replace(b"3", b"4"))
    verified = learngraph("verify", content, "--json")
    assert verified.code == 5 and sha256 in verified.out


def test_what_was_not_acquired_is_named_with_the_remedy(learngraph: Any, write_notebook: Any, workspace: Path) -> None:
    done = learngraph("run", write_notebook("import learngraph_kernel as lg\nlg.acquired('prices')"), "--json")
    assert done.code == 1 and "learngraph sandbox acquire URL --as prices" in done.out
    toml = workspace / "learngraph.toml"
    entry = f'\n[acquired.prices]\nkind = "file"\nurl = "{URL}"\nsha256 = "{"0" * 64}"\n'
    toml.write_text(toml.read_text() + entry)
    done = learngraph("run", write_notebook("import learngraph_kernel as lg\nlg.acquired('prices')"), "--json")
    assert done.code == 1 and f"learngraph sandbox acquire {URL} --as prices" in done.out


def test_a_file_of_a_repository_is_read_by_its_path(
    world: World, repository: Repository, command: Any, learngraph: Any, workspace: Path, write_notebook: Any
) -> None:
    commit = repository.files(a=CSV, b=b"x")
    url = "https://files.example/repo.git"
    digest = git_request(url, commit, limits=GitLimits(paths=("a",))).digest
    words = (
        "acquire-git",
        url,
        "--ref",
        commit,
        "--path",
        "a",
        "--approve",
        digest,
        "--as",
        "repo",
        "--workspace",
        workspace,
    )
    assert command(*words, "--json").exception is None
    source = "import learngraph_kernel as lg\nprint(lg.acquired('repo', 'a').read_text())"
    assert learngraph("run", write_notebook(source), "--json").code == 0
    wrong = learngraph("run", write_notebook("import learngraph_kernel as lg\nlg.acquired('repo')"), "--json")
    assert wrong.code == 1 and "name one of its files" in wrong.out


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('kind = "file"\nurl = "u"', "sha256"),
        ('kind = "file"\nurl = "u"\nsha256 = "abc"', "no hash"),
        ('kind = "pile"\nurl = "u"\nsha256 = "' + "0" * 64 + '"', "kind"),
        ('kind = "file"\nurl = "u"\nsha256 = "' + "0" * 64 + '"\nshasum = "x"', "shasum"),
    ],
)
def test_a_wrong_table_is_named_with_its_line(learngraph: Any, workspace: Path, table: str, says: str) -> None:
    toml = workspace / "learngraph.toml"
    toml.write_text(toml.read_text() + f"\n[acquired.prices]\n{table}\n")
    done = learngraph("source", "ls", "--workspace", workspace, "--json")
    assert done.code == 2 and done.json["error"]["code"] == "bad_acquired"
    assert says in done.out and "learngraph.toml:" in done.json["error"]["place"]
