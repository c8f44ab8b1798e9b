"""`strict`: nothing starts on an engine with a known way out; without it, readiness warns and things start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.answers import NotReady
from learngraph_kernel.sandbox.client import SandboxClient
from learngraph_kernel.sandboxd import fitness
from learngraph_kernel.sandboxd.engine import DockerEngine
from learngraph_kernel.sandboxd.records import Row
from tests.sandboxd.running import Sandboxd
from tests.sandboxd.test_lifecycle import ANA, World, play

OLD = {"Components": [{"Name": "runc", "Version": "1.1.5"}], "Version": "20.10.24", "ApiVersion": "1.41"}
"""An engine of upstream's own packages: the number is the truth."""


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitness, "installed_packages", dict)


async def weaknesses(world: World) -> dict[str, Any]:
    checks = (await world.daemon.health.readiness())["checks"]
    return next(check for check in checks if check["name"] == "weaknesses")


def weaken(world: World) -> None:
    world.engine.version = lambda: OLD  # type: ignore[method-assign]


def test_strict_starts_neither_a_workspace_nor_a_kernel_on_a_weak_engine(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        weaken(world)
        row = await world.box()
        boxes, kernels = world.daemon.sandboxes, world.daemon.kernels
        for start in (lambda: boxes.start(row), lambda: kernels.start(ANA, {"run": "r_1"}, "k")):
            with pytest.raises(NotReady) as caught:
                await start()
            assert caught.value.code == "weak_engine" and "runc" in caught.value.what and caught.value.remedy
        assert world.engine.there == {}
        assert await world.state(row) != "starting"
        assert (await weaknesses(world))["state"] == "failed"

    play(tmp_path, act, strict=True)


def test_without_strict_a_weak_engine_is_a_warning(tmp_path: Path) -> None:
    async def act(world: World) -> None:
        weaken(world)
        row: Row = await world.box()
        await world.daemon.sandboxes.start(row)
        assert await world.state(row) == "warm_idle"
        assert (await weaknesses(world))["state"] == "warning"

    play(tmp_path, act)


def test_runc_s_holes_do_not_count_under_gvisor(tmp_path: Path) -> None:
    names = {"runc": "1.1.5", "Engine": "99.0.0", "containerd": "99.0.0"}
    components = [{"Name": name, "Version": version} for name, version in names.items()]

    async def act(world: World) -> None:
        world.engine.version = lambda: {**OLD, "Components": components}  # type: ignore[method-assign]
        await world.daemon.sandboxes.start(await world.box())
        assert (await weaknesses(world))["state"] == "ok"

    play(tmp_path, act, strict=True, runtime="runsc")


@pytest.mark.parametrize("strict", [True, False])
def test_a_runtime_that_the_engine_lacks_is_told_and_nothing_starts(tmp_path: Path, strict: bool) -> None:
    async def act(world: World) -> None:
        world.engine.runtimes = lambda: frozenset({"runc"})  # type: ignore[method-assign]
        row = await world.box()
        boxes, kernels = world.daemon.sandboxes, world.daemon.kernels
        for start in (lambda: boxes.start(row), lambda: kernels.start(ANA, {"run": "r_1"}, "k")):
            with pytest.raises(NotReady) as caught:
                await start()
            assert caught.value.code == "runtime_missing" and "runsc" in caught.value.what
            assert caught.value.remedy and caught.value.details["zh"]["remedy"]
        assert world.engine.there == {}
        answer = await world.daemon.health.readiness()
        check = next(check for check in answer["checks"] if check["name"] == "runtime")
        assert (answer["ready"], check["state"]) == (False, "failed") and "gVisor" in check["remedy"]
        assert answer["settings"] == {"strict": strict, "runtime": "runsc", "admit": "owner"}

    play(tmp_path, act, strict=strict, runtime="runsc")


def test_the_real_engine_without_gvisor_says_so(base: Path, docker_engine: object, sandbox_image: str) -> None:
    if "runsc" in DockerEngine().runtimes():
        pytest.skip("GVISOR IS INSTALLED: nothing is missing")
    with Sandboxd(base / "gvisor", sandbox_image, runtime="runsc") as daemon:
        client = SandboxClient(daemon.socket)
        for start in (lambda: client.start(client.create("s").id), lambda: client.start_kernel("r_1")):
            with pytest.raises(NotReady) as caught:
                start()
            assert caught.value.code == "runtime_missing"
        assert client.readiness()["ready"] is False
        client.close()
