"""A host name as it stands in a URL → the one ASCII form that is resolved, shown and approved, or a refusal.

Nothing is repaired: characters that browsers map to something else (full-width letters, ideographic full stops, soft
hyphens) are refused, because two programs may map them differently. Non-ASCII names are IDNA 2008 (RFC 5891), held to
the "highly restrictive" level of Unicode's UTS 39 so that a name is not mistaken for another by the person who
approves it.
"""

from __future__ import annotations

import re
import unicodedata

import idna

from learngraph_kernel.errors import BadInput

MAX_NAME = 253  # RFC 1035 section 2.3.4, without the root's dot
MAX_LABEL = 63


class UrlRefused(BadInput):
    """A URL, or a host in it, that may not be fetched."""

    code = "url_refused"


_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*", re.ASCII)
_TOP = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]+", re.ASCII)

# Names that mean this machine, its network or nothing: RFC 6761, RFC 6762, RFC 8375, RFC 9476, ICANN's `internal`, and
# what routers and companies use.
_SPECIAL_SUFFIXES = {
    "localhost": "loopback name",
    "localdomain": "local name",
    "local": "local name",
    "internal": "internal name",
    "intranet": "internal name",
    "private": "internal name",
    "corp": "internal name",
    "home": "internal name",
    "lan": "internal name",
    "svc": "internal name",
    "default": "internal name",
    "consul": "internal name",
    "workgroup": "internal name",
    "arpa": "infrastructure name",
    "onion": "name outside DNS",
    "alt": "name outside DNS",
    "invalid": "name that never resolves",
    "metadata.goog": "cloud metadata",
    "metadata.azure.com": "cloud metadata",
    "metadata.tencentyun.com": "cloud metadata",
    "metadata.packet.net": "cloud metadata",
    "metadata.platformequinix.com": "cloud metadata",
    "api.metadata.cloud.ibm.com": "cloud metadata",
}

# Public services that answer with whatever address the name asks for, or with loopback: a person who approves such a
# name cannot know what it will be. Their answers are checked as everyone's; refusing the name is a second lock.
_ADDRESS_SERVICES = frozenset(
    "nip.io sslip.io xip.io rbndr.us 1u.ms localtest.me lvh.me vcap.me lacolhost.com yoogle.com localho.st 42foo.com "
    "backname.io traefik.me ipq.co lookup.tokyo".split()
)

_JAPANESE = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"})
_TOGETHER = (_JAPANESE, frozenset({"LATIN", "CJK", "BOPOMOFO"}), frozenset({"LATIN", "CJK", "HANGUL"}))
# Letters that pass for ASCII ones (the sets of Chrome's policy for international names). A label that is written in
# nothing else reads as a Latin word, unless the top-level domain is of that script too.
_LOOKALIKES = {
    "CYRILLIC": frozenset("асԁеһіјӏорԛѕԝхуъьҽпгѵѡ"),
    "GREEK": frozenset("αβγεηικνορτυχωσςϲϳ"),
    "ARMENIAN": frozenset("հյոսցօզաքպգմնլվտ"),
}
# Single strokes that pass for punctuation when they stand among Latin letters.
_STROKES = frozenset("ノソゾンーハニロエ一二丨丶丿丷〇口工卜へべぺ")


def normal_host(text: str) -> str:
    """The ASCII form of a host: lower case, A-labels, no trailing dot.

    Args:
        text: what stands between `//` and the port.

    Raises:
        UrlRefused: an IP literal in any spelling, a malformed, special, single-label or misleading name.
    """
    _refuse_syntax(text)
    labels = text.removesuffix(".").split(".")
    if "" in labels:
        raise _refused("the host has an empty label", text)
    if any(_NUMBER.fullmatch(label) for label in labels[-1:]) or _is_quad_start(labels):
        raise _refused("the host is, or spells, an IP address; only names are accepted", text)
    top_script = _script_of_top(labels[-1])
    host = ".".join(_normal_label(label, top_script) for label in labels)
    if len(host) > MAX_NAME:
        raise _refused(f"the host is longer than {MAX_NAME} characters", text)
    _refuse_special(host)
    if not _TOP.fullmatch(host.rpartition(".")[2]):
        raise _refused("the host does not end in a top-level domain", text)
    return host


def _refuse_syntax(text: str) -> None:
    if not text or text == ".":
        raise _refused("the host is empty", text)
    if "[" in text or "]" in text or ":" in text:
        raise _refused("the host is, or spells, an IP address; only names are accepted", text)
    if "%" in text:
        raise _refused("the host is percent-encoded", text)
    if len(text) > 4 * MAX_NAME:
        raise _refused(f"the host is longer than {MAX_NAME} characters", text[:MAX_NAME] + "…")


def _is_quad_start(labels: list[str]) -> bool:
    """Whether four numbers in a row spell an address inside a longer name, as in `127.0.0.1.example.com`."""
    run = 0
    for label in labels:
        run = run + 1 if _NUMBER.fullmatch(label) else 0
        if run == 4:
            return True
    return False


def _refuse_special(host: str) -> None:
    if "." not in host:
        raise _refused("the host is a single label, a name of the local network", host)
    for suffix, meaning in _SPECIAL_SUFFIXES.items():
        if host == suffix or host.endswith("." + suffix):
            raise _refused(f"the host is reserved ({meaning})", host)
    for service in _ADDRESS_SERVICES:
        if host == service or host.endswith("." + service):
            raise _refused("the host belongs to a service that answers with any address asked for", host)


def _normal_label(label: str, top_script: str | None) -> str:
    if label.isascii():
        ascii_label = label.lower()
        if not _LABEL.fullmatch(ascii_label):
            raise _refused("the host has a character that no host name has", label)
        if len(ascii_label) > MAX_LABEL:
            raise _refused(f"a label of the host is longer than {MAX_LABEL} characters", label)
        if ascii_label.startswith("xn--"):
            _refuse_misleading(_decoded(ascii_label), top_script)
        return ascii_label
    for character in label:
        if not character.isascii() and not _stays_foreign(character):
            raise _refused("the host has a character that turns into an ASCII one", label)
    unicode_label = unicodedata.normalize("NFC", label.lower())
    _refuse_misleading(unicode_label, top_script)
    return _encoded(unicode_label)


def _stays_foreign(character: str) -> bool:
    """False for the Kelvin sign and its like, whose lower case or normal form is plain ASCII."""
    return not any(part.isascii() for part in unicodedata.normalize("NFC", character.lower()))


def _encoded(label: str) -> str:
    try:
        return idna.alabel(label).decode("ascii")
    except (idna.IDNAError, UnicodeError) as error:
        raise _refused(f"the host is no valid internationalised name ({error})", label) from error


def _decoded(label: str) -> str:
    """The U-label of an A-label that is exactly what its U-label encodes to."""
    try:
        decoded = idna.ulabel(label)
    except (idna.IDNAError, UnicodeError) as error:
        raise _refused(f"the host is no valid internationalised name ({error})", label) from error
    if decoded.isascii() or _encoded(decoded) != label:
        raise _refused("the host has an xn-- label that encodes no international name", label)
    return decoded


def _refuse_misleading(label: str, top_script: str | None) -> None:
    """A label that mixes scripts, or that is a Latin word written in look-alikes."""
    if any(unicodedata.category(character) == "Nd" and not character.isascii() for character in label):
        raise _refused("the host has digits of another script", label)
    if any(_script(character) == "LATIN" and not _is_common_latin(character) for character in label):
        raise _refused("the host has a rare letter that passes for a common one", label)
    if any(unicodedata.name(character, "").startswith("COMBINING ") for character in label):
        raise _refused("the host has a mark that has no letter of its own", label)  # what NFC could compose is gone
    scripts = {script for script in map(_script, label) if script is not None}
    if len(scripts) > 1 and not any(scripts <= allowed for allowed in _TOGETHER):
        raise _refused(f"the host mixes scripts ({', '.join(sorted(scripts))}) in one label", label)
    foreign = [character for character in label if _script(character) not in (None, "LATIN")]
    if "LATIN" in scripts and foreign and all(character in _STROKES for character in foreign):
        raise _refused("the host has a character that passes for punctuation", label)
    for script, lookalikes in _LOOKALIKES.items():
        letters = [character for character in label if _script(character) == script]
        if letters and script != top_script and all(character in lookalikes for character in letters):
            raise _refused(f"the host is a Latin word written in {script.title()} letters", label)


def _script(character: str) -> str | None:
    """The script by the first word of the character's name; None for digits, hyphens, marks shared by scripts."""
    if character.isascii():
        return "LATIN" if character.isalpha() else None
    first = unicodedata.name(character, "UNNAMED").split()[0]
    if first in ("MIDDLE", "MODIFIER", "KATAKANA-HIRAGANA", "ZERO"):
        return None
    return "CJK" if first == "IDEOGRAPHIC" else first


def _is_common_latin(character: str) -> bool:
    """Latin letters that living orthographies write: Latin-1, Extended-A, Vietnamese, Romanian, Pinyin, Azeri."""
    code = ord(character)
    return (
        code <= 0x017E
        or code in (0x01A1, 0x01B0, 0x0219, 0x021B, 0x0259)
        or 0x01CD <= code <= 0x01DC
        or 0x1E00 <= code <= 0x1EFF
    )


def _script_of_top(label: str) -> str | None:
    """The script of the top-level domain; None for an ASCII one, whose second level is read as Latin."""
    if label.lower().startswith("xn--"):
        label = _decoded(label.lower())
    if label.isascii():
        return None
    scripts = {script for script in map(_script, label) if script is not None}
    return scripts.pop() if len(scripts) == 1 else None


def _refused(reason: str, host: str) -> UrlRefused:
    return UrlRefused(reason, where=host[:MAX_NAME] or None, remedy="give the plain name of a public https server")
