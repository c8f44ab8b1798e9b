"""Conversations: sessions, their messages, and the events of their streams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("leaf", sa.String(40)),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("head", sa.Integer, nullable=False),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("updated_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_owner_updated_at", "sessions", ["owner", "updated_at"])
    op.create_table(
        "session_messages",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("session_id", sa.String(40), nullable=False),
        sa.Column("parent", sa.String(40)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("parts", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("turn_id", sa.String(40)),
        sa.Column("process", sa.Text),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_session_messages_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_session_messages"),
    )
    op.create_index("ix_session_messages_session_id_parent", "session_messages", ["session_id", "parent"])
    op.create_index("ix_session_messages_status", "session_messages", ["status"])
    op.create_table(
        "session_events",
        sa.Column("session_id", sa.String(40), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("turn_id", sa.String(40)),
        sa.Column("message_id", sa.String(40)),
        sa.Column("data", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_session_events_session_id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_session_events"),
        sqlite_with_rowid=False,
    )
