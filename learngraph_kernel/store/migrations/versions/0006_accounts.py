"""Secrets, capability snapshots, and what model calls used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("ciphertext", sa.Text, nullable=False),
        sa.Column("changed_at", sa.String(27), nullable=False),
        sa.Column("changed_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_table(
        "capability_snapshots",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("probed_at", sa.String(27), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_capability_snapshots"),
    )
    op.create_table(
        "model_usage",
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("settled", sa.Boolean, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("currency", sa.String(8)),
        sa.Column("billionths", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("turn_id", "agent", "step", name="pk_model_usage"),
    )
    op.create_index("ix_model_usage_session_id", "model_usage", ["session_id"])
    op.create_index("ix_model_usage_at", "model_usage", ["at"])
