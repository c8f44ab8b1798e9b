"""The tables. `HEAD` names the migration that makes exactly these; a test compares the two.

Times are text (`2026-12-01T03:00:00.000000Z`), which sorts as it reads; JSON is canonical text.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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

HEAD = "0006"
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

# A conversation of one owner. `head` is the number of its last event.
sessions = Table(
    "sessions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("leaf", String(40)),
    Column("settings", Text, nullable=False),
    Column("head", Integer, nullable=False),
    Column("created_at", String(27), nullable=False),
    Column("updated_at", String(27), nullable=False),
    Index(None, "owner", "updated_at"),
)

# `process`: who is writing it, while it streams. `words`: its text and nothing else, case folded, for the search.
session_messages = Table(
    "session_messages",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("session_id", String(40), ForeignKey("sessions.id"), nullable=False),
    Column("parent", String(40)),
    Column("version", Integer, nullable=False),
    Column("role", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("parts", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("turn_id", String(40)),
    Column("process", Text),
    Column("created_at", String(27), nullable=False),
    Index(None, "session_id", "parent"),
    Index(None, "status"),
)

session_events = Table(
    "session_events",
    metadata,
    Column("session_id", String(40), ForeignKey("sessions.id"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("type", String(32), nullable=False),
    Column("at", String(27), nullable=False),
    Column("turn_id", String(40)),
    Column("message_id", String(40)),
    Column("data", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Who brought a file in: a question may only carry what its owner brought.
session_attachments = Table(
    "session_attachments",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("name", Text, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("at", String(27), nullable=False),
    sqlite_with_rowid=False,
)

# What a person is asked before a call happens. `arguments` are the exact ones, so that after a restart these bytes run;
# only `shown` (redacted) ever leaves. An edit is answered by a new row of the same call, one `round` later.
tool_approvals = Table(
    "tool_approvals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("session_id", String(64), nullable=False),
    Column("turn_id", String(64), nullable=False),
    Column("agent", String(64), nullable=False),
    Column("call_id", String(200), nullable=False),
    Column("round", Integer, nullable=False),
    Column("run_id", String(40)),
    Column("owner", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("tool", String(128), nullable=False),
    Column("version", String(64), nullable=False),
    Column("effects", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("shown", Text, nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("authorisation_hash", String(64), nullable=False),
    Column("may_always", Boolean, nullable=False),
    Column("state", String(16), nullable=False),
    Column("grant", String(16)),
    Column("created_at", String(27), nullable=False),
    Column("expires_at", String(27), nullable=False),
    Column("decided_at", String(27)),
    Column("decided_by", Text),
    Column("consumed_at", String(27)),
    Column("text", Text, nullable=False),
    Column("replaced_by", String(40)),
    Index("ux_tool_approvals_call", "session_id", "turn_id", "agent", "call_id", "round", unique=True),
    Index(None, "state", "expires_at"),
)

tool_approvers = Table(
    "tool_approvers",
    metadata,
    Column("approver", Text, primary_key=True),
    Column("approval_id", String(40), ForeignKey("tool_approvals.id"), primary_key=True),
    Index(None, "approval_id"),
    sqlite_with_rowid=False,
)

# `always`: holds while the authorisation hash is what it was. Lapsed is for good, also when everything changes back.
tool_grants = Table(
    "tool_grants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("tool", String(128), nullable=False),
    Column("authorisation_hash", String(64), nullable=False),
    Column("approval_id", String(40), nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("granted_at", String(27), nullable=False),
    Column("ended_at", String(27)),
    Column("ended_because", String(16)),
    Index(None, "owner", "workspace", "tool"),
)

# Permission for one call, used once; every column is compared when it is used.
tool_tickets = Table(
    "tool_tickets",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("session_id", String(64), nullable=False),
    Column("turn_id", String(64), nullable=False),
    Column("agent", String(64), nullable=False),
    Column("call_id", String(200), nullable=False),
    Column("tool", String(128), nullable=False),
    Column("version", String(64), nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("authorisation_hash", String(64), nullable=False),
    Column("effects", Text, nullable=False),
    Column("approval_id", String(40)),
    Column("issued_at", String(27), nullable=False),
    Column("expires_at", String(27), nullable=False),
    Column("used_at", String(27)),
    Column("void_at", String(27)),
    Index(None, "session_id", "turn_id", "agent", "call_id"),
    Index(None, "approval_id"),
)

# A call from the moment its ticket was used. One that stays `begun` after its process died has an unknown outcome.
tool_calls = Table(
    "tool_calls",
    metadata,
    Column("session_id", String(64), primary_key=True),
    Column("turn_id", String(64), primary_key=True),
    Column("agent", String(64), primary_key=True),
    Column("call_id", String(200), primary_key=True),
    Column("ticket_id", String(40), nullable=False),
    Column("tool", String(128), nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("process", Text, nullable=False),
    Column("begun_at", String(27), nullable=False),
    Column("finished_at", String(27)),
    Column("status", String(16)),
    Column("result", Text),
    Column("artifact", String(64)),
    Index(None, "session_id", "artifact"),
)

# Ciphertexts; the key is a file.
secrets = Table(
    "secrets",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("ciphertext", Text, nullable=False),
    Column("changed_at", String(27), nullable=False),
    Column("changed_by", Text, nullable=False),
)

# What a probe of an endpoint found, the latest of each.
capability_snapshots = Table(
    "capability_snapshots",
    metadata,
    Column("fingerprint", String(64), primary_key=True),
    Column("model", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("probed_at", String(27), nullable=False),
)

# One row a model call: reserved before it is made, settled with what it really used. Money in billionths.
model_usage = Table(
    "model_usage",
    metadata,
    Column("turn_id", String(64), primary_key=True),
    Column("agent", String(64), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("session_id", String(64), nullable=False),
    Column("owner", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("at", String(27), nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("currency", String(8)),
    Column("billionths", BigInteger, nullable=False),
    Index(None, "session_id"),
    Index(None, "at"),
)
