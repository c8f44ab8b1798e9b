"""Progress that never falls, logs that stay readable, modes that fail closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.answers import BadRequest, NotReady
from learngraph_kernel.sandboxd.images import clean_log, note_layer, share_done
from learngraph_kernel.sandboxd.records import Row
from tests.sandboxd.test_lifecycle import ANA, IMAGE, FakeEngine, World, play

DIGEST = "registry.example/box@sha256:" + "1" * 64


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("10%\r50%\r100%", "100%"),
        ("line\r\nnext\r\n", "line\nnext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b[2K\x1b[1Gdone", "done"),
        ("a\x00b\x08c", "abc"),
        ("进度 ▓▓", "进度 ▓▓"),
    ],
)
def test_a_log_is_cleaned(raw: str, clean: str) -> None:
    assert clean_log(raw) == clean


EVENTS: list[dict[str, Any]] = [
    {"status": "Pulling from box", "id": "latest"},
    {"status": "Pulling fs layer", "id": "a"},
    {"status": "Pulling fs layer", "id": "b"},
    {"status": "Downloading", "id": "a", "progressDetail": {"current": 50, "total": 100}},
    {"status": "Downloading", "id": "a", "progressDetail": {"current": 20, "total": 100}},
    {"status": "Download complete", "id": "a"},
    {"status": "Extracting", "id": "a", "progressDetail": {"current": 80, "total": 100}},
    {"status": "Downloading", "id": "b", "progressDetail": {}},
    {"status": "Pull complete", "id": "a"},
    {"status": "Already exists", "id": "b"},
]


def test_shares_of_layers_add_up() -> None:
    layers: dict[str, tuple[float, float]] = {}
    shares = []
    for event in EVENTS:
        note_layer(layers, event)
        shares.append(share_done(layers))
    assert shares[:3] == [0, 0, 0] and shares[-1] == 1.0
    assert shares[3:] == sorted(shares[3:])


class PullingEngine(FakeEngine):
    """Pulls as told: events, then an image with this id."""

    def __init__(self, events: list[dict[str, Any]], identity: str) -> None:
        super().__init__()
        self.events_of_pull, self.identity = events, identity

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        return iter(self.events_of_pull)

    def image(self, reference: str) -> dict[str, Any] | None:
        return {"Id": self.identity}


async def finished(world: World, job: str) -> Row:
    for _ in range(1_000):
        row = await world.daemon.images.job(job)
        if row["state"] != "running":
            return row
        await asyncio.sleep(0.01)
    raise AssertionError("the job did not end")


def test_a_pull_is_followed_and_new_layers_do_not_turn_it_back(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        world.daemon.core.engine = PullingEngine([*EVENTS, {"status": "Pulling fs layer", "id": "late"}], IMAGE)
        job = await world.daemon.images.begin(ANA, "pull", "key-pull-1")
        assert await world.daemon.images.begin(ANA, "pull", "key-pull-1") == job
        done = await finished(world, job["job"])
        assert (done["state"], done["progress"], done["image"]) == ("succeeded", 1.0, IMAGE)
        assert "a Pull complete" in done["log"]

    play(tmp_path, act, image_mode="prebuilt", image_registry=DIGEST)


@pytest.mark.parametrize(
    ("events", "identity"),
    [([{"error": "no such image"}], IMAGE), (EVENTS, "sha256:" + "9" * 64)],
)
def test_prebuilt_fails_closed(tmp_path: Path, events: list[dict[str, Any]], identity: str) -> None:
    async def act(world: World) -> None:
        world.daemon.core.engine = PullingEngine(events, identity)
        done = await finished(world, (await world.daemon.images.begin(ANA, "pull", "key-pull-2"))["job"])
        assert done["state"] == "failed" and done["reason"]
        with pytest.raises(BadRequest):
            await world.daemon.images.begin(ANA, "build", "key-build-1")

    play(tmp_path, act, image_mode="prebuilt", image_registry=DIGEST)


def test_prebuilt_without_a_pin_is_unavailable(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        with pytest.raises(NotReady) as caught:
            await world.daemon.images.require()
        assert caught.value.code == "image_not_pinned"

    play(tmp_path, act, image=None, image_mode="prebuilt")


def test_an_image_that_was_never_used_here_cannot_be_asked_for(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        other = "sha256:" + "7" * 64
        with pytest.raises(BadRequest):
            await world.daemon.images.require(other)
        world.daemon.core.records.note_image(other, 1.0)
        assert await world.daemon.images.require(other) == other
        with pytest.raises(BadRequest):
            await world.daemon.images.require("learngraph-sandbox:latest")

    play(tmp_path, act)


def test_a_job_of_a_daemon_that_died_has_failed(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        job, _ = world.daemon.images._open_job("uid:0", "build", "key-dead-1", {})
        await world.daemon.images.abandon()
        assert (await world.daemon.images.job(job["id"]))["state"] == "failed"

    play(tmp_path, act)
