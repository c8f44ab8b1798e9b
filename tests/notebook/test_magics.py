"""`%load_ext learngraph_kernel` in a real kernel: the magics, and completion through the messages a front end sends."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home
from tests.notebook.conftest import ByHand

OURS = ("shop", "orders", "stock", "region", "amount", "item no")
COMPLETIONS = [
    # the cell with | where the cursor stands, what is offered (the whole cell after taking it)
    ("%%sql |", ["%%sql shop"]),
    ("%%sql s|", ["%%sql shop"]),
    ("%%sql x|", []),
    ("%%sql -o name s|", ["%%sql -o name shop"]),
    ("%%sql -o s|", []),
    ("%%sql s|\nselect 1", ["%%sql shop\nselect 1"]),
    ("%%sql shop -o t|", []),
    ("%%sql shop\nselect * from ord|", ["%%sql shop\nselect * from orders"]),
    ("%%sql shop\nselect * from ORD|", ["%%sql shop\nselect * from orders"]),
    ("%%sql shop\nselect reg|\nfrom orders", ["%%sql shop\nselect region\nfrom orders"]),
    (
        "%%sql shop\nselect orders.|",
        [f"%%sql shop\nselect orders.{c}" for c in ("id", "region", "amount")],
    ),
    ("%%sql shop\nselect o.re|, 1\nfrom orders o", ["%%sql shop\nselect o.region, 1\nfrom orders o"]),
    ("%%sql shop\nselect o.am|\nfrom orders AS o", ["%%sql shop\nselect o.amount\nfrom orders AS o"]),
    ("%%sql shop\nselect p.| from orders o join stock p", ["%%sql shop\nselect p.{} from orders o join stock p"]),
    ("%%sql -o x shop\nselect main.orders.re|", ["%%sql -o x shop\nselect main.orders.region"]),
    ("%%sql shop\nselect a, -- ü\n  sum(amo|) from orders", ["%%sql shop\nselect a, -- ü\n  sum(amount) from orders"]),
    ("%%sql shop\nselect nothing.|", []),
    ("%%sql nowhere\nselect reg|", []),
    ("%%sqlx\nselect reg|", []),
    ("select reg|", []),
]  # fmt: skip


@pytest.fixture
def shell(workspace: Path, by_hand: ByHand) -> ByHand:
    with duckdb.connect(str(workspace / "shop.duckdb")) as connection:
        connection.execute('create table stock("item no" integer)')
    assert by_hand.run("%load_ext learngraph_kernel") == ""
    return by_hand


def test_sources_tables_and_columns_are_completed_and_leave_no_run_behind(shell: ByHand, home: Path) -> None:
    for text, expected in COMPLETIONS:
        offered = shell.complete(text.replace("|", ""), text.index("|"))
        wanted = [item.format('"item no"') if "{}" in item else item for item in expected]
        if not wanted:  # IPython's own completions, which can only be held back by better ones, don't count
            offered = [item for item in offered if item.split()[-1].removeprefix("nothing.") in OURS]
        assert sorted(offered) == sorted(wanted), text
    with Store.open(Home(home)) as store:
        assert store.runs() == []


def test_the_magics_make_the_same_recorded_calls_as_lg(shell: ByHand, home: Path) -> None:
    assert "Q1" in shell.run("%%sql shop -o orders\nselect * from orders order by id;", "sql")
    assert shell.run("least = 200; orders.ref, len(orders.df())", "python") == "('Q1', 4)"
    assert "Q2" in shell.run("%%sql shop -p least\nselect id from orders where amount > :least", "parameter")
    assert "1,000.50" in shell.run("%metric shop orders=orders", "set")
    assert "1,000.50" in shell.run("%metric shop revenue orders=orders", "metric")
    assert "has no metric nothing; it has revenue" in shell.run("%metric shop nothing orders=orders", "no-metric")
    assert "no variable nowhere" in shell.run("%metric shop orders=nowhere", "no-variable")
    assert "only reading statements" in shell.run("%%sql shop\ndrop table orders", "refused")
    assert "how many" in shell.run("%runs many", "many")
    with Store.open(Home(home)) as store:
        (run,) = store.runs()
        assert run.run_id in shell.run("%runs", "runs")
        events = list(store.ledger.events(run.run_id, types=["call.completed"]))
    assert [(event.data["cell"], event.data["method"]) for event in events] == [
        ("sql", "query"),
        ("parameter", "query"),
        ("set", "metrics"),
        ("metric", "metrics"),
        ("no-metric", "metrics"),
    ]


def test_frames_map_the_snapshot_and_keep_every_type(by_hand: ByHand) -> None:
    code = """
import datetime as dt, decimal
import learngraph_kernel as lg
q = lg.query("shop", '''
    select i as n, (i / 4)::decimal(18, 2) as money, date '2013-02-11' + i::integer as day,
        timestamp '2013-02-11 01:02:03.000004' as moment, timestamptz '2013-02-11 01:02:03+00' as zoned,
        [i, i + 1] as list, {'a': i} as struct, case when i > 0 then 'x' end as text
    from range(100000) t(i) order by i''')
maps = lambda: open("/proc/self/maps").read().count("/artifacts/")
table = q.arrow()
import pyarrow
mapped, allocated = maps(), pyarrow.total_allocated_bytes()
row = table.slice(0, 1).to_pylist()[0]
frame, polar = q.df(), q.pl()
print(mapped >= 1, allocated < table.nbytes / 100)
print(row["n"], repr(row["money"]), row["day"], row["moment"], row["zoned"], row["list"], row["struct"], row["text"])
print(repr(frame.money[1]), frame.day[1], frame.moment[0], frame.list[0].tolist(), frame.text.isna()[0])
print(repr(polar["money"][1]), polar["day"][1], polar["moment"][0], polar["list"][0].to_list(), polar["text"][0])
print(len(frame), len(polar), frame.n.dtype, polar["n"].dtype, polar["money"].dtype)
"""
    lines = by_hand.run(code).splitlines()
    assert lines == [
        "True True",
        "0 Decimal('0.00') 2013-02-11 2013-02-11 01:02:03.000004 2013-02-11 01:02:03+00:00 [0, 1] {'a': 0} None",
        "Decimal('0.25') 2013-02-12 2013-02-11 01:02:03.000004 [0, 1] True",
        "Decimal('0.25') 2013-02-12 2013-02-11 01:02:03.000004 [0, 1] None",
        "100000 100000 int64 Int64 Decimal(precision=18, scale=2)",
    ]
