"""What may be asked of sandboxd, as typed methods; how it is asked is in `transport`. Standard library only."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from learngraph_kernel.sandbox.place import default_socket
from learngraph_kernel.sandbox.transport import SandboxUnavailable, Transport, new_key

__all__ = ["Command", "Kernel", "Page", "Sandbox", "SandboxClient", "SandboxUnavailable", "connected", "default_socket"]

PATIENCE = 30
"""Seconds of one waiting call."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A workspace: its id, session, policy (`sandbox-agent-v1`), state (docs/sandbox.md) and the reason for it."""

    id: str
    session: str
    policy: str
    state: str
    image: str | None
    created: float
    active: float
    reason: str | None


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's container, and the places that kernel and runtime share.

    Attributes:
        folder: mounted read-write at the same path in the container; holds the connection file.
        granted: mounted read-only at the same path.
        broker_socket: where the kernel looks for the broker; to be made by the runtime, mode 0660.
        ticket_file: where the kernel looks for the broker's ticket; to be written by the runtime, mode 0640.
        warm: it was started before it was asked for.
    """

    id: str
    run: str
    state: str
    image: str
    folder: Path
    granted: Path
    connection_file: Path
    broker_socket: Path
    ticket_file: Path
    warm: bool
    exit_code: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """What a web fetch gave: data from a stranger.

    Attributes:
        url: the final one; `redirects` are those before it.
        type: the media type that the server declared.
    """

    status: int
    url: str
    redirects: tuple[str, ...]
    type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """What is known of a command, and the output after the offsets asked for.

    Attributes:
        state: running, exited, cancelled, timed_out, refused (nothing ran), failed or lost.
        report: what the files went through: restored, changed, usage, …; None while it runs.
        complete: it has ended, and nothing of its output lies beyond what is here.
    """

    id: str
    state: str
    exit_code: int | None
    reason: str | None
    truncated: bool
    stdout: bytes
    stderr: bytes
    report: Mapping[str, Any] | None
    complete: bool

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.state == "running"


class SandboxClient(Transport):
    """sandboxd's calls; for how it connects see `Transport`."""

    # The daemon

    def health(self) -> dict[str, Any]:
        """`{"state": "ok", "instance", "api"}`."""
        return self._json("GET", "/v1/health")

    def readiness(self) -> dict[str, Any]:
        """`{"ready", "checks": [{"name", "state", "reason", "remedy", "zh"}]}`."""
        return self._json("GET", "/v1/readiness")

    def metrics(self) -> str:
        """Figures in Prometheus' text format."""
        return self._call("GET", "/v1/metrics").decode()

    def collect(self) -> dict[str, Any]:
        """Applies time-outs and removes leftovers now."""
        return self._json("POST", "/v1/gc", {}, needs=("owner", "lifecycle"))

    def shut_down(self) -> list[str]:
        """Ends the daemon; returns the caller's kernels, which go on without it. Raises Forbidden for another's."""
        answer = self._json("POST", "/v1/shutdown", {}, needs=("owner", "lifecycle"), repeat=False)
        return list(answer["kernels"])

    # Images

    def image(self) -> dict[str, Any]:
        """`{"state": "ready" | "unavailable", "image", "reason", "remedy", …}`."""
        return self._json("GET", "/v1/images")

    def build_image(self, *, key: str | None = None) -> dict[str, Any]:
        """Starts making the image; follow it with `image_job`."""
        return self._json("POST", "/v1/images/build", {}, key=key or new_key())

    def pull_image(self, *, key: str | None = None) -> dict[str, Any]:
        """Starts taking the image from the configured registry."""
        return self._json("POST", "/v1/images/pull", {}, key=key or new_key())

    def image_job(self, job: str) -> dict[str, Any]:
        """State, progress (0 to 1) and log of a job."""
        return self._json("GET", f"/v1/images/jobs/{quote(job)}")

    # Workspaces

    def create(self, session: str, policy: str = "sandbox-agent-v1", *, key: str | None = None) -> Sandbox:
        """The workspace of a chat session, made if it is not there."""
        body = {"session": session, "policy": policy}
        needs = (f"session:{session}", "lifecycle")
        return _sandbox(self._json("POST", "/v1/sandboxes", body, key=key or new_key(), needs=needs))

    def overview(self) -> tuple[list[Sandbox], list[Kernel]]:
        """The caller's workspaces, newest first, and running kernels."""
        answer = self._json("GET", "/v1/sandboxes", needs=("owner", "observe"))
        return [_sandbox(row) for row in answer["sandboxes"]], [_kernel(row) for row in answer["kernels"]]

    def get(self, sandbox: str) -> Sandbox:
        """One workspace."""
        return _sandbox(self._json("GET", f"/v1/sandboxes/{quote(sandbox)}", needs=("owner", "observe")))

    def start(self, sandbox: str) -> Sandbox:
        """Starts its container."""
        return self._lifecycle(sandbox, "start")

    def stop(self, sandbox: str) -> Sandbox:
        """Ends its container; the files stay."""
        return self._lifecycle(sandbox, "stop")

    def delete(self, sandbox: str) -> None:
        """Ends its container and removes its files."""
        self._json("DELETE", f"/v1/sandboxes/{quote(sandbox)}", needs=("owner", "lifecycle"))

    def _lifecycle(self, sandbox: str, word: str) -> Sandbox:
        path = f"/v1/sandboxes/{quote(sandbox)}/{word}"
        return _sandbox(self._json("POST", path, {}, needs=("owner", "lifecycle"), repeat=True))

    # Commands

    def exec(self, sandbox: str, argv: Sequence[str], *, timeout: float | None = None, key: str | None = None) -> str:
        """Starts a command in a workspace; returns its id."""
        body: dict[str, Any] = {"argv": list(argv), "cwd": "."}
        if timeout is not None:
            body["timeout"] = timeout
        path = f"/v1/sandboxes/{quote(sandbox)}/exec"
        return str(self._json("POST", path, body, key=key or new_key(), needs=("owner", "exec"))["exec"])

    def poll(self, command: str, *, stdout: int = 0, stderr: int = 0, wait: float = 0.0) -> Command:
        """A command's state and its output from the offsets on; waits up to `wait` seconds for news."""
        query = urlencode({"stdout": stdout, "stderr": stderr, "wait": wait})
        return _command(self._json("GET", f"/v1/exec/{quote(command)}?{query}", needs=("owner", "observe")))

    def run(
        self, sandbox: str, argv: Sequence[str], *, timeout: float | None = None, key: str | None = None
    ) -> Command:
        """Runs a command to its end, with all its output (up to the daemon's cap)."""
        path = f"/v1/sandboxes/{quote(sandbox)}/exec?wait={PATIENCE}"
        body: dict[str, Any] = {"argv": list(argv), "cwd": "."} | ({} if timeout is None else {"timeout": timeout})
        # One ticket for both effects: the answer to the call that starts the command holds its output as well.
        now = _command(self._json("POST", path, body, key=key or new_key(), needs=("owner", "exec,observe")))
        out, err = bytearray(now.stdout), bytearray(now.stderr)
        while not now.complete:
            now = self.poll(now.id, stdout=len(out), stderr=len(err), wait=PATIENCE)
            out += now.stdout
            err += now.stderr
        return replace(now, stdout=bytes(out), stderr=bytes(err))

    def inspect(self, sandbox: str, path: str, task: str = "inspect", *, key: str | None = None) -> dict[str, Any]:
        """Looks at an uploaded file (`inspect`) or extracts its inert text (`text`), under sandbox-policy-v1."""
        target = f"/v1/sandboxes/{quote(sandbox)}/inspect"
        return self._json("POST", target, {"task": task, "path": path}, key=key or new_key(), needs=("owner", "exec"))

    def cancel(self, command: str) -> None:
        """Asks a command to end."""
        self._json("POST", f"/v1/exec/{quote(command)}/cancel", {}, needs=("owner", "exec"), repeat=True)

    def commands(self, sandbox: str) -> list[dict[str, Any]]:
        """The commands of a workspace, newest first, without output."""
        answer = self._json("GET", f"/v1/sandboxes/{quote(sandbox)}/exec", needs=("owner", "observe"))
        return list(answer["execs"])

    # Files

    def files(self, sandbox: str, below: str | None = None) -> list[dict[str, Any]]:
        """The files of a workspace with sizes, versions and hashes; works with Docker down."""
        query = "" if below is None else "?" + urlencode({"path": below})
        answer = self._json("GET", f"/v1/sandboxes/{quote(sandbox)}/files{query}", needs=("owner", "observe"))
        return list(answer["files"])

    def get_file(self, sandbox: str, path: str) -> bytes:
        """The bytes of a file."""
        return self._call("GET", self._content(sandbox, path), needs=("owner", "observe"))

    def put_file(self, sandbox: str, path: str, data: bytes) -> dict[str, Any]:
        """Writes a file; the same bytes again change nothing."""
        answer = self._call("PUT", self._content(sandbox, path), data, needs=("owner", "files"), repeat=True)
        return dict(json.loads(answer))

    def delete_file(self, sandbox: str, path: str, *, recursive: bool = False) -> list[str]:
        """Deletes below `work/`; returns what is gone."""
        target = self._content(sandbox, path) + ("&recursive=true" if recursive else "")
        return list(json.loads(self._call("DELETE", target, needs=("owner", "files")))["deleted"])

    def publish(self, sandbox: str, path: str) -> dict[str, Any]:
        """Makes the present content of `outputs/…` an immutable version."""
        target = f"/v1/sandboxes/{quote(sandbox)}/publish"
        return self._json("POST", target, {"path": path}, needs=("owner", "files"), repeat=True)

    def grant_deletion(self, sandbox: str, paths: Sequence[str], *, ttl: float = 600, key: str | None = None) -> str:
        """Permits one command to delete these paths; the user's decision, never an agent's."""
        body = {"paths": list(paths), "ttl": ttl}
        target = f"/v1/sandboxes/{quote(sandbox)}/grants"
        return str(self._json("POST", target, body, key=key or new_key(), needs=("owner", "grant"))["grant"])

    # The way out

    def allow_egress(
        self, sandbox: str, hosts: Sequence[str], *, kind: str = "fetch", ttl: float = 3_600, key: str | None = None
    ) -> dict[str, Any]:
        """Lets a session reach these hosts on port 443 for `ttl` seconds; the user's decision, never an agent's.

        Args:
            kind: `fetch` (the web-fetch runner) or `general` (the workspace's own programs).

        Returns: `{"policy": digest, "id", "kind", "hosts", "ends", …}`.
        """
        body = {"kind": kind, "hosts": list(hosts), "ttl": ttl}
        target = f"/v1/sandboxes/{quote(sandbox)}/egress"
        return self._json("POST", target, body, key=key or new_key(), needs=("owner", "grant"))

    def egress(self, sandbox: str) -> list[dict[str, Any]]:
        """The egress policies of a session, newest first."""
        return list(self._json("GET", f"/v1/sandboxes/{quote(sandbox)}/egress", needs=("owner", "observe"))["policies"])

    def revoke_egress(self, sandbox: str, policy: str) -> dict[str, Any]:
        """Takes a policy (its `id`) back; connections through it end."""
        return self._json("DELETE", f"/v1/sandboxes/{quote(sandbox)}/egress/{quote(policy)}", needs=("owner", "grant"))

    def fetch(self, sandbox: str, url: str, policy: str, *, seconds: float | None = None) -> Page:
        """Fetches a page in the box, under a fetch policy (its digest)."""
        body: dict[str, Any] = {"url": url, "policy": policy} | ({} if seconds is None else {"seconds": seconds})
        answer = self._json("POST", f"/v1/sandboxes/{quote(sandbox)}/fetch", body, needs=("owner", "exec"), repeat=True)
        data = base64.b64decode(answer["data"])
        return Page(answer["status"], answer["url"], tuple(answer["redirects"]), answer["type"], data)

    @staticmethod
    def _content(sandbox: str, path: str) -> str:
        return f"/v1/sandboxes/{quote(sandbox)}/files/content?{urlencode({'path': path})}"

    # Kernels

    def start_kernel(
        self,
        run: str,
        *,
        image: str | None = None,
        folder: Path | None = None,
        granted: Path | None = None,
        environment: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Kernel:
        """A kernel for a run; warm when image, folders and environment are left to the daemon.

        The kernel is ended when this process ends.
        """
        body: dict[str, Any] = {"run": run}
        body |= {} if image is None else {"image": image}
        body |= {} if folder is None else {"folder": str(folder)}
        body |= {} if granted is None else {"granted": str(granted)}
        body |= {} if not environment else {"environment": dict(environment)}
        return _kernel(self._json("POST", "/v1/kernels", body, key=key or new_key(), needs=(f"run:{run}", "kernel")))

    def kernel(self, kernel: Kernel) -> Kernel:
        """Its present state; asking renews its lease."""
        return _kernel(self._json("GET", f"/v1/kernels/{quote(kernel.id)}", needs=(f"run:{kernel.run}", "kernel")))

    def interrupt_kernel(self, kernel: Kernel) -> None:
        """SIGINT, as a person's stop button."""
        self._kernel_call(kernel, "interrupt", {})

    def signal_kernel(self, kernel: Kernel, name: str) -> None:
        """Sends `SIGINT`, `SIGTERM`, `SIGKILL`, `SIGUSR1` or `SIGUSR2`."""
        self._kernel_call(kernel, "signal", {"signal": name})

    def restart_kernel(self, kernel: Kernel, *, environment: Mapping[str, str] | None = None) -> Kernel:
        """A fresh process under the same id, in the same folders, at the same sockets."""
        body = {"environment": dict(environment)} if environment else {}
        path = f"/v1/kernels/{quote(kernel.id)}/restart"
        return _kernel(self._json("POST", path, body, needs=(f"run:{kernel.run}", "kernel")))

    def _kernel_call(self, kernel: Kernel, word: str, body: dict[str, Any]) -> None:
        self._json("POST", f"/v1/kernels/{quote(kernel.id)}/{word}", body, needs=(f"run:{kernel.run}", "kernel"))

    def kernel_logs(self, kernel: Kernel) -> str:
        """The end of what the kernel's process printed outside of cells."""
        path = f"/v1/kernels/{quote(kernel.id)}/logs"
        return str(self._json("GET", path, needs=(f"run:{kernel.run}", "kernel"))["log"])

    def stop_kernel(self, kernel: Kernel) -> None:
        """Destroys a kernel; safe to repeat."""
        self._json("DELETE", f"/v1/kernels/{quote(kernel.id)}", needs=(f"run:{kernel.run}", "kernel"))


@contextlib.contextmanager
def connected(path: Path | None = None) -> Iterator[SandboxClient]:
    """A client that is closed at the end."""
    client = SandboxClient(path)
    try:
        yield client
    finally:
        client.close()


def _sandbox(row: Mapping[str, Any]) -> Sandbox:
    names = ("session", "policy", "state", "image", "created", "active", "reason")
    return Sandbox(row["sandbox"], **{name: row[name] for name in names})


def _kernel(row: Mapping[str, Any]) -> Kernel:
    places: dict[str, Any] = {
        name: Path(row[name]) for name in ("folder", "granted", "connection_file", "broker_socket", "ticket_file")
    }
    names = ("run", "state", "image", "warm", "exit_code", "reason")
    return Kernel(row["kernel"], **places, **{name: row[name] for name in names})


def _command(row: Mapping[str, Any]) -> Command:
    out, err = (base64.b64decode(row[stream]["data"]) for stream in ("stdout", "stderr"))
    names = ("state", "exit_code", "reason", "truncated", "report")
    ended = row["state"] != "running"
    complete = ended and all(row[stream]["next"] >= row[stream]["size"] for stream in ("stdout", "stderr"))
    return Command(row["exec"], stdout=out, stderr=err, complete=complete, **{name: row[name] for name in names})
