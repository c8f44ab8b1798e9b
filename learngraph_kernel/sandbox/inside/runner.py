"""The resident runner: starts commands inside a workspace container, one at a time, over one kept-open stream.

It is the container's only long-lived process (under the init), so a command costs a frame on a pipe instead of a
`docker exec`. Frames are a length (4 bytes, big-endian) and that many bytes of JSON, on standard input and output;
standard output belongs to the frames alone. When its input ends, it ends, and the container with it: a container never
outlives the daemon that holds the stream. Standard library only; sandboxd hands this file's text to the interpreter.

From outside: `hello {protocol, sweep}`, `start {id, argv, env, cwd, cap}`, `cancel {id}`.
From inside: `ready {protocol, pid}`, `started {id, pid}`, `output {id, stream, data}` (base64), `truncated {id}`,
`exit {id, code, signal, stdout, stderr, dirty}`, `refused {id, reason}`.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import time
from typing import Any

PROTOCOL = 1
MAX_FRAME = 1024 * 1024
CHUNK = 64 * 1024
SANDBOX_UID = 65532
DRAIN_SECONDS = 1.0
SWEEP_SECONDS = 2.0
PR_SET_DUMPABLE = 4  # prctl(2)


def become_unreadable() -> None:
    """Without this a command could write frames of its own through /proc/<runner>/fd/1."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


class Runner:
    """One command at a time; everything happens on one selector."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader, self.writer = reader, writer
        self.selector = selectors.DefaultSelector()
        self.pending = bytearray()
        self.sweep = False
        self.process: subprocess.Popen[bytes] | None = None
        self.identity = ""
        self.cap = 0
        self.sent = {"stdout": 0, "stderr": 0}
        self.truncated = False

    def serve(self) -> None:
        """Until the input ends."""
        wake_read, wake_write = os.pipe()
        for end in (wake_read, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        self.selector.register(self.reader, selectors.EVENT_READ, "input")
        self.selector.register(wake_read, selectors.EVENT_READ, "child")
        while True:
            for key, _ in self.selector.select():
                if key.data == "input":
                    if not self.read_input():
                        self.end_command()
                        return
                elif key.data == "child":
                    os.read(wake_read, CHUNK)
                else:
                    self.forward(key.fd, key.data)
            if self.process is not None and self.process.poll() is not None:
                self.finish()

    def read_input(self) -> bool:
        data = os.read(self.reader, CHUNK)
        if not data:
            return False
        self.pending += data
        while len(self.pending) >= 4:
            (length,) = struct.unpack_from(">I", self.pending)
            if length > MAX_FRAME:
                return False
            if len(self.pending) < 4 + length:
                break
            frame = json.loads(self.pending[4 : 4 + length])
            del self.pending[: 4 + length]
            self.handle(frame)
        return True

    def handle(self, frame: dict[str, Any]) -> None:
        kind = frame["kind"]
        if kind == "hello":
            self.sweep = bool(frame["sweep"])
            self.send({"kind": "ready", "protocol": PROTOCOL, "pid": os.getpid()})
        elif kind == "start":
            self.start(frame)
        elif kind == "cancel" and self.process is not None and frame["id"] == self.identity:
            self.kill_group()

    def start(self, frame: dict[str, Any]) -> None:
        if self.process is not None:
            self.send({"kind": "refused", "id": frame["id"], "reason": "busy"})
            return
        self.identity, self.cap = frame["id"], frame["cap"]
        self.sent, self.truncated = {"stdout": 0, "stderr": 0}, False
        try:
            self.process = subprocess.Popen(
                frame["argv"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=frame["cwd"],
                env={**os.environ, **frame["env"]},  # the container's own: sandboxd's and the image's
                start_new_session=True,
                umask=0o022,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            self.send({"kind": "refused", "id": self.identity, "reason": f"{type(error).__name__}: {error}"})
            return
        self.prefer_as_victim(self.process.pid)
        for name, pipe in self.pipes(self.process).items():
            os.set_blocking(pipe.fileno(), False)
            self.selector.register(pipe.fileno(), selectors.EVENT_READ, name)
        self.send({"kind": "started", "id": self.identity, "pid": self.process.pid})

    @staticmethod
    def pipes(process: subprocess.Popen[bytes]) -> dict[str, Any]:
        return {"stdout": process.stdout, "stderr": process.stderr}

    @staticmethod
    def prefer_as_victim(pid: int) -> None:
        """When memory runs out the command dies, not the runner."""
        try:
            with open(f"/proc/{pid}/oom_score_adj", "w") as file:
                file.write("1000")
        except OSError:
            return  # it has ended already, or the kernel does not let us: the runner's death is handled outside

    def forward(self, descriptor: int, stream: str) -> bool:
        """One chunk of output; False at its end or when there is nothing now."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.selector.unregister(descriptor)
            return False
        room = self.cap - self.sent["stdout"] - self.sent["stderr"]
        kept = data[:room] if room > 0 else b""
        if kept:
            self.sent[stream] += len(kept)
            encoded = base64.b64encode(kept).decode("ascii")
            self.send({"kind": "output", "id": self.identity, "stream": stream, "data": encoded})
        if len(kept) < len(data) and not self.truncated:
            self.truncated = True
            self.send({"kind": "truncated", "id": self.identity})
        return True

    def finish(self) -> None:
        """The command has ended: its descendants end too, what they wrote is sent, then the exit."""
        process = self.process
        assert process is not None
        self.kill_group()
        clean = self.sweep_all()
        deadline = time.monotonic() + DRAIN_SECONDS
        names = self.pipes(process)
        registered = self.selector.get_map()
        while time.monotonic() < deadline:
            open_pipes = [(n, p) for n, p in names.items() if p.fileno() in registered]
            if not open_pipes:
                break
            moved = [self.forward(pipe.fileno(), name) for name, pipe in open_pipes]
            if not any(moved):
                time.sleep(0.001)
        for pipe in names.values():
            if pipe.fileno() in registered:
                self.selector.unregister(pipe.fileno())
            pipe.close()
        code = process.returncode
        self.process = None
        self.send(
            {
                "kind": "exit",
                "id": self.identity,
                "code": code if code >= 0 else 128 - code,
                "signal": -code if code < 0 else None,
                "stdout": self.sent["stdout"],
                "stderr": self.sent["stderr"],
                "truncated": self.truncated,
                "dirty": not clean,
            }
        )

    def kill_group(self) -> None:
        assert self.process is not None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def sweep_all(self) -> bool:
        """Ends whatever a command left behind in other sessions; True when nothing is left.

        kill(-1) reaches every process this uid may signal but the init and ourselves. That is only right in a
        container of our own: hence the uid that no host account has, and the order from outside.
        """
        if not self.sweep or os.getuid() != SANDBOX_UID or os.getppid() != 1:
            return True
        deadline = time.monotonic() + SWEEP_SECONDS
        while time.monotonic() < deadline:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return True
            time.sleep(0.001)
        return False

    def end_command(self) -> None:
        if self.process is not None:
            self.kill_group()

    def send(self, frame: dict[str, Any]) -> None:
        body = json.dumps(frame, separators=(",", ":")).encode("ascii")
        view = memoryview(struct.pack(">I", len(body)) + body)
        while view:
            view = view[os.write(self.writer, view) :]


def main() -> None:
    """Frames on standard input and output; anything else that writes to descriptor 1 goes to standard error."""
    become_unreadable()
    writer = os.dup(1)
    os.dup2(2, 1)
    Runner(0, writer).serve()


if __name__ == "__main__":
    main()
