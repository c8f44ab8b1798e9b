from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from learngraph_kernel.errors import BadInput
from learngraph_kernel.store.artifacts import CHUNK
from learngraph_kernel.store.database import ProcessIdentity, Store, utcnow
from learngraph_kernel.store.errors import ArtifactCorrupt
from learngraph_kernel.store.garbage import GRACE, collect, garbage
from learngraph_kernel.store.schema import audit

NewRun = Callable[..., str]
DAYS_AGO = dt.timedelta(days=3)


def put_old(store: Store, data: bytes) -> str:
    """An artifact that was stored three days ago."""
    name = store.artifacts.put(data)
    age(store.artifacts.path(name))
    return name


def age(path: Path) -> None:
    moment = (utcnow() - DAYS_AGO).timestamp()
    os.utime(path, (moment, moment))


def planned(store: Store, grace: dt.timedelta = GRACE) -> set[str]:
    return {candidate.sha256 for candidate in garbage(store, grace=grace).candidates}


def test_only_what_nothing_names_goes(store: Store, new_run: NewRun) -> None:
    names = {data: put_old(store, data) for data in (b"event", b"seal", b"parameter", b"outbox", b"audit", b"nothing")}
    run = new_run(store, seal=names[b"seal"], parameters={"upload": names[b"parameter"]}, status="completed")
    with store.unit_of_work("u") as work:
        work.append(run, "call.completed", {"result": {"$artifact": names[b"event"]}})
        work.emit("x", run, {"body": f"sha256:{names[b'outbox']}"})
        work.audit("x", run, {"body": [names[b"audit"]]})
    plan = garbage(store)
    assert [candidate.sha256 for candidate in plan.candidates] == [names[b"nothing"]]
    assert (plan.bytes, plan.kept, plan.young) == (len(b"nothing"), 5, 0)
    done = collect(store, plan, actor="user:ana")
    assert (done.removed, done.bytes) == ((names[b"nothing"],), len(b"nothing"))
    assert set(store.artifacts.iterate()) == set(names.values()) - {names[b"nothing"]}
    assert store.check() == []


def test_a_name_in_an_event_counts_even_if_the_artifact_came_later(store: Store, new_run: NewRun) -> None:
    run = new_run(store, status="completed")
    later = store.artifacts.put(b"later")
    store.artifacts.path(later).unlink()
    store.ledger.append(run, "a", {"will_be": later}, actor="u")
    assert put_old(store, b"later") == later
    assert planned(store) == set()


def test_json_artifacts_keep_what_they_name_however_deep(store: Store, new_run: NewRun) -> None:
    run = new_run(store, status="completed")
    leaf = put_old(store, b"ARROW1 snapshot")
    middle = put_old(
        store, json.dumps({"citations": [{"opening": {"queries": [{"artifact": leaf}]}}]}, indent=1).encode()
    )
    root = put_old(store, json.dumps([f"urn:sha256:{middle}"]).encode())
    unnamed = put_old(store, json.dumps({"names": root}).encode())
    store.ledger.append(run, "run.completed", {"report": root}, actor="u")
    assert planned(store) == {unnamed}


def test_documents_that_name_each_other_but_nothing_else_go(store: Store) -> None:
    one = put_old(store, b"one")
    two = put_old(store, json.dumps({"see": one}).encode())
    assert planned(store) == {one, two}


@pytest.mark.parametrize("shift", range(0, 90, 7))
def test_a_name_across_the_border_of_two_chunks_is_seen(store: Store, new_run: NewRun, shift: int) -> None:
    leaf = put_old(store, b"leaf")
    document = put_old(store, b'["' + b"." * (CHUNK - shift) + b'","' + leaf.encode() + b'"]')
    store.ledger.append(new_run(store, status="completed"), "a", {"document": document}, actor="u")
    assert planned(store) == set()


def test_a_damaged_document_stops_the_collector(store: Store, new_run: NewRun) -> None:
    document = put_old(store, b'{"names": "something"}')
    path = store.artifacts.path(document)
    path.chmod(0o644)
    path.write_bytes(b'{"names": "SOMETHING"}')
    store.ledger.append(new_run(store, status="completed"), "a", {"document": document}, actor="u")
    with pytest.raises(ArtifactCorrupt, match=document):
        garbage(store)


def test_what_is_young_stays_for_now(store: Store) -> None:
    old, young = put_old(store, b"old"), store.artifacts.put(b"young")
    assert planned(store) == {old}
    assert garbage(store).young == 1
    assert planned(store, grace=dt.timedelta(0)) == {old, young}


def test_a_negative_grace_period_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="negative"):
        garbage(store, grace=dt.timedelta(hours=-1))


def test_nothing_stored_since_a_running_run_began_goes(store: Store, new_run: NewRun) -> None:
    before = put_old(store, b"before")
    started = utcnow() - DAYS_AGO + dt.timedelta(hours=1)
    during = store.artifacts.put(b"during")
    moment = (started + dt.timedelta(hours=1)).timestamp()
    os.utime(store.artifacts.path(during), (moment, moment))
    run = new_run(store, started_at=started, process=ProcessIdentity.current())
    assert planned(store) == {before}
    with store.unit_of_work("u") as work:
        work.update_run(run, status="failed")
    assert planned(store) == {before, during}


def test_what_is_stored_again_after_the_plan_stays(store: Store) -> None:
    again, gone = put_old(store, b"again"), put_old(store, b"gone")
    plan = garbage(store)
    assert store.artifacts.put(b"again") == again
    assert collect(store, plan, actor="u").removed == (gone,)
    assert again in store.artifacts


def test_what_is_named_after_the_plan_stays(store: Store, new_run: NewRun) -> None:
    name = put_old(store, b"named late")
    plan = garbage(store)
    store.ledger.append(new_run(store), "a", {"result": name}, actor="u")
    assert collect(store, plan, actor="u").removed == ()
    assert name in store.artifacts


def test_what_another_collector_removed_is_not_counted(store: Store) -> None:
    put_old(store, b"x")
    plan = garbage(store)
    assert len(collect(store, plan, actor="u").removed) == 1
    assert collect(store, plan, actor="u").bytes == 0


def test_half_a_collection_is_finished_by_the_next(store: Store) -> None:
    names = [put_old(store, bytes([number])) for number in range(10)]
    for name in names[:4]:  # a collector that was killed had removed these
        store.artifacts.path(name).unlink()
    assert set(collect(store, garbage(store), actor="u").removed) == set(names[4:])
    assert list(store.artifacts.iterate()) == []
    assert store.check() == []


def test_files_that_killed_writers_left_go_when_they_are_old(store: Store) -> None:
    store.artifacts.put(b"x")
    temporary = store.artifacts.root / "tmp"
    (temporary / "left").write_bytes(b"12345")
    (temporary / "being-written").write_bytes(b"123")
    age(temporary / "left")
    plan = garbage(store)
    assert plan.bytes == 5
    assert collect(store, plan, actor="u").bytes == 5
    assert [file.name for file in temporary.iterdir()] == ["being-written"]


def test_a_collection_is_audited_without_naming_what_went(store: Store) -> None:
    from sqlalchemy import select

    name = put_old(store, b"12345")
    collect(store, garbage(store), actor="user:ana")
    assert store.scalars(select(audit.c.actor)) == ["user:ana"]
    assert store.scalars(select(audit.c.details)) == ['{"bytes":5,"removed":1}']
    assert put_old(store, b"12345") == name
    assert planned(store) == {name}
