"""What sandboxd needs of a container engine, without any vendor's types.

All methods block and are called in worker threads; `engine` is the adapter for Docker.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.sandbox.answers import NotReady

INSTANCE, KIND, SANDBOX, SESSION = "learngraph.instance", "learngraph.kind", "learngraph.sandbox", "learngraph.session"
OWNER, POLICY, RUN, CREATED = "learngraph.owner", "learngraph.policy", "learngraph.run", "learngraph.created"


class EngineFailed(LearnGraphError):
    """The engine answered a call with an error; its words are for the log, not for callers."""

    code = "engine_failed"


class NoContainer(EngineFailed):
    """There is no such container (any more)."""

    code = "no_container"


class NoImage(EngineFailed):
    """There is no such image here."""

    code = "no_image"


def unreachable() -> NotReady:
    """The refusal when the engine does not answer."""
    return NotReady(
        "the container engine does not answer",
        code="engine_unreachable",
        remedy="start Docker (systemctl start docker) and give sandboxd's user access to its socket; "
        "calls work again as soon as it answers",
        zh=(
            "容器引擎没有响应",
            "请启动 Docker（systemctl start docker），并允许 sandboxd 的用户访问其套接字；恢复后即可重试",
        ),
    )


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """One container as the engine lists it.

    Attributes:
        running: it has a live process.
        exit_code: None while it runs or when unknown.
    """

    id: str
    labels: Mapping[str, str]
    running: bool
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """Something that happened to a container of ours."""

    container: str
    action: str
    exit_code: int | None


class EventStream(Protocol):
    """What happens to an instance's containers, as it happens; iterating blocks until `close` is called elsewhere."""

    def __iter__(self) -> Iterator[ContainerEvent]: ...

    def close(self) -> None: ...


class EnginePort(Protocol):
    """A container engine. Every method raises NotReady (`engine_unreachable`) or EngineFailed."""

    def version(self) -> dict[str, Any]: ...

    def host(self) -> tuple[int, int]:
        """(bytes of memory, processors) of the machine that runs containers."""
        ...

    def runtimes(self) -> frozenset[str]:
        """The names of the OCI runtimes the engine can start containers with."""
        ...

    def image(self, reference: str) -> dict[str, Any] | None:
        """What the engine knows of an image: `Id`, `Size`, `Created`; None when it is not there."""
        ...

    def image_with_label(self, label: str, value: str) -> str | None:
        """The id of an image that carries a label."""
        ...

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        """Makes a container from `hardening.container_config`'s plain data; returns its id."""
        ...

    def attach(self, container: str) -> socket.socket:
        """Standard input, output and error of a container as one raw, multiplexed stream."""
        ...

    def start(self, container: str) -> None: ...

    def signal(self, container: str, name: str) -> None: ...

    def remove(self, container: str) -> None:
        """Kills and removes; a container that is gone is fine."""
        ...

    def facts(self, container: str) -> ContainerFacts | None: ...

    def inspect(self, container: str) -> dict[str, Any]: ...

    def containers(self, instance: str) -> list[ContainerFacts]: ...

    def logs(self, container: str, lines: int) -> str: ...

    def events(self, instance: str) -> EventStream: ...

    def pull(self, reference: str) -> Iterator[dict[str, Any]]: ...
