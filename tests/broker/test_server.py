"""What a kernel may try on its broker, and what it gets: real sockets, a real store, no engine."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from learngraph_kernel.broker import protocol
from learngraph_kernel.broker.server import BrokerServer
from learngraph_kernel.broker.session import RunSession
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.data.workspace import find_workspace
from learngraph_kernel.notebook.client import CallRefused, Connection, MessageTooLong
from learngraph_kernel.runs.declaration import Declaration
from learngraph_kernel.runs.lifecycle import begin_run, new_state
from learngraph_kernel.runs.plan import RunPlan
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home

SECRET = "s" * 32


@dataclass
class Broker:
    """A broker in a thread of its own, as a kernel sees it."""

    path: Path
    session: RunSession
    store: Store
    run: str
    loop: asyncio.AbstractEventLoop
    done: asyncio.Event

    def line(self, data: bytes) -> list[dict[str, Any]]:
        """Sends bytes on a new connection, says no more, and reads every answer until the broker closes."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
            raw.settimeout(20)
            raw.connect(str(self.path))
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: raw.recv(1 << 16), b""))
        return [json.loads(line) for line in received.splitlines()]

    def connect(self) -> Connection:
        return Connection(str(self.path), SECRET)


@pytest.fixture
def broker(workspace: Path, home: Path, tmp_path: Path) -> Iterator[Broker]:
    found = find_workspace(workspace)
    plan = RunPlan(nbformat.v4.new_notebook(), "nb.ipynb", workspace, found, "python3", Declaration(), {}, formal=True)
    loop, done, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    with Store.open(Home(home)) as store:
        run = begin_run(store, plan, "user:ana")
        ticket = Ticket(SECRET, run, frozenset({"shop"}), 20, time.monotonic() + 60)
        session = RunSession(new_state(store, Home(home), plan, run), store.ledger, ticket, actor="user:ana")
        session.begin_cell("c0")
        broker = Broker(tmp_path / "broker", session, store, run, loop, done)

        async def serve() -> None:
            async with BrokerServer(session, broker.path):
                ready.set()
                await done.wait()

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        assert ready.wait(10)
        yield broker
        loop.call_soon_threadsafe(done.set)
        thread.join()
        loop.close()
        found.close()


def hello(ticket: str = SECRET) -> bytes:
    return protocol.encode_message(protocol.request(1, "hello", {"ticket": ticket}))


LOG = protocol.encode_message(protocol.request(2, "log", {"message": "x", "fields": {}}))
REFUSED: list[tuple[str, bytes, list[Any]]] = [
    ("a wrong ticket", hello("t" * 32) + LOG, ["ticket_refused"]),
    ("an empty ticket", hello("") + LOG, ["ticket_refused"]),
    ("a ticket that is no text", hello(["s"]) + LOG, ["ticket_refused"]),  # type: ignore[arg-type]
    ("a ticket beyond ASCII", hello("名") + LOG, ["ticket_refused"]),
    ("no hello", LOG, ["ticket_refused"]),
    ("not JSON", b"hello\n" + hello(), [protocol.PARSE_ERROR]),
    ("not UTF-8", b"\xff\xfe\n" + hello(), [protocol.PARSE_ERROR]),
    ("JSON that nests too deeply", b"[" * 200_000 + b"\n", [protocol.PARSE_ERROR]),
    ("a list", b"[1]\n" + hello(), [protocol.INVALID_REQUEST]),
    ("no method", b'{"id": 1}\n' + hello(), [protocol.INVALID_REQUEST]),
    ("a method that is no text", b'{"id": 1, "method": 7}\n', [protocol.INVALID_REQUEST]),
    ("params that are a list", b'{"id": 1, "method": "hello", "params": []}\n' + LOG, [protocol.INVALID_PARAMS]),
    ("nothing", b"", []),
]


@pytest.mark.parametrize(("data", "codes"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_no_call_under_the_ticket_is_refused_and_the_connection_closed(
    broker: Broker, data: bytes, codes: list[Any]
) -> None:
    errors = [answer["error"] for answer in broker.line(data)]
    assert [error.get("data", {}).get("code", error["code"]) for error in errors] == codes
    assert not list(broker.store.ledger.events(broker.run, types=["call.started"]))
    assert broker.connect().call("log", {"message": "still there", "fields": {}}) == {}


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("lookup.sources", "unknown_method"),
        ("lookup.tables", "unknown_method"),
        ("lookup.runs", "unknown_method"),
        ("begin_cell", "unknown_method"),
        ("close", "unknown_method"),
        ("__class__", "unknown_method"),
        ("", "unknown_method"),
    ],
)
def test_a_run_offers_its_methods_and_nothing_else(broker: Broker, method: str, code: str) -> None:
    with pytest.raises(CallRefused) as refused:
        broker.connect().call(method, {"source": "shop"})
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("query", {}, "bad_call"),
        ("query", {"source": 7, "sql": "select 1"}, "bad_call"),
        ("query", {"source": "other", "sql": "select 1"}, "ticket_refused"),
        ("query", {"source": "shop", "sql": "select 1", "parameters": [1]}, "bind_error"),
        ("query", {"source": "shop", "sql": "select 1", "parameters": {"x": {"$decimal": "no"}}}, "broker_fault"),
        ("query", {"source": "shop", "sql": "select 1", "parameters": {"x": {"$what": "no"}}}, "bind_error"),
        ("cell", {"ref": "Q9.r0.a"}, "bad_call"),
        ("cell", {"ref": "../../etc/passwd"}, "bad_call"),
        ("metrics", {"set": "shop", "bindings": {"orders": ["Q1"]}}, "broker_fault"),
        ("metrics", {"set": "shop", "bindings": "Q1"}, "broker_fault"),
        ("output", {"fields": {"a": 1}}, "broker_fault"),
        ("output", {"fields": [1]}, "broker_fault"),
        ("ask", {"question": "?", "context": [1]}, "broker_fault"),
        ("validate", {"value": 1, "schema": 7}, "bad_call"),
        ("card", {"component": "<script>", "data": {}}, "bad_call"),
        ("log", {"message": ""}, "bad_call"),
    ],
)
def test_wrong_arguments_are_refused_and_recorded_whether_foreseen_or_not(
    broker: Broker, method: str, arguments: dict[str, Any], code: str
) -> None:
    connection = broker.connect()
    with pytest.raises(CallRefused) as refused:
        connection.call(method, arguments)
    assert refused.value.code == code
    assert len(list(broker.store.ledger.events(broker.run, types=["call.failed"]))) == 1
    assert connection.call("log", {"message": "still there", "fields": {}}) == {}


def test_the_kernel_cannot_say_which_cell_it_calls_from(broker: Broker) -> None:
    broker.connect().call("log", {"message": "x", "fields": {}, "at": {"cell": "another", "execution": 7}})
    (event,) = broker.store.ledger.events(broker.run, types=["call.completed"])
    assert (event.data["cell"], event.data["position"]) == ("c0", 0)


def test_between_cells_and_after_the_end_nothing_is_taken(broker: Broker) -> None:
    connection = broker.connect()
    broker.session.end_cell()
    with pytest.raises(CallRefused, match="no cell was running"):
        connection.call("log", {"message": "x", "fields": {}})
    broker.session.begin_cell("c1")
    broker.session.close()
    with pytest.raises(CallRefused, match="no cell was running"):
        connection.call("log", {"message": "x", "fields": {}})
    assert not list(broker.store.ledger.events(broker.run, types=["call.started"]))


def test_a_connection_held_open_is_closed_with_the_run(broker: Broker) -> None:
    connection = broker.connect()
    broker.loop.call_soon_threadsafe(broker.done.set)
    deadline = time.monotonic() + 10
    while broker.path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(Exception, match="closed the connection"):
        connection.call("log", {"message": "x", "fields": {}})
    with pytest.raises(Exception, match="does not answer"):
        broker.connect()


def test_a_message_that_is_too_long_is_refused_before_it_is_sent(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = broker.connect()
    monkeypatch.setattr(protocol, "MAX_MESSAGE_BYTES", 1000)
    with pytest.raises(MessageTooLong):
        connection.call("log", {"message": "x" * 1000, "fields": {}})
    assert connection.call("log", {"message": "x", "fields": {}}) == {}


def test_the_calls_of_a_ticket_are_counted(broker: Broker) -> None:
    connection = broker.connect()
    for _ in range(20):
        connection.call("log", {"message": "x", "fields": {}})
    with pytest.raises(CallRefused, match="used its 20 calls"):
        connection.call("log", {"message": "x", "fields": {}})


def test_calls_of_several_threads_are_answered_one_after_the_other(broker: Broker) -> None:
    def call() -> None:
        connection = broker.connect()
        for _ in range(4):
            connection.call("log", {"message": "x", "fields": {}})

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    places = [event.data["position"] for event in broker.store.ledger.events(broker.run, types=["call.completed"])]
    assert places == list(range(16))


def test_the_socket_is_its_owners_alone(broker: Broker) -> None:
    assert broker.path.stat().st_mode & 0o777 == 0o600
