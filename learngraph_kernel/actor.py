"""Who acts: the name that ledger events, audit records and seals carry."""

from __future__ import annotations

import getpass
import os


def current_actor() -> str:
    """The user of this process, e.g. `user:ana`; by number where the system has no name for it (`user:1000`)."""
    try:
        return f"user:{getpass.getuser()}"
    except (KeyError, OSError):  # a container's user without a name; OSError from Python 3.13
        return f"user:{os.getuid()}"
