"""Downloads from outside: approvals that are used once, and receipts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "acquisition_approvals",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("granted_by", sa.Text, nullable=False),
        sa.Column("granted_at", sa.String(27), nullable=False),
        sa.Column("expires_at", sa.String(27), nullable=False),
        sa.Column("claimed_at", sa.String(27)),
        sa.Column("claimed_by", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_acquisition_approvals"),
    )
    op.create_index("ix_acquisition_approvals_request", "acquisition_approvals", ["request"])
    op.create_table(
        "acquisition_receipts",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("at", sa.String(27), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_acquisition_receipts"),
    )
    op.create_index("ix_acquisition_receipts_sha256", "acquisition_receipts", ["sha256"])
