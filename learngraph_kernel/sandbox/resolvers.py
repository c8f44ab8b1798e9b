"""Where addresses come from: a file of answers (tests, dry checks), or the machine's own resolver."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from learngraph_kernel.errors import BadInput
from learngraph_kernel.sandbox.hostnames import UrlRefused, normal_host


@dataclass(frozen=True, slots=True)
class FixedResolver:
    """Answers from a table; a name that is not in it has no answer. Sends nothing."""

    answers: Mapping[str, list[str]]

    def resolve(self, host: str) -> list[str]:
        return list(self.answers.get(host, ()))


class SystemResolver:
    """The machine's resolver: every address `getaddrinfo` gives, in its order."""

    def resolve(self, host: str) -> list[str]:
        # The trailing dot keeps search domains of the machine out of it.
        try:
            found = socket.getaddrinfo(host + ".", 443, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        except (OSError, UnicodeError):
            return []
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def read_hosts(path: Path) -> FixedResolver:
    """A resolver from a JSON file, `{"name": ["address", …]}`; names in any spelling `check_url` takes.

    Raises:
        BadInput: the file cannot be read, or is not such an object.
    """
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"file cannot be read ({error.strerror})", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"file is not JSON ({error})", where=str(path)) from error
    if not isinstance(value, dict) or not all(
        isinstance(addresses, list) and all(isinstance(address, str) for address in addresses)
        for addresses in value.values()
    ):
        raise BadInput('the file is not an object {"name": ["address", ...]}', where=str(path))
    answers: dict[str, list[str]] = {}
    for name, addresses in value.items():
        answers.setdefault(_spelled(name), []).extend(addresses)
    return FixedResolver(answers)


def _spelled(name: str) -> str:
    """The normal form of a name; a name that is never asked for, because it is refused first, stays as it is."""
    try:
        return normal_host(name)
    except UrlRefused:
        return name
