"""Docker, behind `engine_port.EnginePort`: the only module that imports `docker`.

Reads and removals are repeated when the connection breaks (dockerd restarts); creating and starting are not, since
the caller knows the container's name and clears up by it.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions

from learngraph_kernel.sandboxd import engine_port
from learngraph_kernel.sandboxd.engine_port import ContainerEvent, ContainerFacts, EngineFailed, NoContainer, NoImage

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_RETRY_AFTER = (0.2, 0.8)
_BROKEN = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, ConnectionError, BrokenPipeError)


class DockerEngine:
    """One engine reached through one socket.

    Args:
        url: the engine's address; None: `DOCKER_HOST`, else the local socket.
        timeout: seconds one call may take.
    """

    def __init__(self, url: str | None = None, *, timeout: float = 30.0) -> None:
        self._url, self._timeout = url, timeout
        self._client: Any = None

    def _api(self) -> Any:
        if self._client is None:
            try:
                settings = docker.utils.kwargs_from_env() if self._url is None else {"base_url": self._url}
                self._client = docker.APIClient(
                    **settings, version="auto", timeout=int(self._timeout), max_pool_size=32
                )
            except (docker.errors.DockerException, *_BROKEN) as error:
                raise engine_port.unreachable() from error
        return self._client

    def _call(self, function: Callable[[Any], _T], *, repeat: bool = False) -> _T:
        pauses = _RETRY_AFTER if repeat else ()
        for pause in (*pauses, None):
            try:
                return function(self._api())
            except docker.errors.ImageNotFound as error:
                raise NoImage(str(error.explanation)) from error
            except docker.errors.NotFound as error:
                raise NoContainer(str(error.explanation)) from error
            except docker.errors.APIError as error:
                _log.warning("engine: %s", error.explanation)
                raise EngineFailed(str(error.explanation)) from error
            except _BROKEN as error:
                if pause is None:
                    raise engine_port.unreachable() from error
                time.sleep(pause)
        raise AssertionError("the loop returns or raises")

    def version(self) -> dict[str, Any]:
        return self._call(lambda api: dict(api.version()))

    def host(self) -> tuple[int, int]:
        info = self._call(lambda api: api.info(), repeat=True)
        return int(info["MemTotal"]), int(info["NCPU"])

    def runtimes(self) -> frozenset[str]:
        return frozenset(self._call(lambda api: api.info(), repeat=True).get("Runtimes") or {})

    def image(self, reference: str) -> dict[str, Any] | None:
        try:
            return self._call(lambda api: dict(api.inspect_image(reference)), repeat=True)
        except (NoImage, NoContainer):
            return None

    def image_with_label(self, label: str, value: str) -> str | None:
        rows = self._call(lambda api: api.images(filters={"label": f"{label}={value}"}), repeat=True)
        return str(rows[0]["Id"]) if rows else None

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        body = dict(config)

        def make(api: Any) -> str:
            return str(api.create_container_from_config(body, name=name)["Id"])

        return self._call(make)

    def attach(self, container: str) -> socket.socket:
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        stream = self._call(lambda api: api.attach_socket(container, params=wanted))
        raw: socket.socket = getattr(stream, "_sock", stream)
        # docker-py's object closes the socket when it is collected; a duplicate of the descriptor is ours alone.
        mine = raw.dup()
        stream.close()
        mine.setblocking(False)
        return mine

    def start(self, container: str) -> None:
        self._call(lambda api: api.start(container))

    def signal(self, container: str, name: str) -> None:
        self._call(lambda api: api.kill(container, signal=name))

    def remove(self, container: str) -> None:
        try:
            self._call(lambda api: api.remove_container(container, force=True, v=True), repeat=True)
        except NoContainer:
            return
        except EngineFailed as error:
            if "already in progress" not in error.what:
                raise

    def facts(self, container: str) -> ContainerFacts | None:
        try:
            found = self.inspect(container)
        except NoContainer:
            return None
        state = found["State"]
        running = bool(state["Running"])
        return ContainerFacts(
            found["Id"], found["Config"]["Labels"] or {}, running, None if running else int(state["ExitCode"])
        )

    def inspect(self, container: str) -> dict[str, Any]:
        return self._call(lambda api: dict(api.inspect_container(container)), repeat=True)

    def containers(self, instance: str) -> list[ContainerFacts]:
        wanted = {"label": [f"{engine_port.INSTANCE}={instance}"]}
        rows = self._call(lambda api: api.containers(all=True, filters=wanted), repeat=True)
        return [ContainerFacts(row["Id"], row["Labels"] or {}, row["State"] == "running") for row in rows]

    def logs(self, container: str, lines: int) -> str:
        data: bytes = self._call(lambda api: api.logs(container, tail=lines, stdout=True, stderr=True), repeat=True)
        return data.decode("utf-8", "replace")

    def events(self, instance: str) -> DockerEvents:
        wanted = {"type": "container", "event": ["die", "oom"], "label": [f"{engine_port.INSTANCE}={instance}"]}
        return DockerEvents(self._call(lambda api: api.events(filters=wanted, decode=True)))

    def pull(self, reference: str) -> Iterator[dict[str, Any]]:
        stream = self._call(lambda api: api.pull(reference, stream=True, decode=True))
        try:
            yield from stream
        except _BROKEN as error:
            raise engine_port.unreachable() from error


class DockerEvents:
    """One stream of events; `close` from another thread ends the iteration."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._closed = stream, False

    def __iter__(self) -> Iterator[ContainerEvent]:
        try:
            for event in self._stream:
                attributes = event.get("Actor", {}).get("Attributes", {})
                code = attributes.get("exitCode")
                yield ContainerEvent(event["Actor"]["ID"], event["Action"], None if code is None else int(code))
        except (*_BROKEN, OSError, ValueError) as error:  # ValueError: half a line of JSON, or a closed file
            if not self._closed:
                raise engine_port.unreachable() from error

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):  # the engine closed it first
            self._stream.close()
