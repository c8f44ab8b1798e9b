"""A CONNECT proxy with one way out: one host, port 443, at addresses that were checked before.

For programs that insist on opening their own connections (`git`). They are given nothing but this proxy; it looks no
name up, counts what comes back, and cuts everything at the deadline or the limit. Others on this machine cannot use it:
it listens on loopback and asks for a random word.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import select
import socket
import threading
from collections.abc import Sequence
from types import TracebackType

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.acquisition import LimitExceeded
from learngraph_kernel.sandbox.fetching import CHUNK, CONNECT_SECONDS, MAX_CONNECTS, Connector, Meter
from learngraph_kernel.sandbox.urls import HTTPS_PORT

MAX_CONNECTIONS = 16  # in the life of a tunnel; git needs one or two
_MAX_HEAD = 8192
_POLL_SECONDS = 0.1


class Tunnel:
    """Use as a context manager; all its threads have ended when the block has.

    Attributes:
        url: for `http.proxy`, with the word in it.
        exceeded: the limit that was hit, if one was.
        refused: what was asked of the proxy and not given, for messages.
    """

    def __init__(self, host: str, addresses: Sequence[str], *, connector: Connector, meter: Meter) -> None:
        self._target = f"{host}:{HTTPS_PORT}".encode()
        self._addresses = list(addresses)
        self._connector = connector
        self._meter = meter
        self._lock = threading.Lock()
        self._word = secrets.token_urlsafe(24)
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.url = ""
        self.exceeded: LimitExceeded | None = None
        self.refused: list[str] = []

    def __enter__(self) -> Tunnel:
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(MAX_CONNECTIONS)
        self._listener.settimeout(_POLL_SECONDS)
        self.url = f"http://lg:{self._word}@127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._threads[0].join()  # accepts no more, so the list is complete
        self._listener.close()
        for thread in self._threads[1:]:
            thread.join()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="learngraph-tunnel")  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            if len(self._threads) > MAX_CONNECTIONS:
                client.close()
                continue
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                status = self._asked(client)
                upstream = self._connected() if status is None else None
                if upstream is None:
                    status = status or "502 Bad Gateway"
                    client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                    return
                with upstream:
                    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    self._relay(client, upstream)
            except LimitExceeded as error:
                self.exceeded = error
            except (OSError, LearnGraphError):
                return  # either side hung up; git says what that meant to it

    def _asked(self, client: socket.socket) -> str | None:
        """Reads the head of a request; the status to refuse it with, or None."""
        client.settimeout(min(self._meter.left(), CONNECT_SECONDS))
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(1024)
            if not piece or len(head) > _MAX_HEAD:
                return "400 Bad Request"
            head += piece
        first, *fields = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
        given = next((field for field in fields if field.lower().startswith(b"proxy-authorization:")), b"")
        wanted = b"Basic " + base64.b64encode(f"lg:{self._word}".encode())
        if not hmac.compare_digest(given.partition(b":")[2].strip(), wanted):
            return "407 Proxy Authentication Required"
        words = first.split(b" ")
        if len(words) != 3 or words[0] != b"CONNECT" or words[1].lower() != self._target:
            self.refused.append(first.decode("ascii", "replace")[:200])
            return "403 Forbidden"
        return None

    def _connected(self) -> socket.socket | None:
        for address in self._addresses[:MAX_CONNECTS]:
            try:
                return self._connector.connect(address, HTTPS_PORT, min(self._meter.left(), CONNECT_SECONDS))
            except OSError:
                continue  # the next address; 502 when none is left
        return None

    def _relay(self, client: socket.socket, upstream: socket.socket) -> None:
        client.settimeout(CONNECT_SECONDS)
        upstream.settimeout(CONNECT_SECONDS)
        while not self._stopping.is_set():
            self._meter.left()
            readable, _, _ = select.select([client, upstream], [], [], _POLL_SECONDS)
            for source in readable:
                data = source.recv(CHUNK)
                if not data:
                    return
                if source is upstream:
                    with self._lock:
                        self._meter.count(len(data))
                (client if source is upstream else upstream).sendall(data)
