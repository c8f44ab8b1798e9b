"""`lg.acquired`: the bytes of something that was taken in from outside, by hash, read-only."""

from __future__ import annotations

from typing import Any

from learngraph_kernel.broker.methods.base import BadCall, Method, text_argument
from learngraph_kernel.broker.state import RunState
from learngraph_kernel.broker.ticket import Ticket
from learngraph_kernel.data.acquired import Acquired, UnknownAcquired
from learngraph_kernel.errors import Unavailable
from learngraph_kernel.naming import suggestion


class NotHere(Unavailable):
    """The workspace pins a download that this store does not hold."""

    code = "acquired_missing"


class AcquiredCall(Method):
    """Its answer is from outside: a rerun gives the bytes of the record, whatever learngraph.toml pins by then."""

    name = "acquired"
    external = True

    def perform(self, state: RunState, ticket: Ticket, arguments: dict[str, Any]) -> Any:
        entry = _pinned(state, text_argument(arguments, "name"))
        file = arguments.get("file")
        if file is not None and (not isinstance(file, str) or entry.kind != "git"):
            raise BadCall(f"acquired {entry.name!r} is one file", remedy=f'write lg.acquired("{entry.name}")')
        content = entry.sha256 if entry.kind != "git" else _file_of(state, entry, file)
        return {
            "name": entry.name,
            "file": file,
            "kind": entry.kind,
            "url": entry.url,
            "commit": entry.commit,
            "receipt": entry.receipt,
            "pinned": entry.sha256,
            "content": content,
            "bytes": state.artifacts.size(content),
        }

    def present(self, state: RunState, result: Any) -> Any:
        path = state.grant(state.artifacts.path(result["content"]))
        return {key: result[key] for key in ("name", "file", "url", "bytes")} | {"path": str(path)}

    def artifacts(self, result: Any) -> list[str]:
        return sorted({result["pinned"], result["content"]})


def _pinned(state: RunState, name: str) -> Acquired:
    known = state.workspace.acquired
    if name not in known:
        raise UnknownAcquired(
            f"nothing was acquired as {name!r}",
            where=str(state.workspace.file or state.workspace.root),
            remedy=suggestion(name, known, kind="acquired") if known else f"learngraph sandbox acquire URL --as {name}",
        )
    entry = known[name]
    if entry.sha256 not in state.artifacts:
        raise NotHere(
            f"the bytes of acquired {name!r} are not in this store",
            where=entry.where,
            remedy=f"learngraph sandbox acquire {entry.url} --as {name}, on this machine"
            if entry.kind != "git"
            else f"learngraph sandbox acquire-git {entry.url} --ref {entry.commit} --as {name}, on this machine",
        )
    return entry


def _file_of(state: RunState, entry: Acquired, file: str | None) -> str:
    files = {item["path"]: item["sha256"] for item in state.artifacts.read_json(entry.sha256)["files"]}
    if file is None or file not in files:
        what = "is a repository: name one of its files" if file is None else f"has no file {file!r}"
        raise BadCall(
            f"acquired {entry.name!r} {what}", remedy=suggestion(file or "", files, kind="files") or "name a file"
        )
    return str(files[file])
