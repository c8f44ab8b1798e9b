from __future__ import annotations

import pytest

from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.sandbox.urls import MAX_ADDRESSES, Decision, NoResolver, check_url, parse_url
from tests.sandbox.url_corpus import ANSWERS, LEGITIMATE, MIXED, OTHERS, PUBLIC, SPELLINGS


class Generous:
    """A public address for every name, so that only the spelling can be a reason; remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        return [PUBLIC]


def answering(*addresses: str) -> FixedResolver:
    return FixedResolver({"example.com": list(addresses)})


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(SPELLINGS)) >= 300
    assert len(set(SPELLINGS)) + len(set(ANSWERS)) + len(MIXED) >= 500
    assert len({*LEGITIMATE, *OTHERS}) >= 70


@pytest.mark.parametrize("url", SPELLINGS, ids=lambda url: ascii(url)[:60])
def test_a_hostile_spelling_is_refused_before_anyone_is_asked(url: str) -> None:
    resolver = Generous()
    decision = check_url(url, resolver)
    assert (decision.allowed, decision.addresses, resolver.asked) == (False, (), [])
    assert decision.reason


@pytest.mark.parametrize("address", ANSWERS)
def test_a_name_with_a_bad_address_is_refused(address: str) -> None:
    decision = check_url("https://example.com/", answering(address))
    assert not decision.allowed
    assert f"the address {address}: " in decision.reason


@pytest.mark.parametrize("addresses", MIXED, ids=lambda addresses: " ".join(addresses[-3:]))
def test_one_bad_address_refuses_the_whole_name(addresses: list[str]) -> None:
    decision = check_url("https://example.com/", answering(*addresses))
    assert (decision.allowed, decision.addresses) == (False, ())


@pytest.mark.parametrize(("url", "normalised"), LEGITIMATE.items(), ids=lambda text: ascii(text)[:60])
def test_a_legitimate_url_is_allowed_in_its_normal_form(url: str, normalised: str) -> None:
    decision = check_url(url, Generous())
    assert (decision.allowed, decision.normalised) == (True, normalised), decision.reason


@pytest.mark.parametrize("url", OTHERS, ids=lambda url: ascii(url)[:60])
def test_an_ordinary_url_is_allowed(url: str) -> None:
    decision = check_url(url, Generous())
    assert decision.allowed, decision.reason


@pytest.mark.parametrize("url", [*LEGITIMATE, *OTHERS], ids=lambda url: ascii(url)[:60])
def test_a_normal_form_is_its_own_normal_form(url: str) -> None:
    once = parse_url(url).normalised
    assert parse_url(once).normalised == once


PUBLIC_ADDRESSES = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888", "2001:200::1",
    "2003::1", "2a00:1450:4001:81b::200e", "2400:cb00::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_addresses_just_outside_a_refused_range_are_public(address: str) -> None:
    assert check_url("https://example.com/", answering(address)).addresses == (address,)


def test_the_decision_names_every_checked_address_and_the_normal_form() -> None:
    decision = check_url("https://Example.com:443/a#b", answering(PUBLIC, "2606:4700:4700::1111"))
    assert decision == Decision(
        "https://Example.com:443/a#b",
        True,
        "public name, 2 public addresses",
        "example.com",
        443,
        (PUBLIC, "2606:4700:4700::1111"),
        "https://example.com/a",
    )


def test_without_a_resolver_the_reason_says_so() -> None:
    decision = check_url("https://example.com/", NoResolver())
    assert not decision.allowed
    assert "no resolver given" in decision.reason


def test_the_resolver_is_asked_once() -> None:
    resolver = Generous()
    check_url("https://example.com/", resolver)
    assert resolver.asked == ["example.com"]


def test_a_name_may_have_as_many_addresses_as_the_limit() -> None:
    assert check_url("https://example.com/", answering(*[PUBLIC] * MAX_ADDRESSES)).allowed


def test_the_reason_for_an_embedded_address_names_it() -> None:
    decision = check_url("https://example.com/", answering("64:ff9b::a9fe:a9fe"))
    assert "NAT64 form of 169.254.169.254 (cloud metadata)" in decision.reason
