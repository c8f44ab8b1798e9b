# ruff: noqa: E501  tables of answers, one a line

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from sqlalchemy import select

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.acquire import acquire, file_request
from learngraph_kernel.sandbox.acquisition import AcquisitionFailed, ApprovalNeeded, LimitExceeded, Limits, TypeRefused
from learngraph_kernel.sandbox.addresses import refusal_of
from learngraph_kernel.sandbox.fetching import DirectConnector
from learngraph_kernel.sandbox.hostnames import UrlRefused
from learngraph_kernel.sandbox.receipts import receipt, receipts_of
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.store.schema import audit, outbox
from tests.sandbox.conftest import World

URL = "https://files.example/data.csv"
CSV = b"week,gmv\n2013-W07,1000\n"


def fetch(world: World, url: str = URL, **limits: object):  # type: ignore[no-untyped-def]
    """Approves and fetches."""
    bounds = Limits(**limits)  # type: ignore[arg-type]
    world.allow(file_request(url, limits=bounds))
    return acquire(url, world.gate, limits=bounds)


def test_a_file_is_stored_by_its_hash_and_the_receipt_says_everything(world: World) -> None:
    world.site.serve("/data.csv", CSV, Content_Type="text/csv; charset=utf-8")
    request = file_request("https://Files.Example:443/data.csv#x")
    approval = world.allow(request)
    got = acquire("https://Files.Example:443/data.csv#x", world.gate)
    assert world.store.artifacts.read(got.sha256) == CSV
    assert dataclasses.replace(got, id="", at="", wire_bytes=0) == dataclasses.replace(
        got,
        id="",
        at="",
        kind="file",
        request=request.digest,
        requested_url=URL,
        final_url=URL,
        redirects=(),
        addresses=("127.0.0.1",),
        declared_type="text/csv",
        detected_type="text/plain",
        wire_bytes=0,
        stored_bytes=len(CSV),
        sha256=hashlib.sha256(CSV).hexdigest(),
        commit=None,
        approval=approval,
        redirect_approvals=(),
    )
    assert len(CSV) < got.wire_bytes < len(CSV) + 1000
    assert world.site.requests == ["files.example/data.csv"]


def test_the_receipt_can_be_read_again_and_has_its_audit_record_and_message(world: World) -> None:
    world.site.serve("/data.csv", CSV)
    got = fetch(world)
    assert receipt(world.store, got.id) == got
    assert receipts_of(world.store, got.sha256) == [got]
    actions = select(audit.c.action).order_by(audit.c.id)
    assert world.store.scalars(actions) == ["acquire.approved", "acquire.completed"]
    assert world.store.scalars(select(outbox.c.type)) == ["acquisition.completed"]


def test_the_connection_goes_to_the_checked_address_and_the_name_is_looked_up_once(world: World) -> None:
    class Rebinding:
        """A public address for the check; loopback for whoever asks again."""

        asked = 0

        def resolve(self, host: str) -> list[str]:
            self.asked += 1
            return ["93.184.216.34"] if self.asked == 1 else ["127.0.0.1"]

    resolver = Rebinding()
    world.site.serve("/data.csv", CSV)
    world.replace(resolver=resolver, policy=refusal_of)
    got = fetch(world)
    assert (resolver.asked, got.addresses) == (1, ("93.184.216.34",))
    assert world.connector.asked == [("93.184.216.34", 443)]


def test_a_name_that_rebinds_between_redirects_is_refused_before_a_second_connection(world: World) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])

    class Rebinding:
        def resolve(self, host: str) -> list[str]:
            return next(answers)

    world.site.redirect("/data.csv", "/again")
    world.replace(resolver=Rebinding(), policy=refusal_of)
    with pytest.raises(UrlRefused, match="loopback"):
        fetch(world)
    assert world.connector.asked == [("93.184.216.34", 443)]


def test_the_next_checked_address_is_tried_when_one_is_deaf(world: World) -> None:
    world.site.serve("/data.csv", CSV)
    world.replace(resolver=FixedResolver({"files.example": ["1.1.1.1", "8.8.8.8"]}))
    world.connector.deaf = frozenset({"1.1.1.1"})
    assert fetch(world).addresses == ("1.1.1.1", "8.8.8.8")
    assert [address for address, _ in world.connector.asked] == ["1.1.1.1", "8.8.8.8"]


def test_production_refuses_loopback_and_connects_to_nothing(world: World) -> None:
    world.replace(policy=refusal_of)
    with pytest.raises(UrlRefused, match="loopback"):
        fetch(world)
    assert world.connector.asked == []


def test_the_direct_connector_takes_no_name() -> None:
    with pytest.raises(ValueError, match="localhost"):
        DirectConnector().connect("localhost", 443, 1.0)


def test_the_direct_connector_connects_to_an_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with DirectConnector().connect("127.0.0.1", port, 5.0) as sock:
            assert sock.getpeername() == ("127.0.0.1", port)


# TLS


def test_a_certificate_for_another_name_is_refused(world: World) -> None:
    world.replace(resolver=FixedResolver({"unlisted.example": ["127.0.0.1"]}))
    with pytest.raises(AcquisitionFailed, match=r"certificate is not valid for unlisted\.example"):
        fetch(world, "https://unlisted.example/data.csv")
    assert world.site.requests == []


def test_an_unknown_authority_is_refused(world: World) -> None:
    world.replace(tls=ssl.create_default_context())
    with pytest.raises(AcquisitionFailed, match="certificate"):
        fetch(world)
    assert world.site.requests == []


def test_a_server_that_speaks_no_tls_is_a_failed_connection(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        world.site.port = listening.getsockname()[1]
        world.replace(connector=_Talking(listening, b"HTTP/1.1 200 OK\r\n\r\n"))
        with pytest.raises(AcquisitionFailed, match="connection failed"):
            fetch(world)


class _Talking:
    """A connector whose other end says something and hangs up."""

    def __init__(self, listening: socket.socket, says: bytes) -> None:
        self.listening, self.says = listening, says

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        client = socket.create_connection(self.listening.getsockname(), timeout)
        other, _ = self.listening.accept()
        other.sendall(self.says)
        other.close()
        return client


# Approvals


def test_without_an_approval_nothing_is_asked_of_resolver_or_network(world: World) -> None:
    class Unasked:
        def resolve(self, host: str) -> list[str]:
            raise AssertionError("a look-up is a packet")

    world.replace(resolver=Unasked())
    with pytest.raises(ApprovalNeeded) as caught:
        acquire(URL, world.gate)
    assert caught.value.details["digest"] == file_request(URL).digest
    assert caught.value.exit_code == 4
    assert world.connector.asked == []


def test_an_approval_is_used_up_by_a_success(world: World) -> None:
    world.site.serve("/data.csv", CSV)
    fetch(world)
    with pytest.raises(ApprovalNeeded):
        acquire(URL, world.gate)


@pytest.mark.parametrize("address", ["127.0.0.1", "8.8.8.8"])
def test_an_approval_is_used_up_by_a_failure(world: World, address: str) -> None:
    world.replace(policy=refusal_of, resolver=FixedResolver({"files.example": [address]}))
    world.allow(file_request(URL))
    with pytest.raises(LearnGraphError) as first:
        acquire(URL, world.gate)
    assert not isinstance(first.value, ApprovalNeeded)
    with pytest.raises(ApprovalNeeded):
        acquire(URL, world.gate)


def test_a_failure_is_in_the_audit_with_its_code(world: World) -> None:
    with pytest.raises(AcquisitionFailed):
        fetch(world)  # 404
    (details,) = world.store.scalars(select(audit.c.details).where(audit.c.action == "acquire.failed"))
    assert '"code":"acquisition_failed"' in details
    assert world.artifacts() == 0


# Redirects


def test_a_redirect_within_the_host_is_followed_and_recorded(world: World) -> None:
    world.site.redirect("/data.csv", "/a/../b?x=1")
    world.site.redirect("/b", "https://files.example/c", status=308)
    world.site.serve("/c", CSV)
    got = fetch(world)
    assert got.redirects == ("https://files.example/b?x=1", "https://files.example/c")
    assert (got.requested_url, got.final_url) == (URL, "https://files.example/c")
    assert len(world.connector.asked) == 3


def test_a_redirect_to_another_host_asks_again(world: World) -> None:
    world.site.redirect("/data.csv", "https://other.example/c")
    with pytest.raises(ApprovalNeeded) as caught:
        fetch(world)
    assert caught.value.request == file_request("https://other.example/c")
    assert caught.value.details["redirected_from"] == URL
    assert world.site.requests == ["files.example/data.csv"]


def test_a_redirect_to_another_host_that_was_allowed_is_followed(world: World) -> None:
    world.site.redirect("/data.csv", "//other.example/c")
    world.site.serve("/c", CSV)
    second = world.allow(file_request("https://other.example/c"))
    got = fetch(world)
    assert got.redirect_approvals == (second,)
    assert world.site.requests == ["files.example/data.csv", "other.example/c"]


@pytest.mark.parametrize(
    "location",
    [
        "http://files.example/c", "https://127.0.0.1/", "https://localhost/", "https://files.example:8443/c", "//[::1]/",
        "https://user@files.example/", "file:///etc/passwd", "javascript:alert(1)", "\\\\other.example\\c", "/a b", "/\ta",
        "https:///c", "https:/c", "//169.254.169.254/latest", "data:text/plain,x", "https://files.example@other.example/", "",
    ],
)  # fmt: skip
def test_a_redirect_that_the_policy_refuses_is_not_followed(world: World, location: str) -> None:
    world.site.redirect("/data.csv", location)
    with pytest.raises(LearnGraphError):
        fetch(world)
    assert world.site.requests == ["files.example/data.csv"]


def test_redirects_in_a_circle_end(world: World) -> None:
    world.site.redirect("/data.csv", "/data.csv")
    with pytest.raises(LimitExceeded, match="more than 5 redirects"):
        fetch(world)
    assert len(world.site.requests) == 6


# Limits


def raw(text: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(text)

    return answer


def limit_of(caught: pytest.ExceptionInfo[LimitExceeded]) -> object:
    return caught.value.details["limit"]


def test_an_announced_size_above_the_limit_is_refused(world: World) -> None:
    world.site.serve("/data.csv", b"x" * 100_000)
    with pytest.raises(LimitExceeded, match="announces 100000") as caught:
        fetch(world, wire_bytes=50_000)
    assert limit_of(caught) == "wire_bytes"
    assert world.artifacts() == 0


def test_an_unannounced_size_is_cut_at_the_limit(world: World) -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            request.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    world.site.routes["/data.csv"] = endless
    with pytest.raises(LimitExceeded) as caught:
        fetch(world, wire_bytes=1_000_000)
    assert limit_of(caught) == "wire_bytes"


def test_a_gzip_bomb_meets_the_limit_of_what_is_stored(world: World) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, mtime=0)
    world.site.serve("/data.csv", bomb, Content_Encoding="gzip")
    with pytest.raises(LimitExceeded) as caught:
        fetch(world, stored_bytes=1_000_000)
    assert limit_of(caught) == "stored_bytes"
    assert world.artifacts() == 0


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(CSV, mtime=0)), ("x-gzip", gzip.compress(CSV, mtime=0)), ("deflate", zlib.compress(CSV)), ("identity", CSV),
        ("GZIP", gzip.compress(CSV[:9], mtime=0) + gzip.compress(CSV[9:], mtime=0)),
    ],
)  # fmt: skip
def test_encoded_content_is_stored_decoded(world: World, encoding: str, body: bytes) -> None:
    world.site.serve("/data.csv", body, Content_Encoding=encoding)
    assert world.store.artifacts.read(fetch(world).sha256) == CSV


def test_much_encoded_content_is_decoded_completely(world: World) -> None:
    content = b"0123456789" * 100_000
    world.site.serve("/data.csv", gzip.compress(content, mtime=0), Content_Encoding="gzip")
    assert fetch(world).stored_bytes == len(content)


DAMAGED = [
    (
        "cut gzip",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + gzip.compress(CSV, mtime=0)[:20],
    ),
    ("no gzip", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
    ("unknown encoding", b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"),
    ("two encodings", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 3\r\n\r\nabc"),
    ("short body", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"),
    ("cut chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc"),
    ("no last chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    ("no length, no end", b"HTTP/1.1 200 OK\r\n\r\nabc"),
    ("no http", b"SSH-2.0-OpenSSH\r\n"),
    ("nothing", b""),
    ("partial", b"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc"),
    ("no content", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ("error", b"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nabc"),
    ("redirect to nowhere", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
    ("two locations", b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
    ("location is no text", b"HTTP/1.1 302 Found\r\nLocation: /\xff\r\nContent-Length: 0\r\n\r\n"),
    ("many headers", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5000 + b"\r\n"),
]


@pytest.mark.parametrize(("name", "answer"), DAMAGED, ids=[name for name, _ in DAMAGED])
def test_an_answer_that_is_not_whole_stores_nothing(world: World, name: str, answer: bytes) -> None:
    world.site.routes["/data.csv"] = raw(answer)
    with pytest.raises(AcquisitionFailed):
        fetch(world)
    assert world.artifacts() == 0


def test_a_short_body_is_noticed_also_when_tls_ends_properly(world: World) -> None:
    def short(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
        assert isinstance(request.connection, ssl.SSLSocket)
        request.connection.unwrap()

    world.site.routes["/data.csv"] = short
    with pytest.raises(AcquisitionFailed, match="stopped in the middle"):
        fetch(world)
    assert world.artifacts() == 0


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "]
)
def test_a_server_that_trickles_meets_the_deadline(world: World, start: bytes) -> None:
    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(start)
        for _ in range(100):
            request.wfile.write(b"x")
            time.sleep(0.05)

    world.site.routes["/data.csv"] = trickle
    began = time.monotonic()
    with pytest.raises(LimitExceeded) as caught:
        fetch(world, seconds=0.4)
    assert limit_of(caught) == "seconds"
    assert time.monotonic() - began < 3


def test_a_server_that_never_shakes_hands_meets_the_deadline(world: World) -> None:
    class Silent:
        def connect(self, address: str, port: int, timeout: float) -> socket.socket:
            ours, self.theirs = socket.socketpair()
            return ours

    world.replace(connector=Silent())
    with pytest.raises(LimitExceeded):
        fetch(world, seconds=0.3)


# Types


def test_an_executable_is_refused_whatever_it_is_called(world: World) -> None:
    world.site.serve("/data.csv", b"\x7fELF\x02\x01\x01" + b"\0" * 100, Content_Type="text/csv")
    with pytest.raises(TypeRefused) as caught:
        fetch(world)
    assert caught.value.details == {"detected": "application/x-executable"}
    assert world.artifacts() == 0


def test_only_the_types_that_were_approved_are_accepted(world: World) -> None:
    world.site.serve("/data.csv", b"<!DOCTYPE html><title>Log in</title>", Content_Type="text/csv")
    with pytest.raises(TypeRefused, match="text/html"):
        fetch(world, types=("text/plain",))


def test_nothing_of_ours_is_sent_but_the_request(world: World) -> None:
    world.site.serve("/data.csv", CSV)
    fetch(world)
    assert world.site.headers == [
        {
            "Host": "files.example",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "User-Agent": "LearnGraph",
            "Connection": "close",
        }
    ]


def test_an_international_name_is_asked_for_by_its_ascii_form(world: World) -> None:
    world.site.serve("/%C3%BC", CSV)
    assert fetch(world, "https://bücher.example/ü").final_url == "https://xn--bcher-kva.example/%C3%BC"
