"""One HTTPS GET to an address that was checked before: no second look-up, no redirect, no byte or second too many.

TLS is verified for the *name* over a socket to the *address*, so neither a changed DNS answer nor the server at that
address can put something else in the place of what was approved. Bytes are counted where they leave TLS, and every read
has the deadline of the whole download, so that a server which trickles gains nothing.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from learngraph_kernel.sandbox.acquisition import AcquisitionFailed, LimitExceeded
from learngraph_kernel.sandbox.urls import ParsedUrl

CHUNK = 1 << 16
MAX_CONNECTS = 4
CONNECT_SECONDS = 10.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GZIP = 16 + zlib.MAX_WBITS

Sink: TypeAlias = Callable[[bytes], object]


class Connector(Protocol):
    """Opens a TCP connection to an address."""

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        """A connected socket. Raises OSError."""


class DirectConnector:
    """Connects to exactly that address; there is no name in it that could be looked up."""

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        parsed = ipaddress.ip_address(address)
        sock = socket.socket(socket.AF_INET if parsed.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            sock.connect((str(parsed), port))
        except BaseException:
            sock.close()
            raise
        return sock


@dataclass(slots=True)
class Meter:
    """Time and bytes that one acquisition may still use, over all its redirects.

    Attributes:
        deadline: on the clock of `now`, in seconds.
        wire_limit, received: bytes.
    """

    deadline: float
    wire_limit: int
    now: Callable[[], float] = time.monotonic
    received: int = 0

    @classmethod
    def starting(cls, *, seconds: float, wire_bytes: int, now: Callable[[], float] = time.monotonic) -> Meter:
        return cls(now() + seconds, wire_bytes, now)

    def left(self) -> float:
        """Seconds until the deadline. Raises LimitExceeded when there are none."""
        left = self.deadline - self.now()
        if left <= 0:
            raise over("seconds", "the download took too long")
        return left

    def count(self, received: int) -> None:
        """Counts bytes. Raises LimitExceeded."""
        self.received += received
        if self.received > self.wire_limit:
            raise over("wire_bytes", f"the server sends more than {self.wire_limit} bytes")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said.

    Attributes:
        location: of a redirect, raw; None when this is the content, which the sink then has.
        declared_type: the media type, without parameters, in lower case.
        stored_bytes: how many the sink was given.
    """

    status: int
    location: str | None
    declared_type: str | None
    stored_bytes: int


def get(
    url: ParsedUrl,
    addresses: Sequence[str],
    *,
    connector: Connector,
    tls: ssl.SSLContext,
    meter: Meter,
    stored_limit: int,
    accept: str,
    sink: Sink,
) -> Answer:
    """Fetches a URL from the first of its checked addresses that accepts a connection.

    Args:
        addresses: as the policy allowed them.
        tls: verifies names; `default_tls()` unless a test has an authority of its own.
        meter: shared by all requests of one acquisition.
        stored_limit: bytes after decoding.
        accept: the Accept header.
        sink: takes the decoded content, piece by piece.

    Raises:
        LimitExceeded, AcquisitionFailed.
    """
    try:
        with _connected(url, addresses, connector, meter) as plain:
            plain.settimeout(meter.left())
            with tls.wrap_socket(plain, server_hostname=url.host, suppress_ragged_eofs=False) as secure:
                return _exchange(url, secure, meter, stored_limit, accept, sink)
    except ssl.SSLCertVerificationError as error:
        raise failed(f"the certificate is not valid for {url.host} ({error.verify_message})", url) from error
    except TimeoutError as error:
        raise over("seconds", "the download took too long") from error
    except (OSError, http.client.HTTPException) as error:
        raise failed(f"the connection failed ({type(error).__name__})", url) from error


def default_tls() -> ssl.SSLContext:
    """The machine's authorities, TLS 1.2 or newer, names verified."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def over(limit: str, what: str) -> LimitExceeded:
    """The error for a limit of that name."""
    return LimitExceeded(what, remedy="ask for less, or for an approval with a higher limit", details={"limit": limit})


def failed(what: str, url: ParsedUrl) -> AcquisitionFailed:
    """The error for a server that did not give the content."""
    return AcquisitionFailed(what, where=url.normalised, remedy="check the address in a browser, then ask again")


def _connected(url: ParsedUrl, addresses: Sequence[str], connector: Connector, meter: Meter) -> socket.socket:
    for address in addresses[:MAX_CONNECTS]:
        try:
            return connector.connect(address, url.port, min(meter.left(), CONNECT_SECONDS))
        except OSError:
            continue  # the next of its addresses; when none is left, that is said below
    raise failed("no address of the host accepts a connection", url)


def _exchange(
    url: ParsedUrl, secure: ssl.SSLSocket, meter: Meter, stored_limit: int, accept: str, sink: Sink
) -> Answer:
    connection = _OneConnection(url.host)
    connection.auto_open = 0
    connection.sock = _MeteredSocket(secure, meter)
    connection.putrequest("GET", url.target, skip_accept_encoding=True)
    connection.putheader("Accept", accept)
    connection.putheader("Accept-Encoding", "identity")
    connection.putheader("User-Agent", "LearnGraph")
    connection.putheader("Connection", "close")
    connection.endheaders()
    response = connection.getresponse()
    declared = response.headers.get_content_type() if "Content-Type" in response.headers else None
    if response.status in REDIRECTS:
        return Answer(response.status, _location(response, url), declared, 0)
    if response.status != 200:
        raise failed(f"the server answered {response.status}", url)
    if response.length is not None and response.length > meter.wire_limit:
        raise over("wire_bytes", f"the server announces {response.length} bytes, more than {meter.wire_limit}")
    stored = 0
    for piece in _decoded(response, url):
        stored += len(piece)
        if stored > stored_limit:
            raise over("stored_bytes", f"the content is larger than {stored_limit} bytes")
        sink(piece)
    return Answer(200, None, declared, stored)


def _location(response: http.client.HTTPResponse, url: ParsedUrl) -> str:
    values = response.headers.get_all("Location") or []
    if len(values) != 1:
        raise failed("the server redirects without saying where", url)
    try:
        return values[0].encode("latin-1").decode("utf-8")
    except UnicodeError as error:
        raise failed("the server redirects to something that is no text", url) from error


def _raw(response: http.client.HTTPResponse, url: ParsedUrl) -> Iterator[bytes]:
    while chunk := response.read(CHUNK):
        yield chunk
    if response.length not in (None, 0):  # http.client gives a short body as if it were whole
        raise failed("the server stopped in the middle", url)


def _decoded(response: http.client.HTTPResponse, url: ParsedUrl) -> Iterator[bytes]:
    encodings = [value.strip().lower() for value in response.headers.get_all("Content-Encoding") or []]
    if encodings in ([], ["identity"], [""]):
        yield from _raw(response, url)
    elif encodings in (["gzip"], ["x-gzip"]):
        yield from _inflated(_raw(response, url), _GZIP, url)
    elif encodings == ["deflate"]:
        yield from _inflated(_raw(response, url), zlib.MAX_WBITS, url)
    else:
        raise failed(f"the content is encoded in a way that is not accepted ({', '.join(encodings)[:60]})", url)


def _inflated(chunks: Iterator[bytes], window: int, url: ParsedUrl) -> Iterator[bytes]:
    """Decompresses in pieces of a bounded size, so that a bomb is met by the limit and not by the memory."""
    decoder = zlib.decompressobj(window)
    try:
        for chunk in chunks:
            waiting = chunk
            while waiting:
                if decoder.eof:  # a gzip file may have several members
                    decoder = zlib.decompressobj(window)
                yield decoder.decompress(waiting, CHUNK)
                waiting = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        while piece := decoder.decompress(b"", CHUNK) if not decoder.eof else b"":
            yield piece
    except zlib.error as error:
        raise failed("the compressed content is damaged", url) from error
    if not decoder.eof:
        raise failed("the compressed content stops in the middle", url)


class _OneConnection(http.client.HTTPConnection):
    """Speaks over the socket it is given and opens none; 443 is the port that the Host header leaves out."""

    default_port = 443


class _MeteredReader(io.RawIOBase):
    def __init__(self, sock: ssl.SSLSocket, meter: Meter) -> None:
        super().__init__()
        self._sock = sock
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._meter.left())
        received = self._sock.recv_into(buffer)
        self._meter.count(received)
        return received


class _MeteredSocket:
    """What `http.client` uses of a socket."""

    def __init__(self, sock: ssl.SSLSocket, meter: Meter) -> None:
        self._sock = sock
        self._meter = meter

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self._meter.left())
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_MeteredReader(self._sock, self._meter), CHUNK)

    def close(self) -> None:
        """The `with` block that owns the socket closes it."""
