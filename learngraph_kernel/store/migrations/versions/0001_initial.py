"""The first tables: runs, their events, the names in them, audit and outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("formal", sa.Boolean, nullable=False),
        sa.Column("tier", sa.String(16)),
        sa.Column("title", sa.Text),
        sa.Column("notebook", sa.Text),
        sa.Column("workspace", sa.Text),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("parent", sa.String(40)),
        sa.Column("isolation", sa.String(32)),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("started_at", sa.String(27), nullable=False),
        sa.Column("finished_at", sa.String(27)),
        sa.Column("content_hash", sa.String(64)),
        sa.Column("seal", sa.String(64)),
        sa.Column("process", sa.Text),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_parent", "runs", ["parent"])
    op.create_index("ix_runs_status_run_id", "runs", ["status", "run_id"])
    op.create_table(
        "events",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("after_seal", sa.Boolean, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("prev", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_events"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_events_run_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event_artifacts",
        sa.Column("run_id", sa.String(40), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("present", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", "sha256", name="pk_event_artifacts"),
        sa.ForeignKeyConstraint(
            ["run_id", "seq"], ["events.run_id", "events.seq"], name="fk_event_artifacts_run_id_seq"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("aggregate", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
