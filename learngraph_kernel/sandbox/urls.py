"""May this URL be fetched? Pure policy: text and a resolver's answers in, a decision out, no packet sent.

One reading only. A URL that two parsers could read differently (backslashes, control characters, userinfo, odd
slashes, a port that is not spelled 443) is refused instead of repaired. The host must be a public name (`hostnames`),
and *every* address it has must be public (`addresses`): a name with one bad address is refused as a whole.
`parse_url` is the part that needs no resolver; whoever connects afterwards connects to `Decision.addresses` and asks no
resolver again, so that an answer that changes in between changes nothing.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Protocol

from learngraph_kernel.sandbox.addresses import AddressPolicy, first_refusal, refusal_of
from learngraph_kernel.sandbox.hostnames import UrlRefused, normal_host

HTTPS_PORT = 443
MAX_URL = 8192
MAX_ADDRESSES = 64


class Resolver(Protocol):
    """Names to addresses. The only thing that knows about DNS."""

    def resolve(self, host: str) -> list[str]:
        """All addresses of a name, IPv4 and IPv6, as text; empty when there is no answer."""


class NoResolver:
    """Answers nothing. `check_url` names it as the reason."""

    def resolve(self, host: str) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A URL in its one normal form.

    Attributes:
        host: ASCII, lower case, no trailing dot.
        target: path and query as they are sent, starting with `/`.
    """

    host: str
    target: str
    port: int = HTTPS_PORT

    @property
    def normalised(self) -> str:
        """What is approved and hashed: no port, no fragment, dot segments removed."""
        return f"https://{self.host}{self.target}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer for one URL.

    Attributes:
        url: as it was given.
        allowed: whether it may be fetched from `addresses`.
        reason: why (not), for a person.
        host, port, normalised: of the normal form; None as long as there is none.
        addresses: every address of the host, checked; empty when refused.
    """

    url: str
    allowed: bool
    reason: str
    host: str | None = None
    port: int | None = None
    addresses: tuple[str, ...] = ()
    normalised: str | None = None


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_AUTHORITY = re.compile(r"https://([^/?#]*)([^#]*)(#.*)?", re.IGNORECASE | re.DOTALL)
# RFC 3986 unreserved, sub-delims, `:@/?%`, and `[]|`, which are common in real queries and which nobody misreads.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?%[]|")
_FOREIGN_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
_ESCAPE = re.compile(r"%(?:[0-9A-Fa-f]{2})?", re.ASCII)
_CONTROL_ESCAPE = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])", re.ASCII)
_DOT = re.compile(r"%2e", re.IGNORECASE)


def check_url(url: str, resolver: Resolver, *, policy: AddressPolicy = refusal_of) -> Decision:
    """Whether a URL may be fetched, and from which addresses.

    Args:
        url: any text.
        resolver: asked once, and only for a name that has passed everything else.
        policy: which addresses are refused; tests that serve on loopback hand in their own.
    """
    try:
        parsed = parse_url(url)
    except UrlRefused as refusal:
        return Decision(url, False, refusal.what)
    return check_host(parsed, resolver, policy=policy, url=url)


def check_host(
    parsed: ParsedUrl, resolver: Resolver, *, policy: AddressPolicy = refusal_of, url: str | None = None
) -> Decision:
    """The second half of `check_url`: asks the resolver once and checks every address. Arguments as there."""
    given = parsed.normalised if url is None else url

    def decided(reason: str, addresses: tuple[str, ...] = ()) -> Decision:
        return Decision(given, bool(addresses), reason, parsed.host, parsed.port, addresses, parsed.normalised)

    if isinstance(resolver, NoResolver):
        return decided("no resolver given, so the name cannot be checked")
    addresses = tuple(resolver.resolve(parsed.host))
    if not addresses:
        return decided("the name has no address")
    if len(addresses) > MAX_ADDRESSES:
        return decided(f"the name has more than {MAX_ADDRESSES} addresses")
    bad = first_refusal(addresses, policy)
    if bad is not None:
        return decided(f"the name has the address {bad[0]}: {bad[1]}")
    plural = "" if len(addresses) == 1 else "es"
    return decided(f"public name, {len(addresses)} public address{plural}", addresses)


def parse_url(url: str) -> ParsedUrl:
    """A URL in its normal form.

    Args:
        url: absolute, https, with a public name. Its scheme, host and escapes may be in any case, port 443 may be
            written, a trailing dot of the host and the fragment are dropped, non-ASCII paths are percent-encoded.

    Raises:
        UrlRefused: it is something else, or could be read as something else.
    """
    refuse_characters(url)
    matched = _AUTHORITY.fullmatch(url)
    if matched is None:
        raise _not_https(url)
    authority, target, fragment = matched[1], matched[2], matched[3] or ""
    if "@" in authority:
        raise _refused("the URL carries a user name (or an @ before the host)", url)
    if not target.startswith("/") and "@" in target + fragment:
        raise _refused("an @ follows the host without a slash", url)
    host = normal_host(_without_port(authority, url))
    return ParsedUrl(host, _normal_target(target, url))


def refuse_characters(url: str) -> None:
    if not url:
        raise _refused("the line is empty", url)
    if len(url) > MAX_URL:
        raise _refused(f"the URL is longer than {MAX_URL} characters", url)
    for character in url:
        if character <= " " or character == "\x7f" or unicodedata.category(character) in _FOREIGN_REFUSED:
            raise _refused(f"the URL has a blank, control or invisible character (U+{ord(character):04X})", url)
    if "\\" in url:
        raise _refused("the URL has a backslash", url)
    if "\ufffd" in url:
        raise _refused("the URL has bytes that are not UTF-8", url)


def _not_https(url: str) -> UrlRefused:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _refused("the URL is not absolute", url)
    name = scheme[1].lower()
    if name == "https":
        return _refused("https: is not followed by two slashes and a host", url)
    return _refused(f"the scheme is {name[:20]}; only https is accepted", url)


def _without_port(authority: str, url: str) -> str:
    if authority.startswith("["):
        raise _refused("the host is, or spells, an IP address; only names are accepted", url)
    host, colon, port = authority.partition(":")
    if colon and port != str(HTTPS_PORT):
        raise _refused("the port is not 443", url)
    return host


def _normal_target(target: str, url: str) -> str:
    path, mark, query = target.partition("?")
    for part in (path, query):
        if any(character.isascii() and character not in _PLAIN for character in part):
            raise _refused("the path or query has a character that must be percent-encoded", url)
        if any(len(escape) != 3 for escape in _ESCAPE.findall(part)):
            raise _refused("the path or query has a % that is no escape", url)
    if _CONTROL_ESCAPE.search(path) or "%00" in query:
        raise _refused("the path has an escaped control character", url)
    return _encoded(_without_dots(path)) + (mark and "?" + _encoded(query))


def _encoded(text: str) -> str:
    """Non-ASCII as UTF-8 escapes, escapes in upper case."""
    bytes_ = "".join(
        character if character.isascii() else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in text
    )
    return _ESCAPE.sub(lambda escape: escape[0].upper(), bytes_)


def _without_dots(path: str) -> str:
    """RFC 3986 section 5.2.4, with `%2e` read as a dot as every client and server does."""
    kept: list[str] = []
    segments = path.split("/")[1:] if path else [""]
    for index, segment in enumerate(segments):
        plain = _DOT.sub(".", segment)
        last = index == len(segments) - 1
        if plain == "..":
            if kept:
                kept.pop()
        elif plain != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)


def _refused(reason: str, url: str) -> UrlRefused:
    shown = url if len(url) <= 200 else url[:200] + "…"
    return UrlRefused(reason, where=ascii(shown)[1:-1] or None, remedy="give a plain https:// URL of a public server")
