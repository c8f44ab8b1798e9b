"""`strict`: nothing starts on an engine with a known way out; without it, readiness warns and things start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from learngraph_kernel.sandbox.answers import NotReady
from learngraph_kernel.sandboxd import strictness
from learngraph_kernel.sandboxd.records import Row
from tests.sandboxd.test_lifecycle import ANA, World, play

OLD = {"Components": [{"Name": "runc", "Version": "1.1.5"}], "Version": "20.10.24", "ApiVersion": "1.41"}
"""An engine of upstream's own packages: the number is the truth."""


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strictness, "installed_packages", dict)


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
