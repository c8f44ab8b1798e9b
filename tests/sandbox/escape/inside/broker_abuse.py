"""Broker and ticket abuse: what a kernel may say on the socket it was given, and what it makes of others.

In the open world the socket belongs to a broker that checks nothing (`brokers.open_broker`).
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

from probing import PARAMETERS, PROBES, Outcome, Probe, judge, probe

BROKER = "broker and ticket"
LOG = ("log", {"message": "x", "fields": {}})


def _says(path: str, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the broker answers, up to where it closes the connection."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(8)
        client.connect(path)
        messages = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(calls)
        ]
        with contextlib.suppress(BrokenPipeError):  # it has refused already; what it said can still be read
            client.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(1 << 16):
            received += chunk
    return [json.loads(line) for line in received.splitlines()]


def _last_works(*calls: tuple[str, dict[str, Any]], path: str = "broker") -> Outcome:
    """Whether the last call was answered with a result."""
    answers = _says(f"{PARAMETERS['run']}/{path}", *calls)
    if not answers:
        return "broken", "no answer"
    last = answers[-1]
    refused = last.get("error", {}).get("data", {}).get("code") or str(last.get("error"))
    return judge(
        len(answers) == len(calls) and "result" in last, f"answered {last['result']}" if "result" in last else refused
    )


def _hello(**params: Any) -> tuple[str, dict[str, Any]]:
    return "hello", params


def _true_hello(**more: Any) -> tuple[str, dict[str, Any]]:
    return _hello(ticket=PARAMETERS["ticket"], **more)


def _query(sql: str, source: str = "shop") -> tuple[str, dict[str, Any]]:
    return "query", {"source": source, "sql": sql}


def _case(name: str, attempt: Any) -> None:
    PROBES.append(Probe(name, BROKER, attempt))


WIDER = {"sources": None, "max_calls": 10**9, "expires_at": 1e18}
_case("no-hello", lambda: _last_works(LOG))
_case("guessed-ticket", lambda: _last_works(_hello(ticket="0" * 32), LOG))
_case("empty-ticket", lambda: _last_works(_hello(ticket=""), LOG))
_case("ticket-of-another-run", lambda: _last_works(_hello(ticket=PARAMETERS["other ticket"]), LOG))
_case("expired-ticket", lambda: _last_works(_true_hello(), LOG, path="expired"))
_case("source-not-on-the-ticket", lambda: _last_works(_true_hello(), _query("select 1 as a", "secrets")))
_case("wider-ticket-asked-for", lambda: _last_works(_true_hello(**WIDER), _query("select 1 as a", "secrets")))
_case("runtime-methods", lambda: _last_works(_true_hello(), ("lookup.runs", {})))
_case("cell-chosen-by-the-kernel", lambda: _last_works(_true_hello(), ("begin_cell", {"cell": "c9"})))
_case(
    "file-through-a-query",
    lambda: _last_works(_true_hello(), _query(f"select content from read_text('{PARAMETERS['secret']}')")),
)
_case(
    "file-through-replacement-scan", lambda: _last_works(_true_hello(), _query(f"select * from '{PARAMETERS['csv']}'"))
)
_case("write-through-a-query", lambda: _last_works(_true_hello(), _query("create table escape(a integer)")))
_case("second-statement", lambda: _last_works(_true_hello(), _query("select 1 as a; drop table if exists none")))
_case(
    "attach-through-a-query", lambda: _last_works(_true_hello(), _query(f"attach '{PARAMETERS['run']}/x.duckdb' as x"))
)
_case("settings-through-a-query", lambda: _last_works(_true_hello(), _query("select name from duckdb_settings()")))
_case("more-calls-than-the-budget", lambda: _last_works(_true_hello(), *[LOG] * 60))


@probe(BROKER)
def broker_of_another_run() -> Outcome:
    answers = _says(f"{PARAMETERS['other run']}/broker", _hello(ticket=PARAMETERS["other ticket"]), LOG)
    return judge(len(answers) == 2 and "result" in answers[1], "answered")
