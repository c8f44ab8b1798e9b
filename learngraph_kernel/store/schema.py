"""The tables. `HEAD` names the migration that makes exactly these; a test compares the two.

Times are text (`2026-12-01T03:00:00.000000Z`), which sorts as it reads; JSON is canonical text.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

HEAD = "0002"
"""The revision in `migrations/versions` that the code expects."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(40), primary_key=True),
    Column("status", String(16), nullable=False),
    Column("formal", Boolean, nullable=False),
    Column("tier", String(16)),
    Column("title", Text),
    Column("notebook", Text),
    Column("workspace", Text),
    Column("parameters", Text, nullable=False),
    Column("origin", String(16), nullable=False),
    Column("parent", String(40)),
    Column("isolation", String(32)),
    Column("actor", Text, nullable=False),
    Column("started_at", String(27), nullable=False),
    Column("finished_at", String(27)),
    Column("content_hash", String(64)),
    Column("seal", String(64)),
    Column("process", Text),
    Index(None, "status", "run_id"),
    Index(None, "parent"),
)

# Clustered by (run, seq): appending to a run dirties one page, and reading a run is one scan. The last entry of a run
# is its head, so that no counter has to be kept beside the ledger (and none can disagree with it).
events = Table(
    "events",
    metadata,
    Column("run_id", String(40), ForeignKey("runs.run_id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("type", String(64), nullable=False),
    Column("at", String(27), nullable=False),
    Column("actor", Text, nullable=False),
    Column("after_seal", Boolean, nullable=False),
    Column("data", Text, nullable=False),
    Column("prev", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    sqlite_with_rowid=False,
)

# Every 64-hex name in an event's data. `present`: it was an artifact when the event was recorded, so it must be now.
event_artifacts = Table(
    "event_artifacts",
    metadata,
    Column("run_id", String(40), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("sha256", String(64), primary_key=True),
    Column("present", Boolean, nullable=False),
    ForeignKeyConstraint(["run_id", "seq"], ["events.run_id", "events.seq"]),
    sqlite_with_rowid=False,
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", String(27), nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(64), nullable=False),
    Column("target", Text, nullable=False),
    Column("details", Text, nullable=False),
    sqlite_autoincrement=True,
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", String(27), nullable=False),
    Column("type", String(64), nullable=False),
    Column("aggregate", Text, nullable=False),
    Column("payload", Text, nullable=False),
    sqlite_autoincrement=True,
)

# A person's `allow_once` for one download: `request` is the digest of what was allowed, `body` its text.
acquisition_approvals = Table(
    "acquisition_approvals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("body", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("granted_at", String(27), nullable=False),
    Column("expires_at", String(27), nullable=False),
    Column("claimed_at", String(27)),
    Column("claimed_by", Text),
    Index(None, "request"),
)

acquisition_receipts = Table(
    "acquisition_receipts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("request", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("at", String(27), nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "sha256"),
)
