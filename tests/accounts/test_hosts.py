"""Where loopback leads; nothing else is ever rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from learngraph_kernel.accounts.hosts import BadHostMode, LoopbackRefused, host_resolver, is_loopback

INSIDE, OUTSIDE = (Path("/"),), (Path("/no-such-mark"),)


@pytest.mark.parametrize(
    ("mode", "inside", "url", "expected"),
    [
        ("auto", False, "http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("auto", True, "http://localhost:11434/v1", "http://host.docker.internal:11434/v1"),
        ("bridge", False, "http://127.0.0.1:11434", "http://host.docker.internal:11434"),
        ("bridge", True, "https://[::1]:8443/x?y=1", "https://host.docker.internal:8443/x?y=1"),
        ("bridge", True, "http://LOCALHOST/v1", "http://host.docker.internal/v1"),
        ("direct", True, "http://localhost:1/v1", "http://localhost:1/v1"),
        ("auto", True, "http://models.example:11434/v1", "http://models.example:11434/v1"),
        ("auto", True, "http://localhost.example/v1", "http://localhost.example/v1"),
        ("auto", True, "http://10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
        ("off", True, "http://10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
    ],
)
def test_an_address_is_rewritten_by_deployment(mode: str, inside: bool, url: str, expected: str) -> None:
    environ = {"LEARNGRAPH_HOST_ADDRESSES": mode}
    resolver = host_resolver(environ, marks=INSIDE if inside else OUTSIDE, known=lambda name: True)
    assert resolver.resolve(url) == expected


def test_a_container_that_does_not_know_its_machine_keeps_its_own_loopback() -> None:
    resolver = host_resolver({}, marks=INSIDE, known=lambda name: False)
    assert resolver.resolve("http://localhost:1/v1") == "http://localhost:1/v1"


def test_off_refuses_loopback_with_a_remedy() -> None:
    resolver = host_resolver({"LEARNGRAPH_HOST_ADDRESSES": "off"}, marks=OUTSIDE)
    with pytest.raises(LoopbackRefused) as caught:
        resolver.resolve("http://localhost:1/v1")
    assert caught.value.remedy


def test_the_bridge_can_be_named_also_by_an_ipv6_address() -> None:
    resolver = host_resolver({"LEARNGRAPH_HOST_BRIDGE": "fd00::1"}, marks=INSIDE, known=lambda name: True)
    assert resolver.resolve("http://localhost:9/v1") == "http://[fd00::1]:9/v1"
    assert "fd00::1" in resolver.status()["guidance"]


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(BadHostMode):
        host_resolver({"LEARNGRAPH_HOST_ADDRESSES": "yes"})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("localhost.", True), ("a.localhost", True), ("127.1.2.3", True), ("::1", True),
        ("::ffff:127.0.0.1", True), ("notlocalhost", False), ("128.0.0.1", False), ("", False), ("0.0.0.0", False),
    ],
)  # fmt: skip
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
