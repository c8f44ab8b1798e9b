"""What a run made citable, read back from its ledger: for a text that is written after the run ended.

Every recorded answer is applied as it was while the run went on, so the book is the one the run itself had. Nothing is
asked again: a source may be gone by now.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from learngraph_kernel.broker.methods import METHODS, method_named
from learngraph_kernel.broker.recording import load_inline
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.canonical import decode_value
from learngraph_kernel.data.workspace import Workspace
from learngraph_kernel.errors import LearnGraphError
from learngraph_kernel.evidence.values import Book, InputRecord
from learngraph_kernel.runs.declaration import read_declaration
from learngraph_kernel.runs.history import calls_of
from learngraph_kernel.runs.notebook_file import parse_notebook
from learngraph_kernel.store.database import Store
from learngraph_kernel.store.home import Home


class NothingIsAsked(LearnGraphError):
    """A record was to be read, and something tried to ask a model for it."""

    code = "nothing_is_asked"


def book_of_run(store: Store, home: Home, run_id: str) -> Book:
    """The book of a run that ended, or as far as it got.

    Args:
        store: where the run's ledger and artifacts are.
        home: where the store lies.
        run_id: the run.

    Raises:
        UnknownRun: the store has no such run.
        LearnGraphError: an artifact is missing or damaged; the message names it.
    """
    return state_of_run(store, home, run_id).book


def state_of_run(store: Store, home: Home, run_id: str) -> RunState:
    """As `book_of_run`, with the run's documents, output and last violations beside the book."""
    record = store.run(run_id)
    events = list(store.ledger.events(run_id))
    started = events[0].data
    declaration = read_declaration(
        parse_notebook(store.artifacts.read(started["source"]).decode(), where=started["notebook"])
    )
    titles = {} if declaration.parameters is None else declaration.parameters.titles
    parameters = decode_value(started["parameters"])
    inputs = {name: InputRecord(name, value, titles.get(name)) for name, value in parameters.items()}
    state = RunState(
        run_id=run_id,
        artifacts=store.artifacts,
        workspace=Workspace(Path(record.workspace or "."), {}),
        home=home,
        book=Book(run_id=run_id, inputs=inputs),
        formal=record.formal,
        language=declaration.language,
        open_model=_refuse,
        max_repairs=0,
        metric_pins=declaration.metrics,
        on_newer_metric=declaration.on_newer_metric,
    )
    for call in calls_of(events):
        if call.get("state") == "completed" and call["method"] in METHODS:
            arguments = load_inline(call["arguments"], store.artifacts)
            result = load_inline(call["result"], store.artifacts)
            method_named(call["method"]).apply(state, arguments, result)
    return state


def _refuse() -> NoReturn:
    raise NothingIsAsked("a run's record is read without asking a model", remedy="run the notebook again")
