"""Where a loopback address leads: the same configuration serves a laptop and a server that runs in a container.

`http://localhost:11434` names the machine that the person thinks of. In a container that is not the container, so the
address is rewritten when the model is opened; what is stored and shown stays as it was written. No other address is
ever touched.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from learngraph_kernel.errors import BadInput, Unavailable

HostMode: TypeAlias = Literal["auto", "bridge", "direct", "off"]
VARIABLE = "LEARNGRAPH_HOST_ADDRESSES"
BRIDGE = "LEARNGRAPH_HOST_BRIDGE"
"""The name or address by which this container reaches its machine; Docker's own name when unset."""
DEFAULT_BRIDGE = "host.docker.internal"


class BadHostMode(BadInput):
    """LEARNGRAPH_HOST_ADDRESSES is not one of its values."""

    code = "bad_host_mode"


class LoopbackRefused(Unavailable):
    """Loopback addresses are switched off in this deployment."""

    code = "loopback_refused"


@dataclass(frozen=True, slots=True)
class HostResolver:
    """Rewrites loopback addresses.

    Attributes:
        mode: `auto` (bridge inside a container that knows its machine, direct elsewhere), `bridge`, `direct`, `off`
            (refused).
        contained: whether this process runs in a container where the bridge's name has an address.
        bridge: the host that stands for the machine.
    """

    mode: HostMode
    contained: bool
    bridge: str

    def resolve(self, url: str) -> str:
        """The address to connect to. Raises LoopbackRefused."""
        parts = urlsplit(url)
        if not is_loopback(parts.hostname or "") or self.effective == "direct":
            return url
        if self.effective == "off":
            remedy = f"give the model's real address, or set {VARIABLE}=auto"
            raise LoopbackRefused("loopback addresses are switched off here", where=url, remedy=remedy)
        host = f"[{self.bridge}]" if ":" in self.bridge else self.bridge
        port = "" if parts.port is None else f":{parts.port}"
        return parts._replace(netloc=host + port).geturl()

    @property
    def effective(self) -> HostMode:
        if self.mode != "auto":
            return self.mode
        return "bridge" if self.contained else "direct"

    def status(self) -> dict[str, str]:
        """How it stands, with guidance."""
        guidance = {
            "direct": "localhost is this machine",
            "bridge": f"localhost is rewritten to {self.bridge}; a model server there must listen on that address, and "
            f"Docker on Linux needs --add-host {DEFAULT_BRIDGE}:host-gateway",
            "off": "addresses of this machine are refused",
        }
        return {
            "mode": self.mode,
            "effective": self.effective,
            "bridge": self.bridge,
            "guidance": guidance[self.effective],
        }


def has_address(name: str) -> bool:
    """Whether a name or address can be reached by name here at all."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def host_resolver(
    environ: Mapping[str, str] = os.environ,
    *,
    marks: tuple[Path, ...] = (Path("/.dockerenv"), Path("/run/.containerenv")),
    known: Callable[[str], bool] = has_address,
) -> HostResolver:
    """By the environment. `marks` are files that only containers have. Raises BadHostMode."""
    mode = environ.get(VARIABLE, "auto")
    if mode not in get_args(HostMode):
        raise BadHostMode(f"{VARIABLE} is {mode!r}", remedy=f"one of {', '.join(get_args(HostMode))}")
    bridge = environ.get(BRIDGE) or DEFAULT_BRIDGE
    contained = any(mark.exists() for mark in marks) or "KUBERNETES_SERVICE_HOST" in environ
    return HostResolver(cast(HostMode, mode), mode == "auto" and contained and known(bridge), bridge)


def is_loopback(host: str) -> bool:
    """`localhost` and what lies below it (RFC 6761), 127.0.0.0/8, ::1, also mapped."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
