"""Files in and out of the daemon: on disk as they come, never whole in its memory, and only for a known caller."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import re
import socket
from pathlib import Path

import pytest

from learngraph_kernel.sandbox.answers import BadRequest, TooLarge
from learngraph_kernel.sandbox.client import SandboxClient
from tests.sandboxd.running import Sandboxd

MIB = 1024 * 1024
DAEMON = {"upload_bytes": 128 * MIB, "workspace_bytes": 256 * MIB}


def peak_memory(process: int) -> int:
    """Bytes of the most memory a process ever had (proc(5), VmHWM)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_a_large_file_passes_through_without_being_held_in_memory(daemon: Sandboxd, client: SandboxClient) -> None:
    assert daemon.process is not None
    box = client.create("large").id
    client.put_file(box, "work/small.bin", b"x")
    before = peak_memory(daemon.process.pid)
    data = bytes(range(256)) * (100 * MIB // 256)
    entry = client.put_file(box, "work/large.bin", data)
    assert entry["sha256"] == hashlib.sha256(data).hexdigest() and entry["size"] == len(data)
    assert client.get_file(box, "work/large.bin") == data
    assert peak_memory(daemon.process.pid) - before < 40 * MIB


def begin(path: Path, target: str, length: int, **headers: str) -> http.client.HTTPConnection:
    """A PUT whose headers are sent, and nothing of its body."""
    connection = http.client.HTTPConnection("sandboxd", timeout=20)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(20)
    connection.sock.connect(str(path))
    connection.putrequest("PUT", target)
    for name, value in {"Content-Length": str(length), **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection


def answered(connection: http.client.HTTPConnection) -> int | None:
    """The status of the answer; None when the connection was cut instead."""
    try:
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return None
    finally:
        connection.close()


def test_an_unknown_caller_is_refused_before_the_body(daemon: Sandboxd) -> None:
    target = f"/v1/sandboxes/sb_{'0' * 24}/files/content?path=work/a"
    connection = begin(daemon.socket, target, 100 * MIB, Authorization="LearnGraph nonsense")
    assert connection.getresponse().status == 401  # answered without a byte of the body
    connection.close()


def test_an_upload_beyond_its_limit_is_refused(daemon: Sandboxd, client: SandboxClient) -> None:
    box = client.create("beyond").id
    connection = begin(daemon.socket, f"/v1/sandboxes/{box}/files/content?path=work/a", 129 * MIB)
    assert answered(connection) in (None, 400, 413)
    assert client.files(box) == []


def test_a_chunked_upload_beyond_its_limit_leaves_nothing(daemon: Sandboxd, client: SandboxClient) -> None:
    box = client.create("chunks").id
    ticket = client.mint("owner", ["files"])
    connection = http.client.HTTPConnection("sandboxd", timeout=20)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(20)
    connection.sock.connect(str(daemon.socket))
    target, headers = f"/v1/sandboxes/{box}/files/content?path=work/a", {"LearnGraph-Ticket": ticket}
    endless = (b"y" * MIB for _ in range(200))
    with contextlib.suppress(ConnectionError):  # it stopped listening, which is an answer as well
        connection.request("PUT", target, endless, headers, encode_chunked=True)
    assert answered(connection) in (None, 400, 413)
    assert client.files(box) == []
    client.health()


def test_a_large_json_body_is_refused(client: SandboxClient) -> None:
    box = client.create("json").id
    with pytest.raises((TooLarge, BadRequest)):
        client.exec(box, ["python", "work/a.py", "x" * 300_000])
