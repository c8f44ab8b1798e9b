"""The image that containers are started from: which it is, whether the engine has it, and the jobs that bring it here.

An image is its id (`sha256:…`, over its configuration and so over its layers); tags never count. `auto` takes the
recipe's image and makes it here when no registry has it; `prebuilt` takes the pinned one or nothing. A job's progress
is stored as it goes, never falls, and its log is free of terminal control sequences.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, NotFound, NotReady
from learngraph_kernel.sandboxd import schema
from learngraph_kernel.sandboxd.auth import Caller
from learngraph_kernel.sandboxd.core import Core, engine_refusal
from learngraph_kernel.sandboxd.image import Recipe, build_image
from learngraph_kernel.sandboxd.image.build import LABEL
from learngraph_kernel.sandboxd.records import Row, new_id

jobs = schema.image_jobs
MAX_LOG = 64 * 1024
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f]")
_ID = re.compile(r"sha256:[0-9a-f]{64}")
Report = Callable[[str, float, str], None]
"""Takes a step, the share of the whole that is done, and a line for the log ("" for none)."""


def clean_log(text: str) -> str:
    """Text for a log: of lines that overwrite themselves (`\\r`) the last state, and no control sequence."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(_CONTROL.sub("", line) for line in lines)


class Images:
    """Status and jobs of the image."""

    def __init__(self, core: Core, *, recipe: Callable[[], Recipe] = Recipe.load) -> None:
        self._core, self._recipe = core, recipe
        self._found: str | None = None
        self._working = asyncio.Lock()

    async def require(self, wanted: str | None = None) -> str:
        """The id of an image that the engine has and that may be used.

        Args:
            wanted: an id other than the present one; only one that containers were started from before (a rerun).

        Raises:
            NotReady: it is not there. BadRequest: an id that is none, or was never used here.
        """
        if wanted is not None and not _ID.fullmatch(wanted):
            raise BadRequest("image must be an image id, sha256:…", code="bad_image")
        try:
            return await self._core.workers.run(self._require, wanted)
        except NotReady:
            raise
        except BadRequest:
            raise
        except LearnGraphError as error:
            raise engine_refusal(error) from error

    def _require(self, wanted: str | None) -> str:
        if wanted is None and self._found is not None and self._core.engine.image(self._found) is not None:
            return self._found
        current = self._current()
        if wanted is None or wanted == current:
            if current is None:
                raise _missing()
            self._found = current
            return current
        if self._core.records.used_image(wanted) is None:
            raise BadRequest(
                "no container was ever started from this image here",
                code="image_unknown",
                remedy="leave `image` out to use the present one",
                zh=("此镜像从未在本机使用过", "请省略 image 以使用当前镜像"),
            )
        if self._core.engine.image(wanted) is None:
            raise _missing(wanted)
        return wanted

    def _current(self) -> str | None:
        """The pinned image, else the recipe's, if the engine has it."""
        pinned = self._core.settings.image
        if pinned is not None:
            return pinned if self._core.engine.image(pinned) is not None else None
        if self._core.settings.image_mode == "prebuilt":
            raise NotReady(
                "image_mode is prebuilt and no image is pinned",
                code="image_not_pinned",
                remedy='set image = "sha256:…" in sandboxd\'s settings',
                zh=("image_mode 为 prebuilt，但未固定镜像", "请在 sandboxd 配置中设置 image"),
            )
        return self._core.engine.image_with_label(LABEL, self._recipe().inputs())

    async def status(self) -> Row:
        """`{"state", "image", "reason", "mode", "pinned"}`; never raises for what is merely missing."""
        answer: Row = {
            "state": "unavailable",
            "image": None,
            "mode": self._core.settings.image_mode,
            "pinned": self._core.settings.image,
        }
        try:
            answer |= {"state": "ready", "image": await self.require()}
        except LearnGraphError as error:
            answer |= {"code": error.code, "reason": error.what, "remedy": error.remedy}
        return answer

    async def begin(self, caller: Caller, kind: str, key: str) -> Row:
        """Starts a job (`build` or `pull`); the same key gives the same job."""
        if kind == "build" and self._core.settings.image_mode == "prebuilt":
            raise BadRequest("image_mode is prebuilt: nothing is built here", code="prebuilt_only")
        if kind == "pull" and self._core.settings.image_registry is None:
            raise BadRequest(
                "no registry is configured",
                code="no_registry",
                remedy='set image_registry = "registry/name@sha256:…" in sandboxd\'s settings, or build',
            )
        identity = {"call": "images", "kind": kind}
        async with self._core.lock("key", caller.owner, key):
            job, new = await self._core.workers.record(self._open_job, caller.owner, kind, key, identity)
        if new:
            self._core.workers.spawn(self._work(job), f"image job {job['id']}")
        return shown(job)

    def _open_job(self, owner: str, kind: str, key: str, identity: Any) -> tuple[Row, bool]:
        records, now = self._core.records, self._core.clock()
        with records.transaction():
            known = self._core.remembered(owner, key, identity)
            if known is not None:
                return records.get(jobs, known["resource"]) or {}, False
            job = records.insert(
                jobs,
                {
                    "id": new_id("j"),
                    "kind": kind,
                    "state": "running",
                    "progress": 0.0,
                    "step": "waiting",
                    "log": "",
                    "image": None,
                    "reason": None,
                    "created": now,
                    "finished": None,
                },
            )
            records.remember(owner, key, digest(identity), job["id"], shown(job), now)
        return job, True

    async def _work(self, job: Row) -> None:
        loop = asyncio.get_running_loop()

        def report(step: str, share: float, line: str = "") -> None:
            text = clean_log(line)
            record = self._core.workers.record(self._core.records.progress, job["id"], step, share, text, MAX_LOG)
            asyncio.run_coroutine_threadsafe(record, loop).result()

        changes: Row
        async with self._working:
            try:
                image = await self._core.workers.run(self._carry_out, job["kind"], report)
                changes = {"state": "succeeded", "progress": 1.0, "step": "done", "image": image}
                self._found = None
            except LearnGraphError as error:
                changes = {"state": "failed", "reason": clean_log(str(error))}
            except OSError as error:
                changes = {"state": "failed", "reason": f"the image could not be made: {error.strerror}"}
        changes["finished"] = self._core.clock()
        await self._core.workers.record(self._core.records.update, jobs, job["id"], changes)

    def _carry_out(self, kind: str, report: Report) -> str:
        """In a worker thread. `auto`: a pull that fails becomes a build; `prebuilt`: it stays a failure."""
        if kind == "pull":
            try:
                return self._pull(report)
            except LearnGraphError as error:
                if self._core.settings.image_mode == "prebuilt":
                    raise
                report("build", 0.0, f"the pull failed ({error.what}); building here instead")
        return build_image(self._recipe(), progress=lambda step, share: report(step, share, f"{step} {share:.0%}")).id

    def _pull(self, report: Report) -> str:
        reference = self._core.settings.image_registry or ""
        if "@sha256:" not in reference:
            raise BadRequest("image_registry must name a digest (…@sha256:…)", code="no_digest")
        layers: dict[str, tuple[float, float]] = {}
        for event in self._core.engine.pull(reference):
            if "error" in event:
                raise NotReady(clean_log(str(event["error"]))[:300], code="pull_failed")
            note_layer(layers, event)
            report("pull", share_done(layers), f"{event.get('id', '')} {event.get('status', '')}".strip())
        found = self._core.engine.image(reference)
        pinned = self._core.settings.image
        if found is None or (pinned is not None and found["Id"] != pinned):
            raise NotReady("the registry gave another image than the pinned one", code="wrong_image")
        return str(found["Id"])

    async def job(self, identity: str) -> Row:
        """One job with progress and log. Raises NotFound."""
        row = await self._core.workers.record(self._core.records.get, jobs, identity)
        if row is None:
            raise NotFound("there is no such job", code="no_such_job")
        return shown(row)

    async def abandon(self) -> None:
        """After a restart: jobs that were running are not any more."""
        await self._core.workers.record(self._abandon)

    def _abandon(self) -> None:
        with self._core.records.transaction() as connection:
            connection.execute(
                sa.update(jobs)
                .where(jobs.c.state == "running")
                .values(state="failed", reason="sandboxd was restarted", finished=self._core.clock())
            )


def note_layer(layers: dict[str, tuple[float, float]], event: dict[str, Any]) -> None:
    """Takes one event of a pull into the account: (downloaded, extracted) of each layer, each 0 to 1, never falling."""
    name, status = event.get("id"), event.get("status", "")
    if not name or status.startswith("Pulling from"):
        return
    down, out = layers.get(name, (0.0, 0.0))
    detail = event.get("progressDetail") or {}
    part = detail["current"] / detail["total"] if detail.get("total") else 0.0
    if status == "Downloading":
        down = max(down, min(part, 1.0))
    elif status in ("Download complete", "Verifying Checksum"):
        down = 1.0
    elif status == "Extracting":
        down, out = 1.0, max(out, min(part, 1.0))
    elif status in ("Pull complete", "Already exists"):
        down = out = 1.0
    layers[name] = (down, out)


def share_done(layers: dict[str, tuple[float, float]]) -> float:
    """Of all layers known so far; half of a layer is its download."""
    return sum(down + out for down, out in layers.values()) / (2 * len(layers)) if layers else 0.0


def shown(job: Row) -> Row:
    """What callers see of a job."""
    names = ("kind", "state", "progress", "step", "log", "image", "reason", "created", "finished")
    return {"job": job["id"]} | {name: job[name] for name in names}


def _missing(image: str | None = None) -> NotReady:
    return NotReady(
        "the sandbox image is not in the engine",
        code="image_missing",
        where=image,
        remedy="make it: learngraph sandbox build",
        zh=("容器引擎中没有沙箱镜像", "请构建镜像：learngraph sandbox build"),
    )
