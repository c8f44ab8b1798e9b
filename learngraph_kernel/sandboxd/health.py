"""Is sandboxd ready, and if not, what is missing and what to do: in English and Chinese; and figures for Prometheus."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.capacity import disk_free
from learngraph_kernel.sandboxd.core import Core
from learngraph_kernel.sandboxd.fitness import ZH, missing_runtime, weakness
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.records import ACTIVE, KERNEL_ACTIVE
from learngraph_kernel.sandboxd.settings import GIB


class Health:
    """Checks and figures."""

    def __init__(self, core: Core, images: Images) -> None:
        self._core, self._images = core, images

    async def readiness(self) -> dict[str, Any]:
        """`{"ready", "checks": [{"name", "state", "reason", "remedy", "zh"}], "settings": {…}}`.

        States: ok, warning, failed. Settings: strict, runtime, admit.
        """
        checks = [
            await self._engine(),
            await self._runtime(),
            await self._weaknesses(),
            await self._image(),
            self._disk(),
            self._processors(),
        ]
        settings = self._core.settings
        chosen = {"strict": settings.strict, "runtime": settings.runtime, "admit": settings.admit}
        return {"ready": all(check["state"] != "failed" for check in checks), "checks": checks, "settings": chosen}

    async def _engine(self) -> dict[str, Any]:
        try:
            version = await self._core.workers.run(self._core.engine.version)
        except LearnGraphError as error:
            return failed("engine", error)
        return ok("engine", f"{version.get('Version')}, API {version.get('ApiVersion')}")

    async def _runtime(self) -> dict[str, Any]:
        try:
            missing = await missing_runtime(self._core)
        except LearnGraphError as error:
            return failed("runtime", error)
        return ok("runtime", self._core.settings.runtime) if missing is None else failed("runtime", missing)

    async def _weaknesses(self) -> dict[str, Any]:
        try:
            found = await weakness(self._core)
        except LearnGraphError as error:
            return failed("weaknesses", error)
        if found is None:
            return ok("weaknesses", "none that opens our containers")
        state = "failed" if self._core.settings.strict else "warning"
        zh = dict(zip(("reason", "remedy"), ZH, strict=True))
        return {"name": "weaknesses", "state": state, "reason": found.what, "remedy": found.remedy, "zh": zh}

    async def _image(self) -> dict[str, Any]:
        try:
            return ok("image", await self._images.require())
        except LearnGraphError as error:
            return failed("image", error)

    def _disk(self) -> dict[str, Any]:
        free, kept = disk_free(self._core.settings.state), self._core.settings.disk_kept
        if free >= kept:
            return ok("disk", f"{free / GIB:.0f} GiB free")
        return {
            "name": "disk",
            "state": "failed",
            "reason": f"{free / GIB:.1f} GiB of disk are free; {kept / GIB:.0f} GiB are kept",
            "remedy": "free disk space (`learngraph sandbox gc`, `learngraph gc`)",
            "zh": {"reason": f"磁盘仅剩 {free / GIB:.1f} GiB", "remedy": "请释放磁盘空间"},
        }

    def _processors(self) -> dict[str, Any]:
        if self._core.around.cgroup is not None:
            return ok("processors", f"all containers together: {self._core.settings.cpu_share:.0%} of the machine")
        return {
            "name": "processors",
            "state": "warning",
            "reason": "no common ceiling for all containers; each has its own limit only",
            "remedy": "run sandboxd as root with the engine's cgroupfs driver",
            "zh": {
                "reason": "未能设置所有容器共用的 CPU 上限",
                "remedy": "请以 root 运行 sandboxd，并使用 cgroupfs 驱动",
            },
        }

    async def metrics(self) -> str:
        """The text format of Prometheus, version 0.0.4."""
        figures = await self._core.workers.record(self._figures)
        figures["disk_free_bytes"] = disk_free(self._core.settings.state)
        lines: list[str] = []
        for name, value in sorted(figures.items()):
            lines += [f"# TYPE learngraph_sandbox_{name} gauge", f"learngraph_sandbox_{name} {value}"]
        for name, value in sorted(self._core.counters.items()):
            metric = f"learngraph_sandbox_{re.sub('[^a-zA-Z0-9_]', '_', name)}_total"
            lines += [f"# TYPE {metric} counter", f"{metric} {value}"]
        return "\n".join(lines) + "\n"

    def _figures(self) -> dict[str, int]:
        boxes, kernels, records = schema.sandboxes, schema.kernels, self._core.records
        kept: sa.ColumnElement[bool] = boxes.c.state != "expired"
        return {
            "workspaces": records.count(boxes, kept),
            "containers_active": records.count(boxes, boxes.c.state.in_(ACTIVE)),
            "kernels_active": records.count(kernels, kernels.c.state.in_(KERNEL_ACTIVE)),
            "kernels_warm": records.count(kernels, kernels.c.state == "warm"),
            "commands_running": records.count(schema.execs, schema.execs.c.state == "running"),
        }


def ok(name: str, reason: str) -> dict[str, Any]:
    """A check that passed."""
    return {"name": name, "state": "ok", "reason": reason, "remedy": None, "zh": None}


def failed(name: str, error: LearnGraphError) -> dict[str, Any]:
    """A check that says no, in the error's words."""
    zh = error.details.get("zh")
    return {"name": name, "state": "failed", "reason": error.what, "remedy": error.remedy, "zh": zh}
