"""One daemon, two users: whatever the one has, every route of the API tells the other that it does not exist.

The second user is a real process under another uid. The table of routes is the API's own, so a route that is added is
tried as well: it fails here until somebody has said what a stranger may send to it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd.auth import EFFECTS
from learngraph_kernel.sandboxd.routes import ROUTES
from tests.sandboxd.running import Sandboxd
from tests.sandboxd.test_api import NOBODY, exchange

DAEMON = {"admit": "group"}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: cannot become another user")

SHARED = {"/v1/health", "/v1/readiness", "/v1/metrics", "/v1/images", "/v1/images/build", "/v1/images/pull"}
"""What is the machine's and nobody's: state, figures and the image."""
BODIES: dict[str, Any] = {
    "POST /v1/sandboxes/{id}/exec": {"argv": ["python", "work/a.py"], "cwd": "."},
    "POST /v1/sandboxes/{id}/inspect": {"task": "inspect", "path": "work/a.py"},
    "POST /v1/sandboxes/{id}/publish": {"path": "outputs/a.txt"},
    "POST /v1/sandboxes/{id}/grants": {"paths": ["work/a.py"], "ttl": 600},
    "POST /v1/sandboxes/{id}/egress": {"hosts": ["other.example"]},
    "POST /v1/kernels/{id}/signal": {"signal": "SIGKILL"},
}
QUERIES = {"/v1/sandboxes/{id}/files/content": "?path=work/a.py"}


class Stranger:
    """Calls as another uid; each call in a process of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        status, answer = self("POST", "/v1/tickets", {"scope": "owner", "effects": list(EFFECTS), "ttl": 600})
        assert status == 200
        self.ticket = answer["ticket"]

    def __call__(self, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        ours, theirs = multiprocessing.Pipe()
        ticket = {"LearnGraph_Ticket": self.ticket} if hasattr(self, "ticket") else {}
        all_headers = {"Idempotency_Key": secrets.token_hex(8), **ticket, **headers}
        process = multiprocessing.get_context("fork").Process(
            target=_as_nobody, args=(self._path, method, target, body, all_headers, theirs)
        )
        process.start()
        answer: tuple[int, Any] = ours.recv()
        process.join()
        return answer


def _as_nobody(path: Path, method: str, target: str, body: Any, headers: dict[str, str], pipe: Any) -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    pipe.send(exchange(path, method, target, body, **headers))


@pytest.fixture(scope="module")
def stranger(daemon: Sandboxd) -> Stranger:
    daemon.socket.chmod(0o666)
    for folder in (daemon.folder, daemon.folder.parent):
        folder.chmod(0o755)
    return Stranger(daemon.socket)


@pytest.fixture(scope="module")
def owned(daemon: Sandboxd) -> Iterator[dict[str, str]]:
    """The ids of everything that the first user has, by the kind of path."""
    client = SandboxClient(daemon.socket)
    box = client.create("secret-session").id
    client.put_file(box, "work/a.py", b"print('the secret output')")
    command = client.run(box, ["python", "work/a.py"])
    assert b"secret" in command.stdout
    kernel = client.start_kernel("r_secret")
    policy = client.allow_egress(box, ["files.example"])
    yield {
        "sandboxes": box,
        "exec": command.id,
        "kernels": kernel.id,
        "file": "work/a.py",
        "policy": policy["id"],
        "digest": policy["policy"],
    }
    client.stop_kernel(kernel)
    client.delete(box)
    client.close()


BY_ID = [(method, path) for method, path, _ in ROUTES if "{id}" in path and not path.startswith("/v1/images/")]
WITHOUT_ID = {(method, path) for method, path, _ in ROUTES if "{id}" not in path}


@pytest.mark.parametrize(("method", "path"), BY_ID)
def test_what_another_user_has_does_not_exist(
    method: str, path: str, stranger: Stranger, owned: dict[str, str], daemon: Sandboxd
) -> None:
    kind = path.split("/")[2]
    target = path.replace("{id}", owned[kind]).replace("{policy}", owned["policy"]) + QUERIES.get(path, "")
    BODIES["POST /v1/sandboxes/{id}/fetch"] = {"url": "https://files.example/", "policy": owned["digest"]}
    body = BODIES.get(f"{method} {path}", {} if method == "POST" else None)
    if method == "PUT":
        body = b"overwritten"
    status, answer = stranger(method, target, body)
    assert status == 404, answer
    told = json.dumps(answer)
    assert "secret" not in told and owned[kind] not in told
    unknown = re.sub(r"[0-9a-f]{24}", "0" * 24, target)
    assert stranger(method, unknown, body) == (404, answer), "a stranger can tell what exists from what does not"
    client = SandboxClient(daemon.socket)
    assert client.get_file(owned["sandboxes"], owned["file"]) == b"print('the secret output')"
    assert [kernel.state for kernel in client.overview()[1]] == ["running"]
    assert [(policy["hosts"], policy["revoked"]) for policy in client.egress(owned["sandboxes"])] == [
        (["files.example"], None)
    ]
    client.close()


def test_every_route_without_an_id_is_known_here() -> None:
    assert {(method, path) for method, path, _ in ROUTES if path in SHARED} | {
        ("POST", "/v1/tickets"),
        ("POST", "/v1/sandboxes"),
        ("GET", "/v1/sandboxes"),
        ("POST", "/v1/kernels"),
        ("POST", "/v1/gc"),
        ("POST", "/v1/shutdown"),
    } == WITHOUT_ID


def test_a_list_has_the_callers_own_alone(stranger: Stranger, owned: dict[str, str]) -> None:
    assert stranger("GET", "/v1/sandboxes") == (200, {"sandboxes": [], "kernels": []})


def test_the_same_session_name_is_another_workspace(stranger: Stranger, owned: dict[str, str]) -> None:
    status, answer = stranger("POST", "/v1/sandboxes", {"session": "secret-session"})
    assert status == 200 and answer["sandbox"] != owned["sandboxes"]
    assert stranger("GET", f"/v1/sandboxes/{answer['sandbox']}/files") == (200, {"files": [], "bytes": 0})
    assert stranger("DELETE", f"/v1/sandboxes/{answer['sandbox']}")[0] == 200


def test_an_idempotency_key_of_another_user_gives_nothing_of_theirs(
    stranger: Stranger, owned: dict[str, str], daemon: Sandboxd
) -> None:
    client = SandboxClient(daemon.socket)
    mine = client.create("keyed", key="a-key-that-was-seen")
    status, answer = stranger("POST", "/v1/sandboxes", {"session": "keyed"}, Idempotency_Key="a-key-that-was-seen")
    assert status == 200 and answer["sandbox"] != mine.id
    assert stranger("DELETE", f"/v1/sandboxes/{answer['sandbox']}")[0] == 200
    client.delete(mine.id)
    client.close()


def test_a_ticket_of_another_user_opens_nothing(stranger: Stranger, owned: dict[str, str], daemon: Sandboxd) -> None:
    client = SandboxClient(daemon.socket)
    stolen = client.mint("owner", list(EFFECTS))
    client.close()
    assert stranger("GET", f"/v1/sandboxes/{owned['sandboxes']}", LearnGraph_Ticket=stolen)[0] == 404
    assert stranger("GET", "/v1/sandboxes", LearnGraph_Ticket=stolen)[0] in (401, 403)


def test_a_user_cannot_stop_the_daemon_of_another(stranger: Stranger, daemon: Sandboxd) -> None:
    status, answer = stranger("POST", "/v1/shutdown", {})
    assert (status, answer["error"]["code"]) == (403, "not_its_owner") and answer["error"]["remedy"]
    client = SandboxClient(daemon.socket)
    assert client.health()["state"] == "ok"
    client.close()


def test_a_collection_by_one_user_leaves_the_others_things(
    stranger: Stranger, owned: dict[str, str], daemon: Sandboxd
) -> None:
    assert stranger("POST", "/v1/gc", {})[0] == 200
    client = SandboxClient(daemon.socket)
    assert client.get_file(owned["sandboxes"], owned["file"]).startswith(b"print")
    assert [kernel.id for kernel in client.overview()[1]] == [owned["kernels"]]
    client.close()
