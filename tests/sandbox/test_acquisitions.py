"""One approval, one fetch; and whatever stops a download, its state is clear afterwards."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.acquire import acquire, file_request, image_request
from learngraph_kernel.sandbox.acquisition import AcquisitionFailed, ApprovalNeeded, ImageLimits, Limits, Request
from learngraph_kernel.sandbox.acquisitions import acquisitions
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.asking import Acquiring, NotApproved, by_digests
from learngraph_kernel.sandbox.receipts import Receipt
from learngraph_kernel.store.clock import utcnow
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.sandbox.conftest import World

URL = "https://files.example/prices.csv"
CSV = b"item,price\ntea,3\n"
# A download in a process of its own, through the local site.
CHILD = """
import ssl, sys
from pathlib import Path
from learngraph_kernel.sandbox.acquire import Gate, acquire
from learngraph_kernel.sandbox.approvals import StoredApprovals
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.store.database import Home, Store
from tests.sandbox.local_site import Site, ToSite, loopback_allowed
home, authority, port, url = sys.argv[1:]
with Store.open(Home(Path(home))) as store:
    gate = Gate(store, StoredApprovals(store, "session:s1"), "session:s1", policy=loopback_allowed,
                resolver=FixedResolver({"files.example": ["127.0.0.1"]}), connector=ToSite(Site(int(port))),
                tls=ssl.create_default_context(cafile=authority))
    acquire(url, gate)
"""


def test_of_several_downloads_under_one_approval_one_reaches_the_server(world: World) -> None:
    world.site.serve("/prices.csv", CSV)
    world.allow(file_request(URL))
    together = threading.Barrier(6)

    def one(_: int) -> Receipt | LearnGraphError:
        together.wait(10)
        try:
            return acquire(URL, world.gate)
        except LearnGraphError as error:
            return error

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(6)))
    assert sorted(type(answer).__name__ for answer in answers) == ["ApprovalNeeded"] * 5 + ["Receipt"]
    assert world.site.requests == ["files.example/prices.csv"] and len(world.connector.asked) == 1


def test_a_replayed_digest_and_an_expired_approval_reach_no_server(world: World, tmp_path: Path) -> None:
    world.site.serve("/prices.csv", CSV)
    world.allow(file_request(URL))
    acquire(URL, world.gate)
    with pytest.raises(ApprovalNeeded):
        acquire(URL, world.gate)
    assert len(world.connector.asked) == 1
    now = utcnow()
    with Store.open(Home(tmp_path / "later"), clock=lambda: now) as store:
        approvals = StoredApprovals(store, "session:s1")
        approvals.grant(file_request(URL), by="user:ana", ttl=dt.timedelta(minutes=5))
        now += dt.timedelta(minutes=5)
        with pytest.raises(ApprovalNeeded):
            acquire(URL, world.replace(store=store, approvals=approvals))
    assert len(world.connector.asked) == 1


def test_a_download_that_is_killed_half_way_is_interrupted_and_nothing_of_it_counts(
    world: World, authority: tuple[Path, Path], tmp_path: Path
) -> None:
    half_way, over = threading.Event(), threading.Event()

    def half(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000)
        half_way.set()
        over.wait(60)

    world.site.routes["/prices.csv"] = half
    world.allow(file_request(URL))
    words = [sys.executable, "-c", CHILD, tmp_path / "home", authority[0], world.site.port, URL]
    child = subprocess.Popen(list(map(str, words)))
    try:
        assert half_way.wait(60)
        (found,) = acquisitions(world.store, 10)
        assert (found.state, found.allowed_by, found.request["url"]) == ("under_way", "user:ana", URL)
    finally:
        child.kill()
        child.wait()
        over.set()
    later = utcnow() + dt.timedelta(hours=1)
    with Store.open(Home(tmp_path / "home"), clock=lambda: later) as store:
        (found,) = acquisitions(store, 10)
        assert (found.state, found.receipt) == ("interrupted", None)
        assert found.as_json()["requested_url"] == URL
        assert list(store.artifacts.iterate()) == [] and store.check() == []
    asked = len(world.site.requests)
    with pytest.raises(ApprovalNeeded):
        acquire(URL, world.gate)
    assert len(world.site.requests) == asked
    world.site.serve("/prices.csv", CSV)
    world.allow(file_request(URL))
    assert acquire(URL, world.gate).stored_bytes == len(CSV)


def test_what_failed_has_an_end_and_is_not_called_interrupted(world: World) -> None:
    world.allow(file_request(URL))
    with pytest.raises(AcquisitionFailed):
        acquire(URL, world.gate)  # 404
    assert acquisitions(world.store, 10) == []


def test_the_list_says_who_allowed_it(world: World) -> None:
    world.site.serve("/prices.csv", CSV)
    receipt = Acquiring(world.gate, "user:ana", lambda *_: True).file(file_request(URL), Limits())
    (found,) = acquisitions(world.store, 10)
    assert found.as_json() == {"state": "stored", "allowed_by": "user:ana"} | receipt.as_json()


def test_a_refusal_says_the_digest_and_what_to_add_to_the_command(world: World) -> None:
    other = "0" * 64
    digest = file_request(URL).digest
    with pytest.raises(ApprovalNeeded) as caught:
        Acquiring(world.gate, "user:ana", by_digests([other])).file(file_request(URL), Limits())
    assert digest in caught.value.what and f"--approve {other} --approve {digest}" in (caught.value.remedy or "")
    assert world.connector.asked == []


def test_progress_is_told_of_every_byte(world: World) -> None:
    content = b"0123456789" * 100_000
    world.site.serve("/prices.csv", content)
    world.allow(file_request(URL))
    came: list[int] = []
    acquire(URL, world.replace(progress=lambda url, count: came.append(count if url == URL else 0)))
    assert sum(came) == len(content)


# Images


def urls(count: int) -> list[str]:
    return [f"https://files.example/{number}.png" for number in range(count)]


@pytest.fixture
def pictures(world: World) -> Callable[[int], list[Request]]:
    def serve(count: int) -> list[Request]:
        data = BytesIO()
        Image.new("RGB", (2, 2)).save(data, "PNG")
        for number in range(count):
            world.site.serve(f"/{number}.png", data.getvalue(), Content_Type="image/png")
        return [image_request(url) for url in urls(count)]

    return serve


def test_more_than_eight_images_come_in_turns(world: World, pictures: Any) -> None:
    answers = Acquiring(world.gate, "user:ana", lambda *_: True).images(pictures(11), ImageLimits())
    assert [answer.requested_url for answer in answers] == urls(11)


def test_a_no_to_one_image_stops_no_other(world: World, pictures: Any) -> None:
    requests = pictures(3)
    first, second, third = Acquiring(world.gate, "user:ana", lambda it, _: it.url != urls(2)[1]).images(
        requests, ImageLimits()
    )
    assert isinstance(first, Receipt) and isinstance(second, NotApproved) and isinstance(third, Receipt)
    assert sorted(world.site.requests) == ["files.example/0.png", "files.example/2.png"]


def test_an_image_that_redirects_to_another_host_asks_again_by_itself(world: World, pictures: Any) -> None:
    requests = pictures(3)
    world.site.redirect("/1.png", "https://other.example/2.png")
    shown: list[tuple[str, str | None]] = []

    def ask(request: Request, redirected_from: str | None) -> bool:
        shown.append((request.url, redirected_from))
        return True

    answers = Acquiring(world.gate, "user:ana", ask).images(requests, ImageLimits())
    assert shown[3:] == [("https://other.example/2.png", urls(2)[1])]
    assert [answer.final_url for answer in answers if isinstance(answer, Receipt)] == [
        urls(1)[0],
        "https://other.example/2.png",
        urls(3)[2],
    ]
