"""Which addresses may be connected to: global unicast, and nothing that leads back to us or hides another address.

The tables are the IANA special-purpose registries (RFC 6890 and successors) read strictly: what they call globally
reachable but serves a transition mechanism is refused as well. `ipaddress` has the last word, so that a range added to
Python later is refused without a change here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import TypeAlias

AddressPolicy: TypeAlias = Callable[[str], str | None]
"""Takes an address as text; returns why it is refused, or None. Handed in by code, never read from a setting."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# Addresses of cloud metadata and host services. Most lie in a refused range anyway; the name tells the reader more.
_METADATA = {
    ipaddress.ip_address(text): name
    for text, name in {
        "169.254.169.254": "cloud metadata",
        "169.254.170.2": "container credentials",
        "169.254.170.23": "container credentials",
        "100.100.100.200": "cloud metadata",
        "192.0.0.192": "cloud metadata",
        "168.63.129.16": "cloud host service",  # public by its number, the host by its meaning
        "fd00:ec2::254": "cloud metadata",
        "fd00:ec2::23": "container credentials",
        "fd20:ce::254": "cloud metadata",
    }.items()
}

_V4 = [
    (ipaddress.IPv4Network(text), name)
    for text, name in [
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignment"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmark"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    ]
]

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # RFC 4291 section 2.4, as IANA allocates it
_V6 = [
    (ipaddress.IPv6Network(text), name)
    for text, name in [
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("100::/64", "discard-only"),
        ("2001::/23", "protocol assignment"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("3ffe::/16", "withdrawn 6bone"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    ]
]

# Prefixes that carry an IPv4 address, and by how many bits it is shifted left.
_CARRIERS = [
    (ipaddress.IPv6Network(text), shift, name)
    for text, shift, name in [
        ("::ffff:0:0/96", 0, "IPv4-mapped"),
        ("::ffff:0:0:0/96", 0, "IPv4-translated"),
        ("64:ff9b::/96", 0, "NAT64"),
        ("64:ff9b:1::/48", 0, "local NAT64"),
        ("2002::/16", 80, "6to4"),
        ("::/96", 0, "IPv4-compatible"),
    ]
]
_TEREDO = ipaddress.IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214 section 6.1: the upper half of the interface identifier
_LOW32 = 0xFFFFFFFF


def refusal_of(text: str) -> str | None:
    """Why an address may not be connected to; None for a public one.

    Args:
        text: an address as a resolver gives it. Anything `ipaddress` does not read, or with a zone id, is refused.
    """
    if "%" in text:
        return "an address with a zone id"
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "not an IP address"
    return refusal_of_address(address)


def refusal_of_address(address: Address) -> str | None:
    """`refusal_of` for a parsed address."""
    if address in _METADATA:
        return _METADATA[address]
    named = _in_table(address, _V4) if address.version == 4 else _refusal_of_v6(address)
    if named is None and not address.is_global:
        return "not globally reachable"
    return named


def first_refusal(addresses: Iterable[str], policy: AddressPolicy = refusal_of) -> tuple[str, str] | None:
    """The first refused address of several and why; None when all may be connected to."""
    for text in addresses:
        reason = policy(text)
        if reason is not None:
            return text, reason
    return None


def _refusal_of_v6(address: ipaddress.IPv6Address) -> str | None:
    named = _in_table(address, _V6[:2])
    if named is not None:
        return named
    carried = _carried(address)
    if carried is not None:
        form, inner = carried
        meaning = refusal_of_address(inner)
        return f"{form} form of {inner}" + (f" ({meaning})" if meaning else "")
    named = _in_table(address, _V6)
    if named is None and address not in _GLOBAL_UNICAST:
        return "outside global unicast"
    return named


def _carried(address: ipaddress.IPv6Address) -> tuple[str, ipaddress.IPv4Address] | None:
    """The IPv4 address inside an IPv6 one, and the name of the form."""
    bits = int(address)
    for network, shift, name in _CARRIERS:
        if address in network:
            return name, ipaddress.IPv4Address(bits >> shift & _LOW32)
    if address in _TEREDO:
        return "Teredo", ipaddress.IPv4Address(~bits & _LOW32)  # RFC 4380: the client's address, inverted
    if bits >> 32 & _LOW32 in _ISATAP:
        return "ISATAP", ipaddress.IPv4Address(bits & _LOW32)
    return None


def _in_table(
    address: Address, table: Iterable[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]]
) -> str | None:
    return next((name for network, name in table if address in network), None)
