"""A real OpenAI-compatible HTTP server on the loopback interface; the model's name chooses how it behaves."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ["On-time ", "rate ", "fell ", "to ", "[[m:on_time]]."]
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 9,
    "total_tokens": 129,
    "prompt_tokens_details": {"cached_tokens": 100},
}


@dataclass
class Seen:
    """What arrived: bodies and headers of the requests, in order."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "served",
        "choices": [choice], **more,
    }  # fmt: skip


def usage_chunk(usage: dict[str, Any]) -> dict[str, Any]:
    return {**chunk({}), "choices": [], "usage": usage}


def tool_delta(index: int, arguments: str, **head: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": head["name"]} if "name" in head else {})}
    call = {"index": index, "function": function, **({"id": head["id"], "type": "function"} if "id" in head else {})}
    return chunk({"tool_calls": [call]})


class Handler(BaseHTTPRequestHandler):
    """One behaviour a model name; `error-<status>` answers with that status."""

    protocol_version = "HTTP/1.1"
    seen: Seen

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.bodies.append(body)
        self.seen.headers.append({key.lower(): value for key, value in self.headers.items()})
        name = body["model"]
        if name.startswith("error-"):
            self.refuse(int(name.split("-")[1]))
        else:
            getattr(self, name.replace("-", "_"))(body)

    def refuse(self, status: int, **error: Any) -> None:
        text = json.dumps(
            {"error": {"message": f"the endpoint says {status}", "type": "t", "code": None, **error}}
        ).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        if status == 429:
            self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(text)

    def open_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def raw(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def send(self, *chunks: dict[str, Any]) -> None:
        for item in chunks:
            self.raw(f"data: {json.dumps(item)}\n\n")

    def finish(self) -> None:
        self.raw("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def say(self, *texts: str, usage: dict[str, Any] | None = None, finish: str = "stop") -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": ""}))
        self.send(*(chunk({"content": text}) for text in texts), chunk({}, finish))
        if usage:
            self.send(usage_chunk(usage))
        self.finish()

    def plain(self, body: dict[str, Any]) -> None:
        self.say(*WORDS, usage=USAGE)

    def no_usage(self, body: dict[str, Any]) -> None:
        self.say(*WORDS)

    def length(self, body: dict[str, Any]) -> None:
        self.say("cut o", usage=USAGE, finish="length")

    def filtered(self, body: dict[str, Any]) -> None:
        self.say("", finish="content_filter")

    def thinking(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "reasoning_content": "Let me "}), chunk({"reasoning_content": "see."}))
        self.send(chunk({"content": "Done."}), chunk({}, "stop"), usage_chunk(USAGE))
        self.finish()

    def tools(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": "Looking. "}))
        self.send(tool_delta(0, "", id="call_a", name="query"), tool_delta(0, '{"sql": '), tool_delta(0, '"select 1"}'))
        self.send(tool_delta(1, "not json", id="call_b", name="metric"), chunk({}, "tool_calls"), usage_chunk(USAGE))
        self.finish()

    def disconnect(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": "half a sen"}))
        self.connection.shutdown(socket.SHUT_RDWR)

    def short(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": "half a sen"}))
        self.wfile.write(b"0\r\n\r\n")  # a clean end of the transfer, but no finish reason and no [DONE]

    def garbage(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.raw("data: {this is not json\n\n")
        self.finish()

    def late_garbage(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": "half a sen"}))
        self.raw("data: {this is not json\n\n")
        self.finish()

    def page(self, body: dict[str, Any]) -> None:
        text = b"<html>welcome to the relay</html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def slow(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.send(chunk({"role": "assistant", "content": "one "}))
        time.sleep(1.5)
        self.send(chunk({"content": "two"}), chunk({}, "stop"))
        self.finish()

    def flaky(self, body: dict[str, Any]) -> None:
        if sum(1 for item in self.seen.bodies if item["model"] == "flaky") < 3:
            self.refuse(503)
        else:
            self.plain(body)

    def too_long(self, body: dict[str, Any]) -> None:
        self.refuse(400, code="context_length_exceeded", message="This model's maximum context length is 10 tokens.")

    def echo_key(self, body: dict[str, Any]) -> None:
        key = self.headers["authorization"].removeprefix("Bearer ")
        self.refuse(401, message=f"Incorrect API key provided: {key}")

    def stream_error(self, body: dict[str, Any]) -> None:
        self.open_stream()
        self.raw('data: {"error": {"message": "overloaded", "type": "server_error", "code": 529}}\n\n')
        self.finish()


@contextmanager
def serve() -> Iterator[tuple[str, Seen]]:
    """Runs the server; yields its base URL and what it has seen."""
    seen = Seen()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"seen": seen}))
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # type: ignore[method-assign]  # broken pipes are the point here
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
