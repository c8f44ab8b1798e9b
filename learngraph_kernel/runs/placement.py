"""Where a notebook may run: decided from what it is and what was asked for, before anything starts.

The box has one kernel, its own Python. So `auto` takes the box for a notebook that wants the ordinary Python kernel,
and leaves one that names another environment to the host; asking for the box and for another kernel is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from learngraph_kernel.errors import BadInput, Unavailable

DEFAULT_KERNEL = "python3"
BOX_KERNEL = "learngraph-sandbox"

SandboxChoice = Literal["auto", "docker", "host"]
"""auto: the closed box if there is one, else the host; docker: the box or nothing; host: a kernel of this machine's."""


class NotIsolated(Unavailable):
    """The workflow is governed, and was to run on the host."""

    code = "not_isolated"


class NotForTheBox(BadInput):
    """The box has only a Python kernel."""

    code = "not_for_the_box"


@dataclass(frozen=True, slots=True)
class Placement:
    """A kernelspec's name and where it runs."""

    kernel: str
    sandbox: SandboxChoice


def place(nb: Any, *, kernel: str | None, sandbox: SandboxChoice, governed: bool, where: str) -> Placement:
    """Decides.

    Args:
        nb: the notebook; its metadata may name a kernel.
        kernel: what was asked for; None: the notebook's own.
        where: for messages.

    Raises:
        NotIsolated: governed, and the host was asked for.
        NotForTheBox: the box was asked for, and a kernel that it does not have.
    """
    if governed and sandbox == "host":
        raise not_isolated(where)
    spec = nb.metadata.get("kernelspec", {})
    name = kernel or spec.get("name") or DEFAULT_KERNEL
    wanted: SandboxChoice = "docker" if governed or (name == BOX_KERNEL and sandbox == "auto") else sandbox
    if wanted == "host":
        return Placement(DEFAULT_KERNEL if name == BOX_KERNEL else name, "host")
    language = spec.get("language") or nb.metadata.get("language_info", {}).get("name") or "python"
    fits = language.lower() == "python" and (kernel is None or kernel in (DEFAULT_KERNEL, BOX_KERNEL))
    if wanted == "auto":
        return Placement(name, "auto" if fits and name == DEFAULT_KERNEL else "host")
    if not fits:
        raise NotForTheBox(
            f"the closed box has a Python kernel and no {kernel or language!r}",
            where=where,
            remedy="leave out -k, or run it with --sandbox host",
        )
    return Placement(name, "docker")


def not_isolated(where: str) -> NotIsolated:
    """A governed workflow that would have run on the host."""
    return NotIsolated(
        "the workflow is governed, so it runs in the closed box only",
        where=where,
        remedy="leave out --sandbox host; `learngraph doctor` says what the box lacks here",
    )
