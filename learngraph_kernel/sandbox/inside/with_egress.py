"""Runs a command of a workspace that has a general egress policy: `python -m … DIGEST PROGRAM ARGUMENT…`.

Programs speak to proxies over TCP, and the door is a unix socket: this process carries bytes between the two on the
box's own loopback for as long as the command runs, and decides nothing. Standard library only.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

DOOR = "/egress/proxy.sock"
AUTHORITIES = "/egress/authorities.pem"
CHUNK = 1 << 16


def _carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK):
            target.sendall(data)
    except OSError:
        pass  # one of the two hung up, which ends both directions
    finally:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it was closed already


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return  # the command has ended
        door = socket.socket(socket.AF_UNIX)
        try:
            door.connect(DOOR)
        except OSError:
            client.close()
            continue
        for pair in ((client, door), (door, client)):
            threading.Thread(target=_carry, args=pair, daemon=True).start()


def main(arguments: list[str]) -> int:
    """Entry point; the command's own exit code."""
    policy, *command = arguments
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        proxy = f"http://policy:{policy}@127.0.0.1:{listener.getsockname()[1]}"
        names = ("HTTPS_PROXY", "https_proxy")
        trusted = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
        environment = os.environ | dict.fromkeys(names, proxy) | dict.fromkeys(trusted, AUTHORITIES)
        done = subprocess.run(command, env=environment, check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
