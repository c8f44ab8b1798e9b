"""The web-fetch runner: hot containers, each behind one door, that fetch pages for a session inside the box.

A container serves one key: workspace, policy and settings. It is used again while nothing went wrong; a time-out,
output that was cut or an answer that makes no sense costs it. When all are busy a call waits a while and then says
`fetch_pool_saturated`. What comes back is data from a stranger.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from learngraph_kernel.canonical import digest
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import BadRequest, Forbidden, NotReady, OverCapacity
from learngraph_kernel.sandbox.egress import EgressPolicy
from learngraph_kernel.sandbox.urls import ParsedUrl, parse_url
from learngraph_kernel.sandboxd import capacity
from learngraph_kernel.sandboxd.containers import COMMAND_ENVIRONMENT, fetch_container
from learngraph_kernel.sandboxd.core import Core, engine_refusal
from learngraph_kernel.sandboxd.egress import Door, Egress
from learngraph_kernel.sandboxd.fitness import refuse_unfit_engine
from learngraph_kernel.sandboxd.images import Images
from learngraph_kernel.sandboxd.records import Row, new_id
from learngraph_kernel.sandboxd.runner_link import CommandEnd, LinkLost, RunnerLink

_log = logging.getLogger(__name__)
MODULE = "learngraph_kernel.sandbox.inside.web_fetch"
REDIRECTS = 5
HEADER_ROOM = 64 * 1024


@dataclass
class Hot:
    """A fetch container.

    Attributes:
        key: whom it serves.
        busy: a page is being fetched in it.
        used: when the last one was.
    """

    key: str
    owner: str
    container: str
    link: RunnerLink
    door: Door
    busy: bool
    used: float


class FetchPool:
    """The hot containers of a daemon."""

    def __init__(self, core: Core, images: Images, egress: Egress) -> None:
        self._core, self._images, self._egress = core, images, egress
        self._hot: list[Hot] = []
        self._making = 0
        self._changed = asyncio.Condition()

    @property
    def held(self) -> set[str]:
        """Containers that are ours and alive."""
        return {hot.container for hot in self._hot}

    @property
    def unsettled(self) -> bool:
        """Whether a container is being made that `held` does not know yet."""
        return self._making > 0

    @property
    def size(self) -> int:
        """How many there are, those being made included."""
        return len(self._hot) + self._making

    async def fetch(self, row: Row, request: Mapping[str, Any]) -> Row:
        """Fetches one page.

        Args:
            row: the session's sandbox.
            request: `url`, `policy` (digest), optionally `seconds` and `bytes`, not above the settings.

        Returns:
            `status`, `url`, `redirects`, `type`, `bytes`, `data` (base64).

        Raises:
            Forbidden: `egress_denied`. OverCapacity: `fetch_pool_saturated`, or a guard rail. NotReady. BadRequest.
        """
        settings = self._core.settings
        if settings.fetch_containers == 0:
            raise NotReady(
                "web fetch is switched off here",
                code="fetch_off",
                remedy="an administrator can set fetch_containers",
                zh=("此处已关闭网页抓取", "管理员可设置 fetch_containers"),
            )
        url = parse_url(str(request.get("url", "")))
        seconds = _bounded(request, "seconds", settings.fetch_seconds)
        most = int(_bounded(request, "bytes", settings.output_bytes - HEADER_ROOM))
        policy = await self._egress.require(row, "fetch", request.get("policy"))
        refusal = policy.refusal(url.host, url.port, self._core.clock())
        if refusal is not None:
            raise Forbidden(
                refusal, code="egress_denied", where=url.normalised, remedy="a person has to allow the host"
            )
        hot = await self._take(row, policy)
        return await self._run(hot, url, policy, seconds, most)

    # One page

    async def _run(self, hot: Hot, url: ParsedUrl, policy: EgressPolicy, seconds: float, most: int) -> Row:
        argv = ("python3", "-I", "-B", "-m", MODULE, policy.digest, str(most), str(REDIRECTS), url.normalised)
        output = bytearray()
        fine = False
        try:
            async with asyncio.timeout(seconds):
                end = await hot.link.run(
                    new_id("x"),
                    argv,
                    environment=COMMAND_ENVIRONMENT,
                    cwd="/tmp",
                    cap=most + HEADER_ROOM,
                    sink=lambda stream, piece: output.extend(piece) if stream == "stdout" else None,
                )
            answer = _read(end, bytes(output))
            fine = True
        except TimeoutError as error:
            raise NotReady(
                f"the page did not come within {seconds:.0f} s", code="fetch_timeout", where=url.normalised
            ) from error
        except LinkLost as error:
            raise NotReady("the fetch container was lost", code="fetch_failed", where=url.normalised) from error
        finally:
            await asyncio.shield(self._give_back(hot, fine=fine))
        if not answer.pop("ok"):
            denied = answer["code"] == "egress_denied"
            kind = Forbidden if denied else NotReady
            raise kind(str(answer["reason"])[:300], code=str(answer["code"]), where=url.normalised)
        self._core.counters["pages_fetched"] += 1
        return answer

    # Containers

    async def _take(self, row: Row, policy: EgressPolicy) -> Hot:
        settings = self._core.settings
        key = self._key(row, policy)
        try:
            async with asyncio.timeout(settings.fetch_wait), self._changed:
                while True:
                    hot = next((hot for hot in self._hot if hot.key == key and not hot.busy), None)
                    if hot is not None and hot.link.lost is None:
                        hot.busy = True
                        return hot
                    if self.size < settings.fetch_containers:
                        self._making += 1
                        break
                    idle = next((hot for hot in self._hot if not hot.busy), None)
                    if idle is not None:  # somebody else's, or a broken one: its place goes to who is here
                        self._hot.remove(idle)
                        self._core.workers.spawn(self._destroy(idle), "end a fetch container")
                        continue
                    await self._changed.wait()
        except TimeoutError as error:
            raise OverCapacity(
                f"all {settings.fetch_containers} fetch containers are busy",
                code="fetch_pool_saturated",
                remedy="try again in a moment; an administrator can raise fetch_containers",
                zh=(f"{settings.fetch_containers} 个抓取容器均忙", "请稍后再试；管理员可提高 fetch_containers"),
            ) from error
        hot = None
        try:
            hot = await self._make(row, policy, key)
            return hot
        finally:
            async with self._changed:
                self._making -= 1
                if hot is not None:
                    self._hot.append(hot)
                self._changed.notify_all()

    def _key(self, row: Row, policy: EgressPolicy) -> str:
        settings = self._core.settings
        fingerprint = {
            name: str(value)
            for name, value in asdict(settings).items()
            if name.startswith("container_") or name in _SHAPES
        }
        return digest({"workspace": row["id"], "policy": policy.digest, "settings": fingerprint})

    async def _make(self, row: Row, policy: EgressPolicy, key: str) -> Hot:
        core = self._core
        await refuse_unfit_engine(core)
        image = await self._images.require()
        await core.workers.record(lambda: capacity.judge_machine(core.load(row["owner"]), core.settings))
        door = await self._egress.open(policy)
        name = f"lg-fetch-{secrets.token_hex(8)}"
        link: RunnerLink | None = None
        try:
            async with asyncio.timeout(core.settings.start_seconds):
                config = fetch_container(core.around, row, name, image, str(door.folder), core.clock())
                container = await core.workers.run(core.engine.create, name, config)
                stream = await core.workers.run(core.engine.attach, container)
                link = RunnerLink(stream, lambda reason: _log.info("%s: %s", name, reason))
                await core.workers.run(core.engine.start, container)
                await link.hello(core.settings.start_seconds)
        except BaseException as error:
            await asyncio.shield(self._clear(name, link, door))
            if isinstance(error, TimeoutError):
                raise NotReady("the fetch container did not start in time", code="engine_failed") from error
            if isinstance(error, LearnGraphError):
                raise engine_refusal(error) from error
            raise
        core.counters["fetch_containers_started"] += 1
        return Hot(key, row["owner"], container, link, door, True, core.clock())

    async def _clear(self, container: str, link: RunnerLink | None, door: Door) -> None:
        if link is not None:
            await link.close()
        await self._egress.close(door)
        try:
            await self._core.workers.run(self._core.engine.remove, container)
        except LearnGraphError as error:
            _log.warning("fetch container not removed yet: %s", error)  # the reaper's turn, then

    async def _give_back(self, hot: Hot, *, fine: bool) -> None:
        async with self._changed:
            hot.busy, hot.used = False, self._core.clock()
            if not fine or hot.link.lost is not None:
                self._hot.remove(hot)
            self._changed.notify_all()
        if not fine or hot not in self._hot:
            await self._destroy(hot)

    async def _destroy(self, hot: Hot) -> None:
        await self._clear(hot.container, hot.link, hot.door)

    async def evict(self) -> bool:
        """Ends one that is idle, so that somebody who asks for a container can have its place."""
        return await self._end(lambda hot: True, most=1) > 0

    async def sweep(self) -> None:
        """Ends what was idle for too long, or whose door is shut: the policy is over, or was taken back."""
        settings, now = self._core.settings, self._core.clock()

        def over(hot: Hot) -> bool:
            return now - hot.used >= settings.fetch_idle or now >= hot.door.policy.ends or hot.door.shut

        await self._end(over)

    async def close(self) -> None:
        """Ends them all."""
        await self._end(lambda hot: True, busy=True)

    async def _end(self, which: Any, *, busy: bool = False, most: int | None = None) -> int:
        async with self._changed:
            going = [hot for hot in self._hot if which(hot) and (busy or not hot.busy)][:most]
            self._hot = [hot for hot in self._hot if hot not in going]
            self._changed.notify_all()
        for hot in going:
            await self._destroy(hot)
        return len(going)


_SHAPES = ("image", "runtime", "output_bytes")


def _bounded(request: Mapping[str, Any], name: str, most: float) -> float:
    value = request.get(name, most)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise BadRequest(f"{name} must be above 0 and at most {most:g}", code="bad_limit")
    return value


def _read(end: CommandEnd, output: bytes) -> Row:
    """What the runner says, checked like anything from a box. Raises LinkLost when it makes no sense."""
    head, newline, body = output.partition(b"\n")
    try:
        if end.truncated or end.exit_code != 0 or end.dirty or not newline:
            raise ValueError("cut, or ended badly")
        said = json.loads(head)
        if said["ok"] is not True:
            return {"ok": False, "code": _word(said["code"]), "reason": str(said["reason"])}
        if said["bytes"] != len(body):
            raise ValueError("another length")
        return {
            "ok": True,
            "status": int(said["status"]),
            "url": str(said["url"])[:8192],
            "redirects": [str(url)[:8192] for url in said["redirects"]][:REDIRECTS],
            "type": str(said["type"])[:200],
            "bytes": len(body),
            "data": base64.b64encode(body).decode(),
        }
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LinkLost("the fetch runner gave no usable answer") from error


def _word(code: object) -> str:
    known = ("egress_denied", "egress_failed", "fetch_failed", "fetch_redirects", "fetch_timeout", "fetch_tls")
    return str(code) if code in (*known, "fetch_too_large") else "fetch_failed"
