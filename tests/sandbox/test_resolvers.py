from __future__ import annotations

import socket
from typing import Any

import pytest

from learngraph_kernel.sandbox.resolvers import SystemResolver


def test_the_system_resolver_gives_every_address_once_and_no_search_domain_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET6, 1, 6, "", ("2606:4700::1111", 443, 0, 0)),
            (socket.AF_INET, 1, 6, "", ("1.1.1.1", 443)),
            (socket.AF_INET, 1, 6, "", ("1.1.1.1", 443)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert SystemResolver().resolve("example.com") == ["2606:4700::1111", "1.1.1.1"]
    assert asked == ["example.com."]


def test_a_name_without_an_answer_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert SystemResolver().resolve("example.com") == []
