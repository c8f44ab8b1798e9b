"""The only way out of a box: CONNECT on a unix socket, held against one policy, to addresses checked each time.

One proxy serves one container, so what a connection may do follows from the socket it came through; the policy's
digest in its `Proxy-Authorization` says that whoever asks means this policy. A name is looked up when it is connected
to, every address it has is classified, and the connection goes to one of those: what DNS says a moment later changes
nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from learngraph_kernel.sandbox.addresses import AddressPolicy
from learngraph_kernel.sandbox.egress import EgressPolicy
from learngraph_kernel.sandbox.fetching import CONNECT_SECONDS, MAX_CONNECTS, Connector
from learngraph_kernel.sandbox.hostnames import UrlRefused, normal_host
from learngraph_kernel.sandbox.urls import HTTPS_PORT, ParsedUrl, Resolver, check_host
from learngraph_kernel.sandboxd.workers import Workers

MAX_HEAD = 8_192
MAX_TUNNELS = 16
MAX_BYTES = 256 * 1024 * 1024
"""Through one tunnel, both directions together."""
CHUNK = 64 * 1024
HEAD_SECONDS = 10.0
_CONNECT = re.compile(rb"CONNECT ([A-Za-z0-9.-]{1,253}):([0-9]{1,5}) HTTP/1\.[01]")


class Network(Protocol):
    """What reaches the world; `egress.Network` is the real one."""

    @property
    def resolver(self) -> Resolver: ...

    @property
    def connector(self) -> Connector: ...

    @property
    def policy(self) -> AddressPolicy: ...


@dataclass
class Tunnelled:
    """One connection that was asked for, as it goes on record.

    Attributes:
        policy: digest.
        verdict: `opened` or `refused`.
        sent, received: bytes through the tunnel, seen from the box.
    """

    policy: str
    host: str = ""
    address: str | None = None
    verdict: Literal["opened", "refused"] = "refused"
    reason: str | None = None
    sent: int = 0
    received: int = 0


class _No(Exception):
    """A refusal with its HTTP status."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class EgressProxy:
    """One door.

    Args:
        path: of the socket.
        network: resolver, connector, address policy.
        still: whether the policy is still on record as it was.
        note: records what came of a connection.
        clock: unix seconds.
    """

    def __init__(
        self,
        path: Path,
        policy: EgressPolicy,
        network: Network,
        workers: Workers,
        *,
        still: Callable[[EgressPolicy], Awaitable[bool]],
        note: Callable[[Tunnelled], Coroutine[Any, Any, None]],
        clock: Callable[[], float],
    ) -> None:
        self._path, self._policy, self._network, self._workers = path, policy, network, workers
        self._still, self._note, self._clock = still, note, clock
        self._word = b"Basic " + base64.b64encode(f"policy:{policy.digest}".encode())
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listens."""
        self._server = await asyncio.start_unix_server(self._accept, self._path, limit=MAX_HEAD)

    async def close(self) -> None:
        """Listens no more, and ends every tunnel."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        done, answer = Tunnelled(self._policy.digest), b""
        try:
            await self._serve(reader, writer, done)
        except _No as no:
            done.reason = no.reason
            answer = f"HTTP/1.1 {no.status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            done.reason = done.reason or type(error).__name__  # either side hung up
        finally:
            # On record before it is answered, and also when this task is cancelled: the workers hold what writes.
            await asyncio.shield(self._workers.spawn(self._note(done), "egress record"))
            with contextlib.suppress(OSError):
                writer.write(answer)
                await writer.drain()
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, done: Tunnelled) -> None:
        if len(self._tasks) > MAX_TUNNELS:
            raise _No("429 Too Many Requests", "too many connections at once")
        done.host = await self._asked(reader)
        upstream_reader, upstream_writer = await self._connected(done)
        try:
            done.verdict = "opened"
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            async with asyncio.timeout(max(self._policy.ends - self._clock(), 0)):
                await self._relay((reader, upstream_writer), (upstream_reader, writer), done)
        finally:
            upstream_writer.close()

    async def _asked(self, reader: asyncio.StreamReader) -> str:
        """The host of a request that is well formed, authorised and allowed."""
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError) as error:
            raise _No("400 Bad Request", "no request") from error
        first, *fields = head[:-4].split(b"\r\n")
        given = [field.partition(b":") for field in fields]
        words = [value.strip() for name, _, value in given if name.strip().lower() == b"proxy-authorization"]
        if len(words) != 1 or not hmac.compare_digest(words[0], self._word):
            raise _No("407 Proxy Authentication Required", "not this policy's digest")
        asked = _CONNECT.fullmatch(first)
        if asked is None:
            raise _No("403 Forbidden", "only CONNECT to a host name is served")
        host, port = asked[1].decode().lower(), int(asked[2])
        try:
            named = normal_host(host)
        except UrlRefused as error:
            raise _No("403 Forbidden", error.what) from error
        refusal = self._policy.refusal(named, port, self._clock())
        if refusal is None and not await self._still(self._policy):
            refusal = "the policy was taken back"
        if refusal is not None:
            raise _No("403 Forbidden", refusal)
        return named

    async def _connected(self, done: Tunnelled) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        network, url = self._network, ParsedUrl(done.host, "/")
        decision = await self._workers.run(check_host, url, network.resolver, policy=network.policy)
        if not decision.allowed:
            raise _No("403 Forbidden", decision.reason)
        for address in decision.addresses[:MAX_CONNECTS]:
            try:
                opened = await self._workers.run(network.connector.connect, address, HTTPS_PORT, CONNECT_SECONDS)
            except OSError:
                continue  # the next of its addresses; 502 when none is left
            opened.setblocking(False)
            done.address = address
            return await asyncio.open_connection(sock=opened)
        raise _No("502 Bad Gateway", "no address of the host accepts a connection")

    async def _relay(
        self,
        out: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        back: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        done: Tunnelled,
    ) -> None:
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, outwards: bool) -> None:
            while data := await reader.read(CHUNK):
                if outwards:
                    done.sent += len(data)
                else:
                    done.received += len(data)
                if done.sent + done.received > MAX_BYTES:
                    done.reason = f"more than {MAX_BYTES} bytes"
                    return
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.ensure_future(carry(*out, outwards=True)), asyncio.ensure_future(carry(*back, outwards=False))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
