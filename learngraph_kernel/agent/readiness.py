"""Can a turn begin? Each check has a name, a state, and for what is missing a reason and a remedy.

Asked before every turn: one that would fail half way for want of a box or a model is refused whole, at once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from learngraph_kernel.data.workspace import load_workspace
from learngraph_kernel.errors import LearnGraphError, Unavailable

Check = Mapping[str, Any]


class NotReady(Unavailable):
    """A turn cannot begin; `details["checks"]` lists what is missing, each with its remedy."""

    code = "not_ready"

    def __init__(self, checks: Sequence[Check]) -> None:
        missing = [check for check in checks if check["state"] == "failed"]
        first = missing[0]
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        super().__init__(
            f"{first['name']}: {first['reason']}{more}", remedy=first["remedy"], details={"checks": missing}
        )


def checks_of(workspace: Path, model: str | None, *, boxed: bool, secrets: Collection[str] = ()) -> list[Check]:
    """Workspace, model and closed box. Blocks; starts a private sandboxd where none runs and one may be.

    Args:
        workspace: folder of the conversation.
        model: name of the model that is to be asked; None for the default.
        boxed: whether the agent's code runs in the box, so that there must be one.
        secrets: names of the secrets that are in the vault.
    """
    return [_workspace(workspace), _model(workspace, model, secrets), *([_sandbox()] if boxed else [])]


def _workspace(root: Path) -> Check:
    try:
        loaded = load_workspace(root)
    except LearnGraphError as error:
        return _failed("workspace", error)
    if not loaded.sources:
        reason, remedy = "no source is declared", "learngraph source add NAME --kind duckdb --path FILE"
        return {"name": "workspace", "state": "warning", "reason": reason, "remedy": remedy}
    return _ok("workspace", f"{len(loaded.sources)} sources")


def _model(root: Path, name: str | None, secrets: Collection[str]) -> Check:
    from learngraph_kernel.models.config import DEFAULT, choose_model, open_model, parse_models

    try:
        config = choose_model(parse_models(load_workspace(root).models, root=root), name or DEFAULT)
        adapter = open_model(config)
        if config.secret is not None and config.secret not in secrets:
            remedy = f"learngraph secret set {config.secret}"
            raise Unavailable(f"there is no secret {config.secret!r}", remedy=remedy)
        if config.api_key_env is not None and not os.environ.get(config.api_key_env):
            remedy = f"export {config.api_key_env}=… before starting, or keep the key with `learngraph secret set`"
            raise Unavailable(f"the environment variable {config.api_key_env} is not set", remedy=remedy)
    except LearnGraphError as error:
        return _failed("model", error)
    if not adapter.capabilities.tools:
        reason, remedy = f"{adapter.model} takes no tools", "choose a model that does (learngraph.toml, [models.…])"
        return {"name": "model", "state": "failed", "reason": reason, "remedy": remedy}
    return _ok("model", f"{config.adapter}: {adapter.model}")


def _sandbox() -> Check:
    from learngraph_kernel.sandbox.on_demand import running_client

    try:
        client = running_client()
        try:
            answer = client.readiness()
        finally:
            client.close()
    except LearnGraphError as error:
        return _failed("sandbox", error)
    for check in answer["checks"]:
        if check["state"] == "failed":
            reason = f"{check['name']}: {check['reason']}"
            return {
                "name": "sandbox",
                "state": "failed",
                "reason": reason,
                "remedy": check["remedy"],
                "zh": check["zh"],
            }
    return _ok("sandbox", "ready")


def _ok(name: str, reason: str) -> Check:
    return {"name": name, "state": "ok", "reason": reason, "remedy": None}


def _failed(name: str, error: LearnGraphError) -> Check:
    zh = error.details.get("zh")
    return {"name": name, "state": "failed", "reason": error.what, "remedy": error.remedy} | ({"zh": zh} if zh else {})
