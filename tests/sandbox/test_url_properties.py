from __future__ import annotations

import ipaddress
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from learngraph_kernel.sandbox.addresses import refusal_of
from learngraph_kernel.sandbox.resolvers import FixedResolver
from learngraph_kernel.sandbox.urls import check_url, parse_url
from tests.sandbox.url_corpus import LEGITIMATE, OTHERS, PUBLIC

HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]+)", re.ASCII)
TARGET = re.compile(r"/[!-~]*", re.ASCII)


class Anything:
    def resolve(self, host: str) -> list[str]:
        return [PUBLIC]


def holds(url: str) -> None:
    """Never an exception; what is allowed has a strict form that is its own normal form."""
    decision = check_url(url, Anything())
    assert decision.reason
    if decision.allowed:
        parsed = parse_url(url)
        assert HOST.fullmatch(parsed.host)
        assert TARGET.fullmatch(parsed.target)
        assert not set(parsed.target) & set('\\"<> #')
        assert parse_url(parsed.normalised) == parsed


@settings(max_examples=300, deadline=None)
@given(st.text())
@example("https://xn--a-0.\u0130.com")
def test_any_text_gets_an_answer(text: str) -> None:
    holds(text)


@settings(max_examples=500, deadline=None)
@given(st.text(min_size=1, max_size=12), st.text(max_size=8))
def test_any_host_and_path_get_an_answer(host: str, path: str) -> None:
    holds(f"https://{host}.com/{path}")
    holds(f"https://a.{host}/{path}")


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"xn--[a-z0-9-]{1,20}", fullmatch=True))
def test_any_encoded_label_gets_an_answer(label: str) -> None:
    holds(f"https://{label}.com/")
    holds(f"https://example.{label}/")


@settings(max_examples=400, deadline=None)
@given(st.sampled_from([*LEGITIMATE, *OTHERS]), st.integers(0, 60), st.characters())
def test_a_changed_character_gets_an_answer(url: str, at: int, character: str) -> None:
    holds(url[:at] + character + url[at:])
    holds(url[:at] + character + url[at + 1 :])


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_what_python_calls_not_global_is_never_allowed(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    allowed = check_url("https://example.com/", FixedResolver({"example.com": [str(address)]})).allowed
    assert address.is_global or not allowed


@settings(max_examples=300, deadline=None)
@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:0:0", "64:ff9b::", "64:ff9b:1::", "::", "::ffff:0:0:0"]))
def test_an_address_inside_another_is_never_allowed(inner: ipaddress.IPv4Address, prefix: str) -> None:
    assert refusal_of(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | int(inner))))


@settings(max_examples=200, deadline=None)
@given(st.ip_addresses(v=4))
def test_no_spelling_of_an_address_is_a_host(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    a, b, c, d = address.packed
    spellings = [
        str(address), f"{number}", f"0x{number:x}", f"0{number:o}", f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}", f"[::ffff:{address}]", f"[{address}]",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.0x{b:X}.{c}.0{d:o}", f"{a:03}.{b:03}.{c:03}.{d:03}",
    ]  # fmt: skip
    for spelling in spellings:
        for host in (spelling, spelling + "."):
            assert not check_url(f"https://{host}/", Anything()).allowed
