"""Fetches one page from inside the box, through the one door it has: `python -m … DIGEST MAX_BYTES REDIRECTS URL`.

The door is a CONNECT proxy on a unix socket in a folder that is mounted read-only; which hosts it opens to is not known
here. Prints one line of JSON (`{"ok", "status", "url", "redirects", "type", "bytes"}` or `{"ok": false, "code",
"reason"}`), then the body. Standard library only.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import sys
from urllib.parse import urljoin, urlsplit

DOOR = "/egress/proxy.sock"
AUTHORITIES = "/egress/authorities.pem"
SECONDS = 30.0
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "LearnGraph", "Connection": "close"}
_REDIRECTS = (301, 302, 303, 307, 308)


class Failed(Exception):
    """It could not be fetched; `code` is stable."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class _Through(http.client.HTTPSConnection):
    """HTTPS to a host through the door."""

    def __init__(self, host: str, policy: str) -> None:
        context = ssl.create_default_context(cafile=AUTHORITIES)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        super().__init__(host, timeout=SECONDS, context=context)
        self._policy, self._tls = policy, context

    def connect(self) -> None:
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(SECONDS)
        plain.connect(DOOR)
        word = base64.b64encode(f"policy:{self._policy}".encode()).decode()
        head = f"CONNECT {self.host}:443 HTTP/1.1\r\nHost: {self.host}:443\r\nProxy-Authorization: Basic {word}\r\n\r\n"
        plain.sendall(head.encode("ascii"))
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = plain.recv(1)
            if not piece or len(answer) > 4096:
                raise Failed("egress_failed", "the way out is closed")
            answer += piece
        status = answer.split(b" ", 2)[1]
        if status != b"200":
            code = "egress_denied" if status in (b"403", b"407") else "egress_failed"
            raise Failed(code, f"the way out to {self.host} is closed ({status.decode('ascii', 'replace')})")
        self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)


def fetch(url: str, policy: str, most: int, redirects: int) -> tuple[dict[str, object], bytes]:
    """The page and what is known of it. Raises Failed."""
    trail: list[str] = []
    while True:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.port not in (None, 443) or parts.username:
            raise Failed("egress_denied", "only https on port 443 leads out")
        connection = _Through(parts.hostname, policy)
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": "LearnGraph",
                "Connection": "close",
            }
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status in _REDIRECTS:
                if len(trail) >= redirects:
                    raise Failed("fetch_redirects", f"more than {redirects} redirects")
                trail.append(url)
                location = answer.headers.get("Location", "")
                if not location or not re.fullmatch(r"[!-~]{1,8000}", location):
                    raise Failed("fetch_failed", "the server redirects without saying where")
                url = urljoin(url, location)
                continue
            body = answer.read(most + 1)
            if len(body) > most:
                raise Failed("fetch_too_large", f"the answer is larger than {most} bytes")
            if answer.length not in (None, 0):
                raise Failed("fetch_failed", "the server stopped in the middle")
            kind = answer.headers.get_content_type()
            facts = {"ok": True, "status": answer.status, "url": url, "redirects": trail, "type": kind}
            return facts | {"bytes": len(body)}, body
        finally:
            connection.close()


def main(arguments: list[str]) -> int:
    """Entry point; 0 also when the page could not be fetched: the line says so."""
    policy, most, redirects, url = arguments
    body = b""
    try:
        facts, body = fetch(url, policy, int(most), int(redirects))
    except Failed as error:
        facts = {"ok": False, "code": error.code, "reason": str(error)}
    except TimeoutError:
        facts = {"ok": False, "code": "fetch_timeout", "reason": "the server did not answer in time"}
    except ssl.SSLError as error:
        facts = {"ok": False, "code": "fetch_tls", "reason": f"no trusted connection ({error.reason})"}
    except (OSError, http.client.HTTPException, ValueError) as error:
        facts = {"ok": False, "code": "fetch_failed", "reason": f"the connection failed ({type(error).__name__})"}
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + body)
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
