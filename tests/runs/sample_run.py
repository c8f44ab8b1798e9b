"""One small run, recorded as the engine records it: a notebook, a query, a metric, a report, a result, an artifact."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from learngraph_kernel.canonical import canonical_json
from learngraph_kernel.runs.content import content_of_run
from learngraph_kernel.runs.keys import Signer
from learngraph_kernel.store.database import RunRecord, Store

SIGNER = Signer.of(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
RUN = "r_01JSAMP1E00000000000000001"
OTHER_RUN = "r_01JSAMP1E00000000000000002"
ACTOR = "user:ana"
SNAPSHOT = b"ARROW1" + bytes(range(48))
NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"id": "intro", "cell_type": "markdown", "metadata": {}, "source": "# Flights"},
        {
            "id": "inj-1",
            "cell_type": "code",
            "metadata": {"tags": ["injected-parameters"]},
            "source": "week = 7",
            "execution_count": 1,
            "outputs": [],
        },
        {
            "id": "count",
            "cell_type": "code",
            "metadata": {},
            "source": ["week = lg.query('flights', 'select 1')\n", "week"],
            "execution_count": 2,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "6077 flights\n"}],
        },
    ],
}


def record_run(store: Store, run_id: str = RUN, *, week: int = 7, closing: str = "run.completed") -> None:
    """Events and artifacts of one run, up to and including its closing event."""

    def log(type: str, data: dict[str, Any]) -> None:
        store.ledger.append(run_id, type, data, actor=ACTOR)

    with store.unit_of_work(ACTOR) as work:
        work.insert_run(RunRecord(run_id, ACTOR, dt.datetime(2026, 12, 1, tzinfo=dt.UTC), formal=True, title="Flights"))
    put = store.artifacts.put
    notebook = canonical_json(NOTEBOOK)
    report = canonical_json(
        {"format": "learngraph-report-v1", "language": "en", "source": "[[m:flights]]", "run": run_id}
    )
    html = f"<!doctype html><html lang=en><title>Flights</title><p>6,077 flights in {run_id}".encode()
    result = canonical_json({"flights": 6077})
    snapshot = put(SNAPSHOT + bytes([week]))
    long_answer = store.artifacts.put_json({"ref": "Q2", "source": "flights", "sql": "select 2", "artifact": snapshot})
    log(
        "run.started",
        {
            "notebook": "flights.ipynb",
            "source": put(b"the notebook as it will run"),
            "parameters": {"week": week},
            "formal": True,
            "origin": "notebook",
            "isolation": "host",
            "image": None,
            "environment": {"python": "3.11"},
        },
    )
    log("cell.started", {"cell": "count", "index": 2})
    call = {"cell": "count", "position": 0, "method": "query", "arguments_hash": "ab" * 32, "effect": "read"}
    log("call.started", call)
    answer = {"ref": "Q1", "source": "flights", "sql": "select 1", "artifact": snapshot, "row_count": 1}
    log("call.completed", {**call, "arguments": {"sql": "select 1"}, "result": answer, "artifacts": [snapshot]})
    call = {**call, "position": 1}
    log("call.completed", {**call, "arguments": {}, "result": {"$artifact": long_answer}, "artifacts": [snapshot]})
    metric = {
        "set": "weekly",
        "name": "flights",
        "version": "1.0.0",
        "state": "ok",
        "value": {"$decimal": "6077"},
        "also": None,
    }
    log(
        "call.completed", {**call, "position": 2, "method": "metrics", "arguments": {}, "result": {"metrics": [metric]}}
    )
    log("cell.completed", {"cell": "count", "index": 2, "outputs": put(b"[]")})
    content = content_of_run(
        (event.as_json() for event in store.ledger.events(run_id)),
        json.loads(notebook),
        report=report,
        result=result,
        read_json=lambda sha: json.loads(store.artifacts.read(sha)),
    )
    log(
        closing,
        {
            "status": closing.removeprefix("run."),
            "tier": "formal",
            "violations": [],
            "content": store.artifacts.put_json(content),
            "notebook": put(notebook),
            "report": put(report),
            "report_html": put(html),
            "result": put(result),
        },
    )
    with store.unit_of_work(ACTOR) as work:
        work.update_run(run_id, status="completed" if closing == "run.completed" else "failed", tier="formal")
