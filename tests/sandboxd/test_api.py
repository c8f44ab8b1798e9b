"""The API over its socket, with a real engine: callers, tickets, keys, errors, lifecycle."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.answers import BadRequest, Conflict, Forbidden, NotFound, OverCapacity, Unauthenticated
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandbox.transport import new_key
from tests.sandboxd.running import Sandboxd

DAEMON = {"active_per_user": 2, "retained_per_user": 4}
NOBODY = 65534


def exchange(path: Path, method: str, target: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """One call as any program would make it."""
    connection = http.client.HTTPConnection("sandboxd", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    data = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
    connection.request(method, target, data, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content) if content.startswith(b"{") else content


def _as_nobody(path: Path, pipe: Any) -> None:
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    pipe.send([exchange(path, "GET", "/v1/health"), exchange(path, "GET", "/v1/sandboxes")])


def test_another_uid_is_nobody_here(daemon: Sandboxd) -> None:
    if os.geteuid() != 0:
        pytest.skip("NOT ROOT: cannot become another user")
    daemon.socket.chmod(0o666)
    for folder in (daemon.folder, daemon.folder.parent):
        folder.chmod(0o755)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_as_nobody, args=(daemon.socket, theirs))
    process.start()
    answers = ours.recv()
    process.join()
    assert [status for status, _ in answers] == [401, 401]
    assert answers[0][1]["error"]["code"] == "unauthenticated"


def test_the_socket_is_closed_to_others(daemon: Sandboxd) -> None:
    daemon.socket.chmod(0o660)
    assert daemon.state.stat().st_mode & 0o077 == 0


def test_a_call_without_a_ticket_is_refused(daemon: Sandboxd) -> None:
    status, answer = exchange(daemon.socket, "GET", "/v1/sandboxes")
    assert (status, answer["error"]["code"]) == (401, "ticket_missing")
    assert answer["error"]["remedy"] and answer["error"]["details"]["zh"]["reason"]


def test_a_session_ticket_opens_no_other_session_and_mints_nothing_wider(
    client: SandboxClient, daemon: Sandboxd
) -> None:
    one, two = client.create("one"), client.create("two")
    narrow = SandboxClient(daemon.socket, ticket=client.mint("session:one", ["observe"]))
    assert narrow.get(one.id).id == one.id
    for refused in (
        lambda: narrow.get(two.id),
        lambda: narrow.start(one.id),
        lambda: narrow.exec(one.id, ["python", "work/a.py"]),
        lambda: narrow.put_file(one.id, "work/a.py", b""),
        lambda: narrow.grant_deletion(one.id, ["work/a"]),
        lambda: narrow.overview(),
    ):
        with pytest.raises(Forbidden):
            refused()
    narrow.close()


def test_a_forged_ticket_is_refused(client: SandboxClient, daemon: Sandboxd) -> None:
    good = client.mint("owner", ["observe"])
    forged = SandboxClient(daemon.socket, ticket=good[:-4] + "0000")
    with pytest.raises(Unauthenticated):
        forged.overview()
    forged.close()


def test_nobody_elses_sandbox_is_there(client: SandboxClient, daemon: Sandboxd, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    from learngraph_kernel.sandbox.service_tokens import sign_token

    key = Ed25519PrivateKey.generate()
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (daemon.state / "service-keys" / "hub.pub").write_bytes(pem)
    mine = client.create("mine")
    ana = SandboxClient(daemon.socket, token=sign_token(key, "hub", "ana", now=time.time()))
    with pytest.raises(NotFound):
        ana.get(mine.id)
    hers = ana.create("mine")
    assert hers.id != mine.id
    with pytest.raises(NotFound):
        client.get(hers.id)
    ana.delete(hers.id)
    ana.close()


def test_the_same_key_gives_the_same_answer_and_another_body_a_conflict(client: SandboxClient) -> None:
    key = new_key()
    first = client.create("keyed", key=key)
    assert client.create("keyed", key=key) == first
    with pytest.raises(Conflict) as caught:
        client.create("other", key=key)
    assert caught.value.code == "idempotency_conflict"
    ticket = client.mint("owner", ["observe"], key=(minted := new_key()))
    assert client.mint("owner", ["observe"], key=minted) == ticket


def test_a_creating_call_needs_a_key(client: SandboxClient, daemon: Sandboxd) -> None:
    ticket = client.mint("owner", ["lifecycle"])
    status, answer = exchange(daemon.socket, "POST", "/v1/sandboxes", {"session": "x"}, LearnGraph_Ticket=ticket)
    assert (status, answer["error"]["code"]) == (400, "idempotency_key_missing")


def test_two_policies_never_mix_in_a_session(client: SandboxClient) -> None:
    client.create("mixed")
    with pytest.raises(Conflict) as caught:
        client.create("mixed", "sandbox-policy-v1")
    assert caught.value.code == "policy_mixed"


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("GET", "/", None, 404),
        ("GET", "/v1/sandboxes/../../etc/passwd", None, 404),
        ("GET", "/v1/sandboxes/sb_1", None, 404),
        ("PATCH", "/v1/sandboxes", None, 405),
        ("PUT", "/v1/health", b"", 400),
        ("POST", "/v1/tickets", b"{", 400),
        ("POST", "/v1/tickets", b"[]", 400),
        ("POST", "/v1/tickets", b'{"user": "root", "scope": "owner", "effects": ["exec"]}', 400),
        ("POST", "/v1/tickets", b'{"a":' * 50_000, 400),
        ("POST", "/v1/tickets", b" " * 300_000, 413),
    ],
)
def test_malformed_calls_get_a_clear_answer(daemon: Sandboxd, method: str, target: str, body: Any, status: int) -> None:
    found, answer = exchange(daemon.socket, method, target, body, Idempotency_Key=new_key())
    assert found == status
    assert set(answer["error"]) >= {"code", "reason"}
    assert str(daemon.folder) not in json.dumps(answer)


def test_a_slow_client_blocks_nobody(daemon: Sandboxd, client: SandboxClient) -> None:
    slow = socket.socket(socket.AF_UNIX)
    slow.connect(str(daemon.socket))
    slow.sendall(b"POST /v1/tickets HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
    started = time.monotonic()
    client.health()
    assert time.monotonic() - started < 5
    slow.close()


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 5\r\nContent-Length: 40",
        "Content-Length: 5, 40",
        "Content-Length: +5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked\r\nContent-Length: 5",
    ],
)
def test_a_body_whose_end_can_be_read_in_two_ways_smuggles_no_second_call(daemon: Sandboxd, framing: str) -> None:
    hidden = "GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(10)
        raw.connect(str(daemon.socket))
        raw.sendall(f"POST /v1/tickets HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n0\r\n\r\n{hidden}".encode())
        answers = b""
        while data := raw.recv(65536):
            answers += data
    assert answers.count(b"HTTP/1.1 ") <= 1
    assert b"HTTP/1.1 200" not in answers


def test_start_stop_and_the_guard_rail_of_two(client: SandboxClient, daemon: Sandboxd) -> None:
    boxes = [client.create(f"rail-{n}") for n in range(3)]
    assert boxes[0].state == "created"
    assert [client.start(box.id).state for box in boxes[:2]] == ["warm_idle", "warm_idle"]
    with pytest.raises(OverCapacity) as caught:
        client.start(boxes[2].id)
    assert caught.value.code == "user_containers" and caught.value.remedy and caught.value.details["zh"]
    assert client.stop(boxes[0].id).state == "cold"
    assert client.start(boxes[2].id).state == "warm_idle"
    assert len(daemon.containers()) == 2


def test_only_so_many_workspaces_are_kept(client: SandboxClient) -> None:
    for n in range(4):
        client.create(f"kept-{n}")
    with pytest.raises(OverCapacity) as caught:
        client.create("one-too-many")
    assert caught.value.code == "user_workspaces"


def test_files_come_and_go_without_a_container(client: SandboxClient) -> None:
    box = client.create("files")
    client.put_file(box.id, "inputs/a.csv", b"x,y\n1,2\n")
    client.put_file(box.id, "work/b.txt", b"b")
    assert client.get_file(box.id, "inputs/a.csv") == b"x,y\n1,2\n"
    assert {file["path"]: file["size"] for file in client.files(box.id)} == {"inputs/a.csv": 8, "work/b.txt": 1}
    assert client.delete_file(box.id, "work/b.txt") == ["work/b.txt"]
    for refused in ("../state/sandboxd.db", "/etc/passwd", "work/../../x"):
        with pytest.raises(Forbidden):
            client.get_file(box.id, refused)


def test_readiness_and_metrics_say_what_is(client: SandboxClient) -> None:
    checks = {check["name"]: check["state"] for check in client.readiness()["checks"]}
    assert checks["engine"] == checks["image"] == checks["disk"] == "ok"
    assert "learngraph_sandbox_containers_active 0" in client.metrics()


def test_a_kernels_folder_must_be_the_callers_own(client: SandboxClient, tmp_path: Path) -> None:
    for folder in ("/etc", "/tmp", str(tmp_path), "/tmp/lg-../etc", "relative"):
        with pytest.raises((BadRequest, Forbidden)):
            client.start_kernel("r1", folder=Path(folder), granted=Path(folder))
