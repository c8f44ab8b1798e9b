"""What agents may do: approvals, standing grants, tickets and the record of calls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    _approvals()
    _approvers()
    _grants()
    _tickets()
    _calls()


def _approvals() -> None:
    op.create_table(
        "tool_approvals",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("call_id", sa.String(200), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("run_id", sa.String(40)),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("requester", sa.Text, nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("effects", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("arguments_hash", sa.String(64), nullable=False),
        sa.Column("authorisation_hash", sa.String(64), nullable=False),
        sa.Column("may_always", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("grant", sa.String(16)),
        sa.Column("created_at", sa.String(27), nullable=False),
        sa.Column("expires_at", sa.String(27), nullable=False),
        sa.Column("decided_at", sa.String(27)),
        sa.Column("decided_by", sa.Text),
        sa.Column("consumed_at", sa.String(27)),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("replaced_by", sa.String(40)),
        sa.PrimaryKeyConstraint("id", name="pk_tool_approvals"),
    )
    op.create_index("ix_tool_approvals_state_expires_at", "tool_approvals", ["state", "expires_at"])
    op.create_index(
        "ux_tool_approvals_call", "tool_approvals", ["session_id", "turn_id", "agent", "call_id", "round"], unique=True
    )


def _approvers() -> None:
    op.create_table(
        "tool_approvers",
        sa.Column("approver", sa.Text, nullable=False),
        sa.Column("approval_id", sa.String(40), nullable=False),
        sa.ForeignKeyConstraint(["approval_id"], ["tool_approvals.id"], name="fk_tool_approvers_approval_id"),
        sa.PrimaryKeyConstraint("approver", "approval_id", name="pk_tool_approvers"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_tool_approvers_approval_id", "tool_approvers", ["approval_id"])


def _grants() -> None:
    op.create_table(
        "tool_grants",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("authorisation_hash", sa.String(64), nullable=False),
        sa.Column("approval_id", sa.String(40), nullable=False),
        sa.Column("granted_by", sa.Text, nullable=False),
        sa.Column("granted_at", sa.String(27), nullable=False),
        sa.Column("ended_at", sa.String(27)),
        sa.Column("ended_because", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_tool_grants"),
    )
    op.create_index("ix_tool_grants_owner_workspace_tool", "tool_grants", ["owner", "workspace", "tool"])


def _tickets() -> None:
    op.create_table(
        "tool_tickets",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("workspace", sa.Text, nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("call_id", sa.String(200), nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("arguments_hash", sa.String(64), nullable=False),
        sa.Column("authorisation_hash", sa.String(64), nullable=False),
        sa.Column("effects", sa.Text, nullable=False),
        sa.Column("approval_id", sa.String(40)),
        sa.Column("issued_at", sa.String(27), nullable=False),
        sa.Column("expires_at", sa.String(27), nullable=False),
        sa.Column("used_at", sa.String(27)),
        sa.Column("void_at", sa.String(27)),
        sa.PrimaryKeyConstraint("id", name="pk_tool_tickets"),
    )
    op.create_index("ix_tool_tickets_approval_id", "tool_tickets", ["approval_id"])
    op.create_index(
        "ix_tool_tickets_session_id_turn_id_agent_call_id",
        "tool_tickets",
        ["session_id", "turn_id", "agent", "call_id"],
    )


def _calls() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("call_id", sa.String(200), nullable=False),
        sa.Column("ticket_id", sa.String(40), nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("arguments_hash", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("begun_at", sa.String(27), nullable=False),
        sa.Column("finished_at", sa.String(27)),
        sa.Column("status", sa.String(16)),
        sa.Column("result", sa.Text),
        sa.Column("artifact", sa.String(64)),
        sa.PrimaryKeyConstraint("session_id", "turn_id", "agent", "call_id", name="pk_tool_calls"),
    )
    op.create_index("ix_tool_calls_session_id_artifact", "tool_calls", ["session_id", "artifact"])
