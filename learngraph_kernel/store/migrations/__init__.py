"""Migrations, run from the installed package with no ini file. Importing `upgrade`'s Alembic is left to the call."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from learngraph_kernel.store.errors import StoreTooNew


def upgrade(connection: Connection, revision: str | None, path: Path) -> None:
    """Brings a database to the newest packaged revision, inside the caller's transaction.

    Args:
        connection: in a transaction that holds the write lock.
        revision: what the database is at; None for an empty version table.
        path: the file, for messages.

    Raises:
        StoreTooNew: the revision is not one of ours.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        raise StoreTooNew(
            f"the database is at revision {revision}, which this version of LearnGraph does not know",
            where=str(path),
            remedy="upgrade LearnGraph (`pip install -U learngraph`), or point LEARNGRAPH_HOME at another folder",
        )
    command.upgrade(config, "head")
