"""The API of a real server: who may call, what it refuses and how, and a conversation through it."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from learngraph_server.handlers import LearnGraphHandler
from learngraph_server.limiting import RateLimiter
from learngraph_server.routes import ROUTES
from sqlalchemy import select

from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from learngraph_kernel.store.schema import audit
from tests.agent.world import call, run, say, script, turns, write
from tests.server.conftest import TOKEN, Server, make_server

REVENUE = turns([{"thinking": "hm"}, call("list_sources")], write(), run(), say("Revenue was [[v:Q1.r0.amount]]."))
NOWHERE = {
    "session": "s_" + "0" * 24,
    "message": "m_" + "0" * 24,
    "approval": "a_" + "0" * 32,
    "grant": "g_" + "0" * 24,
}
NOWHERE |= {"run": "r_" + "0" * 26, "sha256": "0" * 64}
BODIES: dict[str, Any] = {
    "ask": {"text": "Hello"},
    "decide": {"choice": "approve", "arguments_hash": "0" * 64},
}


def at(path: str) -> str:
    for name, value in NOWHERE.items():
        path = path.replace("{" + name + "}", value)
    return path


def new_session(api: httpx.Client, **body: Any) -> str:
    answer = api.post("/sessions", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def ended(server: Server, session: str, after: int = 0) -> list[dict[str, Any]]:
    return list(server.follow(session, after=after, until=("completed", "stopped", "failed", "interrupt")))


# Who


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_the_token_nothing_is_answered(server: Server, route: Any, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"token {token}"}
    answer = httpx.request(route.method, server.url + at(route.path), headers=headers, json=BODIES.get(route.name))
    assert answer.status_code == 403 and "learngraph" not in answer.text.lower().replace("/learngraph/", "")


@pytest.mark.parametrize("path", ["/sessions/{session}/events", "/runs/{run}/report", "/openapi.json", "/nothing"])
def test_streams_files_and_unknown_paths_need_the_token_too(server: Server, path: str) -> None:
    assert httpx.get(server.url + at(path)).status_code == 403


def test_every_handler_asks_who_calls_and_whether_they_may() -> None:
    from learngraph_server import files, handlers, stream

    found = 0
    for module in (files, handlers, stream):
        for made in vars(module).values():
            if isinstance(made, type) and issubclass(made, LearnGraphHandler) and made is not LearnGraphHandler:
                for method in ("get", "post", "put", "patch", "delete"):
                    function = made.__dict__.get(method)
                    if function is not None:
                        found += 1
                        assert hasattr(function, "__wrapped__"), f"{made.__name__}.{method} has no decorator"
    assert found >= 10


def test_a_browser_with_a_cookie_needs_xsrf(server: Server) -> None:
    with httpx.Client(base_url=server.url) as browser:
        home = f"http://127.0.0.1:{server.port}/base/"
        browser.get(f"{home}login?token={TOKEN}", follow_redirects=True)
        browser.get(f"{home}tree?token={TOKEN}", follow_redirects=True)
        assert browser.get("/sessions").status_code == 200
        assert browser.post("/sessions", json={}).status_code == 403
        token = browser.cookies.get("_xsrf")
        assert browser.post("/sessions", json={}, headers={"X-XSRFToken": token or ""}).status_code == 200


# What is refused


def test_what_does_not_exist_is_unknown_with_a_code(api: httpx.Client) -> None:
    for route in ROUTES:
        if "{" in route.path:
            answer = api.request(route.method, at(route.path), json=BODIES.get(route.name, {}) if route.body else None)
            error = answer.json()["error"]
            assert answer.status_code == 404, (route.name, answer.text)
            assert error["code"].startswith(("unknown_", "approval_")) and error["reason"] and error["remedy"], (
                route.name
            )


BAD_BODIES: list[tuple[str, bytes]] = [
    ("no json", b"{"),
    ("a list", b"[]"),
    ("a number", b"1"),
    ("NaN", b'{"title": NaN}'),
    ("invalid utf-8", b'{"title": "\xff"}'),
    ("deep", b'{"settings": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
    ("deep, but parsed", b'{"settings": ' + b'{"a":' * 900 + b"1" + b"}" * 901),
    ("a number that is infinite", b'{"settings": {"a": 1e999}}'),
    ("half a sign", b'{"title": "\\ud800"}'),
    ("NUL in a folder", b'{"workspace": "a\\u0000b"}'),
    ("an unknown field", b'{"title": "x", "owner": "user:root"}'),
    ("a wrong type", b'{"title": 7}'),
    ("a long title", json.dumps({"title": "x" * 400}).encode()),
    ("a folder outside", b'{"workspace": "../.."}'),
    ("an absolute folder", b'{"workspace": "/etc"}'),
    ("a file for a folder", b'{"workspace": "learngraph.toml"}'),
    ("settings that are none", b'{"settings": "x"}'),
]


@pytest.mark.parametrize(("name", "body"), BAD_BODIES)
def test_a_bad_body_is_refused_in_our_form(api: httpx.Client, name: str, body: bytes) -> None:
    before = len(api.get("/sessions", params={"limit": 500}).json()["sessions"])
    answer = api.post("/sessions", content=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == "bad_request" and error["reason"] and "Traceback" not in answer.text
    assert len(api.get("/sessions", params={"limit": 500}).json()["sessions"]) == before


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "x"}, {"limit": "-1"}, {"nothing": "1"}, {"limit": "9" * 30}]
)
def test_a_bad_query_is_refused(api: httpx.Client, query: dict[str, str]) -> None:
    assert api.get("/sessions", params=query).status_code == 400


@pytest.mark.parametrize(
    "path", ["/sessions?search=%ff", "/attachments?name=%ff", f"/sessions/{'s_' + 24 * '0'}/events?after=%ff"]
)
def test_a_query_that_is_no_utf8_is_refused_in_our_form(server: Server, api: httpx.Client, path: str) -> None:
    answer = api.request("POST" if path.startswith("/att") else "GET", server.url + path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request"), answer.text


def test_a_body_that_is_too_large_is_refused(api: httpx.Client) -> None:
    answer = api.post("/sessions", content=b'{"title": "' + b"x" * 5_000_000 + b'"}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_an_unknown_path_or_method_is_told_in_our_form(api: httpx.Client) -> None:
    assert api.get("/nothing").json()["error"]["code"] == "unknown_path"
    assert api.get("/sessions/S_upper").status_code == 404
    for method in ("PATCH", "PUT"):
        answer = api.request(method, "/sessions", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (405, "unknown_method")


UPLOAD = (
    f"POST /base/learngraph/api/v1/attachments?name=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: token {TOKEN}\r\n"
)


def test_a_file_that_says_it_is_too_large_is_refused_before_it_has_come(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(f"{UPLOAD}Content-Length: 1073741824\r\n\r\nx".encode())
        answer = raw.recv(65536)
    assert b" 413 " in answer.splitlines()[0] and b"body_too_large" in answer


def test_a_file_that_grows_too_large_is_cut_off(server: Server) -> None:
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(f"{UPLOAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        with pytest.raises(ConnectionError):
            raw.sendall(chunk * 1_000)


def test_refused_calls_are_on_record(server: Server, api: httpx.Client) -> None:
    session = "s_" + "7" * 24
    assert api.get(f"/sessions/{session}").status_code == 404
    with Store.open(Home(server.home)) as store:
        records = store.rows(select(audit).where(audit.c.action == "call.refused"))
    assert any(session in record["target"] and "unknown_session" in str(record["details"]) for record in records)


def test_a_runtime_that_is_named_wrongly_is_unavailable_with_a_remedy(tmp_path: Path) -> None:
    server = make_server(tmp_path, options=["--LearnGraphServer.runtime_factory=json:nothing"])
    server.start()
    try:
        with server.client() as api:
            answer = api.get("/sessions")
            assert answer.status_code == 503 and "runtime_factory" in answer.json()["error"]["reason"]
    finally:
        server.stop()


def test_who_calls_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    server = make_server(tmp_path, options=["--LearnGraphServer.requests_per_minute=8"])
    server.start()
    try:
        with server.client() as api:
            answers = [api.get("/sessions") for _ in range(4)]
            assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
            assert (
                answers[-1].json()["error"]["code"] == "too_many_calls" and int(answers[-1].headers["retry-after"]) > 0
            )
    finally:
        server.stop()


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    limiter = RateLimiter(60, clock=lambda: now[0])
    assert [limiter.wait_s("ana") for _ in range(15)] == [0.0] * 15
    assert limiter.wait_s("ana") > 0 and limiter.wait_s("bo") == 0
    now[0] += 1.0
    assert limiter.wait_s("ana") == 0 and limiter.wait_s("ana") > 0


# A conversation


def test_a_question_is_answered_over_http_and_its_report_is_boxed(server: Server, api: httpx.Client) -> None:
    script(server.root, REVENUE)
    session = new_session(api, title="Revenue")
    asked = api.post(f"/sessions/{session}/messages", json={"text": "What was the revenue?"})
    assert asked.status_code == 200 and asked.json()["role"] == "user"
    events = ended(server, session)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    end = events[-1]["data"]
    assert end["shown"] == "Revenue was 1,000.50."
    shown = api.get(f"/sessions/{session}").json()
    assert [message["status"] for message in shown["messages"]] == ["completed", "completed"]
    assert shown["workspace"] == "."
    run = api.get(f"/runs/{end['run_id']}").json()
    assert run["origin"] == "chat" and "workspace" not in run and str(server.root) not in json.dumps(run)
    assert api.post(f"/runs/{end['run_id']}/verify", json={}).json()["ok"] is True
    assert end["run_id"] in [item["run_id"] for item in api.get("/runs").json()["runs"]]
    document = api.get(f"/sessions/{session}/artifacts/{end['report']}")
    assert document.status_code == 200 and document.headers["content-disposition"].startswith("attachment")
    other = new_session(api)
    assert api.get(f"/sessions/{other}/artifacts/{end['report']}").status_code == 404
    assert api.get(f"/runs/{end['run_id']}/report").json()["error"]["code"] == "unknown_report"


def test_a_report_page_is_in_a_sandbox(server: Server, api: httpx.Client) -> None:
    report = write("answers/r.ipynb", "import learngraph_kernel as lg\nlg.report('Week of [[i:x]]')\nlg.output(a=1)")
    script(server.root, turns(report, run("answers/r.ipynb"), say("Done.")))
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "Report"})
    end = ended(server, session)[-1]["data"]
    page = api.get(f"/runs/{end['run_id']}/report")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("sandbox;") and "default-src 'none'" in policy and "script" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"


def test_a_stream_that_was_cut_goes_on_where_it_was(server: Server, api: httpx.Client) -> None:
    script(server.root, turns([{"text": "one two three four five six seven"}], when="slowly") + REVENUE, chunk=4)
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "What was the revenue?"})
    got: list[dict[str, Any]] = []
    while not got or got[-1]["type"] != "completed":
        after = got[-1]["seq"] if got else 0
        for number, event in enumerate(server.follow(session, after=after, until=("completed",))):
            got.append(event)
            if number == 2:
                break  # the connection is gone
    assert [event["seq"] for event in got] == list(range(1, len(got) + 1))
    assert got == ended(server, session)


def test_a_silent_stream_says_that_it_is_alive_and_a_wrong_number_is_refused(server: Server, api: httpx.Client) -> None:
    session = new_session(api)
    with server.client() as client, client.stream("GET", f"/sessions/{session}/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        assert next(line for line in lines if line) == ": alive"
    assert api.get(f"/sessions/{session}/events", headers={"Last-Event-ID": "x"}).status_code == 400


def test_an_answer_goes_on_when_nobody_looks(server: Server, api: httpx.Client) -> None:
    script(server.root, turns([{"delay_ms": 300}, {"text": "Done without you."}]))
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "slow"})
    for event in server.follow(session):
        if event["type"] == "step_started":
            break
    deadline = time.monotonic() + 20
    while api.get(f"/sessions/{session}").json()["messages"][-1]["status"] != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_approval_is_decided_over_http_once(server: Server, api: httpx.Client) -> None:
    script(
        server.root,
        turns(call("ask_user", title="?", fields=[{"name": "a", "question": "b", "kind": "text"}]), say("Fine.")),
    )
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "ask me"})
    ended(server, session)
    mine = [item for item in api.get("/approvals").json()["approvals"] if item["session_id"] == session]
    (approval,) = mine
    target = f"/approvals/{approval['id']}"
    assert api.post(target, json={"choice": "approve", "arguments_hash": "0" * 64}).status_code in (400, 409)
    body = {"choice": "respond", "arguments_hash": approval["arguments_hash"], "text": "seven"}
    assert api.post(target, json=body).status_code == 200
    assert api.post(target, json=body).status_code == 409
    events = list(server.follow(session, until=("completed",)))
    assert [event["data"]["data"]["answer"] for event in events if event["type"] == "tool_result"] == ["seven"]


def test_a_file_is_brought_and_goes_with_a_question(server: Server, api: httpx.Client) -> None:
    script(server.root, [{"match": {"conversation": "the note says tea"}, "steps": [say("It says tea.")]}])
    assert httpx.post(server.url + "/attachments?name=a", content=b"x").status_code == 403
    assert api.post("/attachments", content=b"x").status_code == 400
    kept = api.post("/attachments", params={"name": "note.txt"}, content=b"the note says tea").json()
    session = new_session(api)
    unknown = {**kept, "sha256": "0" * 64}
    refused = api.post(f"/sessions/{session}/messages", json={"text": "Read", "attachments": [unknown]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_attachment")
    assert api.post(f"/sessions/{session}/messages", json={"text": "Read", "attachments": [kept]}).status_code == 200
    assert ended(server, session)[-1]["data"]["shown"] == "It says tea."


def test_a_running_turn_refuses_another_and_is_stopped(server: Server, api: httpx.Client) -> None:
    script(server.root, turns([{"text": "begin"}, {"delay_ms": 60_000}, {"text": "never"}]))
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "hang"})
    for event in server.follow(session):
        if event["type"] == "text_delta":
            break
    busy = api.post(f"/sessions/{session}/messages", json={"text": "more"})
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "turn_running")
    began = time.monotonic()
    assert api.post(f"/sessions/{session}/stop", json={}).json() == {"stopped": True}
    assert time.monotonic() - began < 1.5
    assert ended(server, session)[-1]["type"] == "stopped"


def test_title_branch_versions_and_deletion(server: Server, api: httpx.Client) -> None:
    script(server.root, [{"match": {}, "steps": [say("Yes.")]}])
    session = new_session(api)
    api.post(f"/sessions/{session}/messages", json={"text": "one"})
    ended(server, session)
    first = api.get(f"/sessions/{session}").json()["messages"]
    assert api.patch(f"/sessions/{session}", json={"title": "A new name"}).json()["title"] == "A new name"
    assert session in [item["id"] for item in api.get("/sessions", params={"search": "new NAME"}).json()["sessions"]]
    edited = api.post(f"/sessions/{session}/messages", json={"text": "one, edited", "parent": ""}).json()
    versions = api.get(f"/sessions/{session}/messages/{edited['id']}/versions").json()["messages"]
    assert [message["id"] for message in versions] == [first[0]["id"], edited["id"]]
    deadline = time.monotonic() + 20
    while api.get(f"/sessions/{session}").json()["messages"][-1]["status"] != "completed":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert api.delete(f"/sessions/{session}").status_code == 200
    assert api.get(f"/sessions/{session}").status_code == 404


# After a kill


def test_a_killed_server_leaves_nothing_lost_and_goes_on(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    script(
        server.root,
        turns(write(), [{"text": "thinking"}, {"delay_ms": 4_000}, run()], say("Revenue was [[v:Q1.r0.amount]].")),
    )
    server.start()
    try:
        with server.client() as api:
            session = new_session(api)
            api.post(f"/sessions/{session}/messages", json={"text": "What was the revenue?"})
            seen = []
            for event in server.follow(session):
                seen.append(event)
                if event["type"] == "text_delta":
                    break
        server.kill()
        server.start()
        with server.client() as api:
            messages = api.get(f"/sessions/{session}").json()["messages"]
            assert [message["status"] for message in messages] == ["completed", "interrupted"]
            events = ended(server, session)
            assert events[: len(seen)] == seen and events[-1]["data"]["resumable"] is True
            assert api.post(f"/sessions/{session}/resume", json={}).json() == {"resumed": True}
            events = list(server.follow(session, until=("completed", "failed")))
            assert events[-1]["data"].get("shown") == "Revenue was 1,000.50.", events[-1]
            tools = [event["data"]["tool"] for event in events if event["type"] == "tool_call"]
            assert tools == ["write_notebook", "run_notebook"]
    finally:
        server.stop()


def test_the_description_names_every_call_and_nothing_else(api: httpx.Client) -> None:
    document = api.get("/openapi.json").json()
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    beside = {
        "/sessions/{session}/events",
        "/runs/{run}/report",
        "/sessions/{session}/artifacts/{sha256}",
        "/openapi.json",
    }
    beside_routes = {("GET", path) for path in beside} | {("POST", "/attachments")}
    assert described == {(route.method, route.path) for route in ROUTES} | beside_routes
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))
