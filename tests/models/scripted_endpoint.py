"""An OpenAI-compatible HTTP server whose model plays a script: what a scripted conversation says goes over the wire.

As strict as the strictest endpoint: a field that it does not know is refused with 400, and so is a key that is not its.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.models.events import (
    NormalizedEvent,
    ResponseCompleted,
    ResponseFailed,
    TextDelta,
    ThinkingSummaryDelta,
    ToolCallDelta,
    UsageUpdated,
)
from learngraph_kernel.models.messages import Message, NormalizedRequest, TextPart, Tool, ToolCall, ToolResult
from learngraph_kernel.models.scripted import ScriptedModel, read_script
from tests.models.endpoint import chunk, tool_delta, usage_chunk

KEY = "sk-scripted-endpoint"
FIELDS = frozenset({"model", "messages", "stream", "stream_options", "tools", "temperature", "max_tokens"})
ROLES = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


@dataclass
class Served:
    """A running server.

    Attributes:
        url: its base URL.
        scripts: model name → the script it plays.
        fields: what it takes; anything else is refused. key_header: how it wants the key.
        requests: bodies that were answered. hung_up: set when a client went away in the middle of an answer.
    """

    url: str = ""
    scripts: dict[str, ScriptedModel] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    hung_up: Event = field(default_factory=Event)
    fields: frozenset[str] = FIELDS
    key_header: str = "authorization"

    def play(self, name: str, script: Path) -> None:
        """Serves a script as a model of this name."""
        self.scripts[name] = ScriptedModel(read_script(script))


def message_of(body: Mapping[str, Any]) -> Message:
    """A chat-completion message as ours."""
    role = ROLES[body["role"]]
    if role == "tool":
        return Message("tool", (ToolResult(body["tool_call_id"], body["content"]),))
    parts: list[Any] = [TextPart(body["content"])] if body.get("content") else []
    for call in body.get("tool_calls", ()):
        parts.append(ToolCall.parse(call["id"], call["function"]["name"], call["function"]["arguments"]))
    return Message(role, tuple(parts))  # type: ignore[arg-type]


def request_of(body: Mapping[str, Any]) -> NormalizedRequest:
    """A chat-completion request as ours; tool results that follow one another are one message, as they were."""
    messages: list[Message] = []
    for each in body["messages"]:
        message = message_of(each)
        if message.role == "tool" and messages and messages[-1].role == "tool":
            messages[-1] = Message("tool", messages[-1].parts + message.parts)
        else:
            messages.append(message)
    tools = [each["function"] for each in body.get("tools", ())]
    offered = tuple(Tool(tool["name"], tool["description"], tool["parameters"]) for tool in tools)
    return NormalizedRequest(body["model"], tuple(messages), offered)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: Served

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model"} for name in self.served.scripts]
        self._answer(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        unknown = sorted(set(body) - self.served.fields)
        if not self._knows_the_key():
            self._refuse(401, "the key is not ours")
        elif self.path != "/v1/chat/completions" or body.get("model") not in self.served.scripts:
            self._refuse(404, "no such model")
        elif unknown:
            self._refuse(400, f"unknown field {unknown[0]}")
        else:
            self.served.requests.append(body)
            try:
                asyncio.run(self._play(body))
            except OSError:
                self.served.hung_up.set()
                self.close_connection = True

    def _knows_the_key(self) -> bool:
        """One header, and only that one."""
        wanted = {"authorization": f"Bearer {KEY}", "x-api-key": KEY}[self.served.key_header]
        sent = {name: self.headers.get(name) for name in ("authorization", "x-api-key")}
        return {name: value for name, value in sent.items() if value is not None} == {self.served.key_header: wanted}

    def _answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.send_header("x-request-id", f"req-{len(self.served.requests)}")
        self.end_headers()
        self.wfile.write(text)

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    async def _play(self, body: Mapping[str, Any]) -> None:
        events = self.served.scripts[body["model"]].invoke(request_of(body))
        self._begun = self._over = False
        counted: list[dict[str, Any]] = []
        try:
            async for event in self._watched(events):
                if isinstance(event, ResponseFailed):
                    self._fail(event)
                    return
                if isinstance(event, UsageUpdated):
                    counted = chunks_of(event)  # comes after the finish
                    continue
                for item in chunks_of(event):
                    self._send(f"data: {json.dumps(item)}\n\n")
        except LearnGraphError as error:  # the script has no rule for this: a test's mistake, told as such
            self._refuse(422, error.what)
            return
        for item in counted:
            self._send(f"data: {json.dumps(item)}\n\n")
        self._send("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    async def _watched(self, events: AsyncIterator[NormalizedEvent]) -> AsyncIterator[NormalizedEvent]:
        """The events; while the script waits, whether the client is still there. Raises ConnectionError."""
        loop = asyncio.get_running_loop()
        gone = loop.run_in_executor(None, self._wait_for_the_end)
        stream = aiter(events)
        while True:
            following = asyncio.ensure_future(anext(stream, None))
            await asyncio.wait({following, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                raise ConnectionError("the client went away")
            if following.result() is None:
                self._over = True
                return
            yield following.result()  # type: ignore[misc]

    def _wait_for_the_end(self) -> None:
        """Returns when the client has closed the connection, or the answer is over."""
        while not self._over:
            readable, _, _ = select.select([self.connection], [], [], 0.05)
            if readable:
                try:
                    if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                        return
                except OSError:
                    return

    def _fail(self, failed: ResponseFailed) -> None:
        self._over = True
        if failed.status is not None and not self._begun:
            self._refuse(failed.status, failed.reason)
        elif failed.code == "model_garbled":
            self._send("data: {this is not json\n\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def _send(self, text: str) -> None:
        if not self._begun:
            self._begun = True
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.send_header("x-request-id", f"req-{len(self.served.requests)}")
            self.end_headers()
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def chunks_of(event: NormalizedEvent) -> list[dict[str, Any]]:
    """An event of ours as chunks of a chat completion."""
    match event:
        case TextDelta():
            return [chunk({"content": event.text})]
        case ThinkingSummaryDelta():
            return [chunk({"reasoning_content": event.text})]
        case ToolCallDelta():
            return [tool_delta(event.index, event.arguments, id=event.id, name=event.name)]
        case UsageUpdated():
            usage = event.usage
            prompt = usage.input + usage.cached + usage.cache_creation
            counted = {"prompt_tokens": prompt, "completion_tokens": usage.output}
            details = {"prompt_tokens_details": {"cached_tokens": usage.cached}}
            return [usage_chunk({**counted, "total_tokens": prompt + usage.output, **details})]
        case ResponseCompleted():
            return [chunk({}, event.finish)]
    return []


@contextmanager
def serve_scripts() -> Iterator[Served]:
    """Runs the server."""
    served = Served()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"served": served}))
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
