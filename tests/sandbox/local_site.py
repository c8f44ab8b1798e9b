"""A real HTTPS server on loopback with an authority of its own, and what leads a download to it."""

from __future__ import annotations

import datetime as dt
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from learngraph_kernel.sandbox.addresses import refusal_of

NAMES = ["files.example", "other.example", "xn--bcher-kva.example"]


def loopback_allowed(address: str) -> str | None:
    """The policy of these tests: what production refuses, but for the server's own address."""
    return None if address == "127.0.0.1" else refusal_of(address)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def make_authority(folder: Path) -> tuple[Path, Path]:
    """An authority's certificate, and a server's key and certificate for `NAMES`; both PEM files."""
    now = dt.datetime.now(dt.UTC)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def builder(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name("test authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )

    authority = (
        builder("test authority", authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server = (
        builder("test server", server_key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in NAMES]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authority_file, server_file = folder / "authority.pem", folder / "server.pem"
    authority_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    server_file.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + server.public_bytes(serialization.Encoding.PEM)
    )
    return authority_file, server_file


Answering = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Site:
    """The server: `routes` by path (without query), what was requested as `Host` and path."""

    port: int = 0
    routes: dict[str, Answering] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def serve(self, path: str, body: bytes, **headers: str) -> None:
        """Answers 200 with a body; header names with `_` for `-`."""

        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            for name, value in {"Content_Length": str(len(body)), **headers}.items():
                request.send_header(name.replace("_", "-"), value)
            request.end_headers()
            request.wfile.write(body)

        self.routes[path] = answer

    def redirect(self, path: str, location: str, status: int = 302) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            request.send_header("Location", location)
            request.send_header("Content-Length", "0")
            request.end_headers()

        self.routes[path] = answer


def start_site(server_file: Path) -> tuple[Site, ThreadingHTTPServer]:
    """A running server; `shutdown` and `server_close` end it."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(f"{self.headers['Host']}{self.path}")
            site.headers.append(dict(self.headers))
            path = self.path.partition("?")[0]
            found = site.routes.get(path) or next(
                (
                    answer
                    for prefix, answer in site.routes.items()
                    if prefix.endswith("*") and path.startswith(prefix[:-1])
                ),
                None,
            )
            if found is None:
                self.send_error(404)
            else:
                found(self)

        do_POST = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what these tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return site, server


@dataclass
class ToSite:
    """A connector that leads every address to the site, and remembers which were asked for."""

    site: Site
    asked: list[tuple[str, int]] = field(default_factory=list)
    deaf: frozenset[str] = frozenset()

    def connect(self, address: str, port: int, timeout: float) -> socket.socket:
        self.asked.append((address, port))
        if address in self.deaf:
            raise ConnectionRefusedError
        return socket.create_connection(("127.0.0.1", self.site.port), timeout)


def git_backend(root: Path) -> Answering:
    """`git http-backend`, the server that comes with git, as a CGI program over the repositories below `root`."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        path, _, query = request.path.partition("?")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": request.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        request.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    return answer
