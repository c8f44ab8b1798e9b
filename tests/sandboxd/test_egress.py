"""The way out of the box, with real containers and a real TLS server: closed unless a person opened exactly that."""

from __future__ import annotations

import asyncio
import base64
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.egress import BadEgress, EgressPolicy, egress_policy
from learngraph_kernel.sandbox.hostnames import UrlRefused
from learngraph_kernel.sandboxd.auth import EFFECTS, Caller, Peer
from learngraph_kernel.sandboxd.daemon import Daemon
from learngraph_kernel.sandboxd.egress import Door, Network
from learngraph_kernel.sandboxd.engine import DockerEngine
from learngraph_kernel.sandboxd.records import Row
from learngraph_kernel.sandboxd.schema import egress_log
from learngraph_kernel.sandboxd.settings import Settings
from tests.sandbox.local_site import Site, ToSite, loopback_allowed, make_authority, start_site
from tests.sandboxd.running import QUIET, containers_of

ANA = Caller("uid:0", Peer(1, 0, 0), frozenset(EFFECTS))
PAGE = b"<p>hello from outside</p>"
HOST, OTHER = "files.example", "other.example"


@dataclass
class Names:
    """A resolver whose answers a test changes while it runs."""

    answers: dict[str, list[str]] = field(default_factory=lambda: {HOST: ["127.0.0.1"], OTHER: ["127.0.0.1"]})
    asked: list[str] = field(default_factory=list)

    def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        return list(self.answers.get(host, []))


@dataclass
class World:
    daemon: Daemon
    site: Site
    names: Names
    now: list[float]
    row: Row

    async def allow(self, *hosts: str, kind: str = "fetch", ttl: float = 600.0) -> dict[str, Any]:
        body = {"kind": kind, "hosts": list(hosts), "ttl": ttl}
        return await self.daemon.egress.grant(ANA, self.row, body, f"key-{len(hosts)}-{kind}-{ttl}-{self.now}")

    async def fetch(self, url: str, policy: str, **more: Any) -> Row:
        return await self.daemon.fetching.fetch(self.row, {"url": url, "policy": policy, **more})

    async def refused(self, url: str, policy: str, **more: Any) -> LearnGraphError:
        with pytest.raises(LearnGraphError) as caught:
            await self.fetch(url, policy, **more)
        return caught.value

    async def asked_for(self) -> None:
        """Until the site has a request; its server is a thread, which sets no event of this loop."""
        while not self.site.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    def log(self) -> list[Row]:
        import sqlalchemy as sa

        return self.daemon.core.records.rows(sa.select(egress_log))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def site(authority: tuple[Path, Path]) -> Iterator[Site]:
    running, server = start_site(authority[1])
    running.serve("/page", PAGE, Content_Type="text/html; charset=utf-8")
    yield running
    server.shutdown()
    server.server_close()


@pytest.fixture
def play(
    site: Site, authority: tuple[Path, Path], docker_engine: object, sandbox_image: str
) -> Iterator[Callable[..., None]]:
    """Runs an act against a daemon in this process, on the real engine; no container may be left."""
    folder = Path(tempfile.mkdtemp(prefix="lg-w"))

    @asynccontextmanager
    async def world(**settings: Any) -> AsyncIterator[World]:
        chosen = replace(Settings.under(folder), **{**QUIET, "image": sandbox_image, **settings})
        names, now = Names(), [1_000_000.0]
        network = Network(names, ToSite(site), loopback_allowed, authority[0].read_text())
        daemon = Daemon(chosen, DockerEngine(), clock=lambda: now[0], network=network)
        await daemon.start()
        try:
            row = await daemon.sandboxes.create(ANA, "s1", "sandbox-agent-v1", "a-first-key")
            yield World(daemon, site, names, now, row)
        finally:
            instance = daemon.core.around.instance
            await daemon.close()
        assert containers_of(instance, every=True) == []
        assert list((folder / "egress").iterdir()) == []

    def run(act: Callable[[World], Awaitable[None]], **settings: Any) -> None:
        async def whole() -> None:
            async with world(**settings) as there:
                await act(there)

        asyncio.run(whole())

    yield run
    shutil.rmtree(folder)


# The policy as a value


def policy_of(*hosts: object, kind: object = "fetch", ttl: object = 600) -> EgressPolicy:
    return egress_policy(kind, hosts, owner="uid:0", session="s1", approval="eg_1", now=1000.0, ttl=ttl)


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("*.example",),
        ("127.0.0.1",),
        ("2130706433",),
        ("[::1]",),
        ("localhost",),
        ("a",),
        (7,),
        ("x.example/",),
        ("metadata.google.internal",),
        ("127.0.0.1.nip.io",),
        ("files.example:443",),
        ("a@files.example",),
    ],
)
def test_a_policy_has_exact_public_names_alone(hosts: tuple[object, ...]) -> None:
    with pytest.raises(BadEgress):
        policy_of(*hosts)


@pytest.mark.parametrize(
    ("kind", "ttl"), [("all", 600), ("fetch", 59), ("fetch", 86_401), ("fetch", True), (None, 600)]
)
def test_a_policy_has_a_kind_and_an_end(kind: object, ttl: object) -> None:
    with pytest.raises(BadEgress):
        policy_of(HOST, kind=kind, ttl=ttl)


def test_the_digest_covers_everything_the_policy_says() -> None:
    policy = policy_of(HOST, OTHER)
    assert policy.digest == policy_of(OTHER.upper(), HOST + ".").digest
    assert EgressPolicy.from_json(policy.as_json()) == policy
    changes: list[dict[str, Any]] = [
        {"kind": "general"},
        {"hosts": (HOST,)},
        {"owner": "uid:1"},
        {"session": "s2"},
        {"approval": "eg_2"},
        {"ends": policy.ends + 1},
        {"begins": policy.begins - 1},
    ]
    assert len({replace(policy, **change).digest for change in changes} | {policy.digest}) == len(changes) + 1


# The web-fetch runner


def test_a_page_of_an_allowed_host_comes_through_and_is_on_record(play: Any) -> None:
    async def act(world: World) -> None:
        allowed = await world.allow(HOST)
        got = await world.fetch(f"https://{HOST}/page?q=1", allowed["policy"])
        assert base64.b64decode(got["data"]) == PAGE
        assert (got["status"], got["type"], got["url"]) == (200, "text/html", f"https://{HOST}/page?q=1")
        assert world.site.requests == [f"{HOST}/page?q=1"]
        (entry,) = world.log()
        assert (entry["host"], entry["verdict"], entry["address"]) == (HOST, "opened", "127.0.0.1")
        assert entry["policy"] == allowed["policy"] and entry["received"] > len(PAGE) and entry["sent"] > 0

    play(act)


def test_without_a_policy_nothing_is_made_and_nothing_is_asked(play: Any) -> None:
    async def act(world: World) -> None:
        for name in ("0" * 64, "", "general"):
            error = await world.refused(f"https://{HOST}/page", name)
            assert error.code == "egress_denied" and error.remedy and error.details["zh"]["remedy"]
        assert world.daemon.fetching.size == 0 and world.site.requests == [] and world.names.asked == []

    play(act)


def test_a_policy_opens_no_other_host_session_kind_or_time(play: Any) -> None:
    async def act(world: World) -> None:
        fetch, general = await world.allow(HOST), await world.allow(HOST, kind="general")
        stranger = await world.daemon.sandboxes.create(ANA, "s2", "sandbox-agent-v1", "another-key")
        assert (await world.refused(f"https://{OTHER}/page", fetch["policy"])).code == "egress_denied"
        assert (await world.refused(f"https://{HOST}/page", general["policy"])).code == "egress_denied"
        with pytest.raises(LearnGraphError, match="no fetch policy"):
            await world.daemon.fetching.fetch(stranger, {"url": f"https://{HOST}/", "policy": fetch["policy"]})
        world.now[0] += 601
        assert (await world.refused(f"https://{HOST}/page", fetch["policy"])).code == "egress_denied"
        for url in ("http://files.example/", "https://127.0.0.1/", "https://files.example:8443/"):
            with pytest.raises(UrlRefused):
                await world.fetch(url, fetch["policy"])
        assert world.site.requests == [] and world.names.asked == []

    play(act)


def test_a_redirect_to_a_host_that_was_not_allowed_ends_at_the_door(play: Any) -> None:
    async def act(world: World) -> None:
        world.site.redirect("/go", f"https://{OTHER}/page")
        allowed = await world.allow(HOST)
        error = await world.refused(f"https://{HOST}/go", allowed["policy"])
        assert error.code == "egress_denied"
        assert world.site.requests == [f"{HOST}/go"] and OTHER not in world.names.asked
        both = await world.allow(HOST, OTHER)
        got = await world.fetch(f"https://{HOST}/go", both["policy"])
        assert (got["url"], got["redirects"]) == (f"https://{OTHER}/page", [f"https://{HOST}/go"])

    play(act)


@pytest.mark.parametrize("address", ["169.254.169.254", "10.0.0.5", "::1", "::ffff:127.0.0.9", "100.64.0.1"])
def test_a_name_that_turns_to_a_private_address_is_refused_when_it_is_connected_to(play: Any, address: str) -> None:
    async def act(world: World) -> None:
        allowed = await world.allow(HOST)
        await world.fetch(f"https://{HOST}/page", allowed["policy"])
        world.names.answers[HOST] = [address]
        error = await world.refused(f"https://{HOST}/page", allowed["policy"])
        assert error.code == "egress_denied"
        assert len(world.site.requests) == 1
        world.names.answers[HOST] = ["127.0.0.1", address]  # one bad address refuses the name
        assert (await world.refused(f"https://{HOST}/page", allowed["policy"])).code == "egress_denied"
        assert len(world.site.requests) == 1

    play(act)


def test_a_policy_that_is_taken_back_opens_nothing_any_more(play: Any) -> None:
    async def act(world: World) -> None:
        allowed = await world.allow(HOST)
        await world.fetch(f"https://{HOST}/page", allowed["policy"])
        await world.daemon.egress.revoke(world.row, allowed["id"])
        await world.daemon.fetching.sweep()
        assert world.daemon.fetching.size == 0
        assert (await world.refused(f"https://{HOST}/page", allowed["policy"])).code == "egress_denied"
        assert len(world.site.requests) == 1

    play(act)


def slow(seconds: float, body: bytes = PAGE) -> Callable[[BaseHTTPRequestHandler], None]:
    import threading

    pause = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        pause.wait(seconds)
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def test_a_container_serves_one_key_again_and_no_other(play: Any) -> None:
    async def act(world: World) -> None:
        one, two = await world.allow(HOST), await world.allow(HOST, OTHER)
        await world.fetch(f"https://{HOST}/page", one["policy"])
        first = set(world.daemon.fetching.held)
        await world.fetch(f"https://{HOST}/page", one["policy"])
        assert world.daemon.fetching.held == first
        await world.fetch(f"https://{OTHER}/page", two["policy"])
        assert len(world.daemon.fetching.held) == 2 and first < world.daemon.fetching.held
        await world.daemon.reconciler.run(starting=False)
        assert len(containers_of(world.daemon.core.around.instance)) == 2  # the reaper knows them
        world.now[0] += 599
        await world.daemon.fetching.sweep()
        assert world.daemon.fetching.size == 2
        world.now[0] += 2
        await world.daemon.fetching.sweep()
        assert world.daemon.fetching.size == 0

    play(act)


def test_a_full_pool_is_waited_for_and_then_said_to_be_full(play: Any) -> None:
    async def act(world: World) -> None:
        world.site.routes["/slow"] = slow(2.0)
        allowed = await world.allow(HOST)
        first = asyncio.create_task(world.fetch(f"https://{HOST}/slow", allowed["policy"]))
        await world.asked_for()
        error = await world.refused(f"https://{HOST}/page", allowed["policy"])
        assert error.code == "fetch_pool_saturated" and error.details["zh"]
        assert (await first)["status"] == 200
        assert (await world.fetch(f"https://{HOST}/page", allowed["policy"]))["status"] == 200

    play(act, fetch_containers=1, fetch_wait=0.5)


def test_a_time_out_costs_the_container_and_a_page_that_is_too_large_does_not(play: Any) -> None:
    async def act(world: World) -> None:
        world.site.routes["/slow"] = slow(20.0)
        world.site.serve("/large", b"x" * 300_000)
        allowed = await world.allow(HOST)
        await world.fetch(f"https://{HOST}/page", allowed["policy"])
        (before,) = world.daemon.fetching.held
        error = await world.refused(f"https://{HOST}/large", allowed["policy"], bytes=100_000)
        assert error.code == "fetch_too_large" and world.daemon.fetching.held == {before}
        assert (await world.refused(f"https://{HOST}/slow", allowed["policy"], seconds=1)).code == "fetch_timeout"
        assert before not in world.daemon.fetching.held
        await world.fetch(f"https://{HOST}/page", allowed["policy"])
        (after,) = world.daemon.fetching.held
        assert after != before

    play(act)


def test_a_pool_of_none_says_that_it_is_off(play: Any) -> None:
    async def act(world: World) -> None:
        allowed = await world.allow(HOST)
        assert (await world.refused(f"https://{HOST}/page", allowed["policy"])).code == "fetch_off"

    play(act, fetch_containers=0)


# The door itself


async def ask(door: Door, head: bytes) -> bytes:
    """The answer to what is written to a door, as a program in the container would write it."""
    reader, writer = await asyncio.open_unix_connection(door.folder / "proxy.sock")
    writer.write(head)
    answer = await asyncio.wait_for(reader.read(200), 15)
    writer.close()
    return answer


def word(policy: str) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(f"policy:{policy}".encode()) + b"\r\n"


BAD_REQUESTS: dict[str, tuple[bytes, bytes]] = {
    "another host": (b"CONNECT other.example:443 HTTP/1.1\r\n", b"403"),
    "another port": (b"CONNECT files.example:22 HTTP/1.1\r\n", b"403"),
    "no port": (b"CONNECT files.example HTTP/1.1\r\n", b"403"),
    "an address": (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n", b"403"),
    "an address in another spelling": (b"CONNECT 2130706433:443 HTTP/1.1\r\n", b"403"),
    "an IPv6 address": (b"CONNECT [::1]:443 HTTP/1.1\r\n", b"403"),
    "a wildcard": (b"CONNECT *.example:443 HTTP/1.1\r\n", b"403"),
    "a plain GET": (b"GET http://files.example/page HTTP/1.1\r\n", b"403"),
    "a name with userinfo": (b"CONNECT files.example@other.example:443 HTTP/1.1\r\n", b"403"),
    "two requests in one line": (b"CONNECT files.example:443 HTTP/1.1 CONNECT other.example:443\r\n", b"403"),
    "a tab for a blank": (b"CONNECT\tfiles.example:443 HTTP/1.1\r\n", b"403"),
    "a null byte": (b"CONNECT files.example\x00.other.example:443 HTTP/1.1\r\n", b"403"),
    "another version": (b"CONNECT files.example:443 HTTP/2\r\n", b"403"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_the_door_opens_to_nothing_else(play: Any, name: str) -> None:
    head, status = BAD_REQUESTS[name]

    async def act(world: World) -> None:
        allowed = await world.allow(HOST)
        policy = await world.daemon.egress.require(world.row, "fetch", allowed["policy"])
        door = await world.daemon.egress.open(policy)
        answer = await ask(door, head + word(allowed["policy"]) + b"\r\n")
        assert answer.split(b" ")[1] == status, answer
        assert world.names.asked == []
        assert [entry["verdict"] for entry in world.log()] == ["refused"]
        await world.daemon.egress.close(door)

    play(act)


def test_the_door_wants_the_digest_of_its_own_policy_once(play: Any) -> None:
    async def act(world: World) -> None:
        allowed, another = await world.allow(HOST), await world.allow(HOST, OTHER)
        policy = await world.daemon.egress.require(world.row, "fetch", allowed["policy"])
        door = await world.daemon.egress.open(policy)
        line = f"CONNECT {HOST}:443 HTTP/1.1\r\n".encode()
        for words in (b"", word("0" * 64), word(another["policy"]), word(allowed["policy"]) * 2):
            assert (await ask(door, line + words + b"\r\n")).split(b" ")[1] == b"407"
        assert (await ask(door, b"x" * 20_000)).split(b" ")[1] == b"400"
        assert world.names.asked == []
        assert (await ask(door, line + word(allowed["policy"]) + b"\r\n")).split(b" ")[1] == b"200"
        await world.daemon.egress.close(door)

    play(act)


def test_a_changed_record_opens_nothing(play: Any) -> None:
    async def act(world: World) -> None:
        import sqlalchemy as sa

        from learngraph_kernel.sandboxd.schema import egress_policies

        allowed = await world.allow(HOST)
        policy = await world.daemon.egress.require(world.row, "fetch", allowed["policy"])
        door = await world.daemon.egress.open(policy)
        with world.daemon.core.records.transaction() as connection:
            body = egress_policies.c.body
            change = sa.update(egress_policies).values(body=sa.func.replace(body, HOST, OTHER))
            connection.execute(change)
        answer = await ask(door, f"CONNECT {HOST}:443 HTTP/1.1\r\n".encode() + word(allowed["policy"]) + b"\r\n")
        assert answer.split(b" ")[1] == b"403"
        await world.daemon.egress.close(door)

    play(act)


def test_an_open_tunnel_ends_when_its_policy_is_taken_back(play: Any, authority: tuple[Path, Path]) -> None:
    async def act(world: World) -> None:
        world.site.routes["/slow"] = slow(20.0)
        allowed = await world.allow(HOST)
        task = asyncio.create_task(world.fetch(f"https://{HOST}/slow", allowed["policy"]))
        await world.asked_for()
        began = asyncio.get_running_loop().time()
        await world.daemon.egress.revoke(world.row, allowed["id"])
        with pytest.raises(LearnGraphError):
            await task
        assert asyncio.get_running_loop().time() - began < 5

    play(act)


# Programs of a workspace


CLIENT = b"""
import sys, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=10) as answer:
        print(answer.read().decode())
except Exception as error:
    print(type(error).__name__, error)
    sys.exit(3)
"""


async def run_client(world: World, url: str) -> tuple[int, str]:
    import io

    row, daemon = world.row, world.daemon
    await daemon.core.workers.run(daemon.files.put, row, "work/client.py", io.BytesIO(CLIENT))
    key = f"client-{url}-{asyncio.get_running_loop().time()}"
    begun = await daemon.commands.begin(ANA, row, {"argv": ["python", "work/client.py", url]}, key)
    await daemon.commands.ended(begun["exec"], 60)
    done = await daemon.commands.show(begun["exec"], {"stdout": 0, "stderr": 0}, 0)
    return done["exit_code"], base64.b64decode(done["stdout"]["data"]).decode()


def test_programs_of_a_workspace_reach_what_a_general_policy_names_and_nothing_else(play: Any) -> None:
    async def act(world: World) -> None:
        assert (await run_client(world, f"https://{HOST}/page"))[0] == 3  # no policy, no network
        await world.allow(HOST)  # a fetch policy is none for programs
        assert (await run_client(world, f"https://{HOST}/page"))[0] == 3
        await world.daemon.sandboxes.change_way_out(world.row)
        allowed = await world.allow(HOST, kind="general")
        assert await run_client(world, f"https://{HOST}/page") == (0, PAGE.decode() + "\n")
        for url in (
            f"https://{OTHER}/page",
            "http://files.example/page",
            "https://127.0.0.1/",
            "http://169.254.169.254/",
        ):
            assert (await run_client(world, url))[0] == 3, url
        assert world.site.requests == [f"{HOST}/page"]
        await world.daemon.egress.revoke(world.row, allowed["id"])
        assert (await run_client(world, f"https://{HOST}/page"))[0] == 3
        assert world.site.requests == [f"{HOST}/page"]

    play(act)


def test_a_killed_daemon_leaves_no_door_and_no_container(
    docker_engine: object, sandbox_image: str, base: Path, authority: tuple[Path, Path]
) -> None:
    from learngraph_kernel.sandbox.client import SandboxClient
    from tests.sandboxd.running import Sandboxd

    with Sandboxd(base / "door", sandbox_image) as daemon:
        client = SandboxClient(daemon.socket)
        box = client.create("s1").id
        allowed = client.allow_egress(box, ["files.example"])
        with pytest.raises(LearnGraphError):  # the name has no address here; the container was made all the same
            client.fetch(box, "https://files.example/page", allowed["policy"])
        instance = daemon.instance()
        assert len(containers_of(instance)) == 1 and len(list((daemon.state / "egress").iterdir())) == 1
        daemon.kill()
        daemon.start()
        client.close()
        assert client.egress(box)[0]["policy"] == allowed["policy"]  # what a person allowed is still allowed
        client.close()
        deadline = time.monotonic() + 20
        while containers_of(instance, every=True):
            assert time.monotonic() < deadline, "its container is still there"
        assert list((daemon.state / "egress").iterdir()) == []
