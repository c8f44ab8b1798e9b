"""What may be asked of a kernel, and how one is recorded and shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from learngraph_kernel.sandbox.answers import BadRequest
from learngraph_kernel.sandboxd import folders
from learngraph_kernel.sandboxd.containers import BROKER_SOCKET, CONNECTION_FILE, KERNEL_ENVIRONMENT, TICKET_FILE
from learngraph_kernel.sandboxd.records import Row, new_id


def shown(row: Row) -> Row:
    """What callers see: the paths are theirs to use, the container is not."""
    folder = row["folder"]
    return {
        "kernel": row["id"],
        "run": row["run"],
        "state": row["state"],
        "image": row["image"],
        "folder": folder,
        "granted": row["granted"],
        "connection_file": f"{folder}/{CONNECTION_FILE}",
        "broker_socket": f"{folder}/{BROKER_SOCKET}",
        "ticket_file": f"{folder}/{TICKET_FILE}",
        "warm": row["warm"],
        "exit_code": row["exit_code"],
        "reason": row["reason"],
        "created": row["created"],
    }


def check_request(request: Mapping[str, Any], uid: int, roots: tuple[Path, ...]) -> dict[str, Any]:
    """What a request asks for, every field checked.

    Args:
        uid: of the caller; folders it brings must be its own.
        roots: folders directly below which those may lie.

    Raises:
        BadRequest, Forbidden: naming the field.
    """
    unknown = set(request) - {"run", "image", "folder", "granted", "environment"}
    if unknown:
        raise BadRequest(f"unknown field {sorted(unknown)[0]!r}", code="unknown_field")
    run = request.get("run")
    if not isinstance(run, str) or not 0 < len(run) <= 128 or not run.isprintable():
        raise BadRequest("run must be the id of a run", code="bad_run")
    environment = request.get("environment", {})
    if not isinstance(environment, dict) or not all(isinstance(v, str) and "\0" not in v for v in environment.values()):
        raise BadRequest("environment must be an object of strings", code="bad_environment")
    foreign = set(environment) - KERNEL_ENVIRONMENT
    if foreign:
        raise BadRequest(
            f"a kernel's environment cannot have {sorted(foreign)[0]!r}",
            code="environment_not_allowed",
            remedy=f"allowed: {', '.join(sorted(KERNEL_ENVIRONMENT))}",
        )
    image = request.get("image")
    if image is not None and not isinstance(image, str):
        raise BadRequest("image must be an image id, sha256:…", code="bad_image")
    folder = granted = None
    if request.get("folder") is not None or request.get("granted") is not None:
        folder = folders.check_callers_folder(request.get("folder"), uid, roots)
        granted = folders.check_callers_folder(request.get("granted"), uid, roots)
        if folder == granted:
            raise BadRequest("folder and granted must be two folders", code="bad_folder")
    return {"run": run, "image": image, "folder": folder, "granted": granted, "environment": dict(environment)}


def new_row(
    owner: str,
    run: str | None,
    image: str,
    made: tuple[Path, Path],
    *,
    ours: bool,
    warm: bool,
    caller: str | None,
    now: float,
) -> Row:
    """A kernel's record before its container is made."""
    return {
        "id": new_id("k"),
        "owner": owner,
        "run": run,
        "state": "warming" if warm else "starting",
        "container": None,
        "image": image,
        "folder": str(made[0]),
        "granted": str(made[1]),
        "ours": ours,
        "warm": warm,
        "caller": caller,
        "created": now,
        "seen": now,
        "finished": None,
        "exit_code": None,
        "reason": None,
    }
