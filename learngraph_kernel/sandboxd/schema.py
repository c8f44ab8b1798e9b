"""The tables of sandboxd's own database (`sandboxd.db`); the runtime's database is another file.

A workspace belongs to one chat session and one owner. It is named by `workspace_key`, which outlives every container,
every sandbox id and the physical folder. Times are text as in `store.clock`, which sorts as it reads.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Boolean, Column, Float, ForeignKeyConstraint, Index, Integer, MetaData, String, Table, Text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Every content a path has ever had. The number of rows with a hash is the reference count of that blob.
file_versions = Table(
    "file_versions",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("sha256", String(64), nullable=False),
    Column("size", Integer, nullable=False),
    Column("origin", String(16), nullable=False),  # put, command
    Column("published", Boolean, nullable=False),  # immutable: survives the deletion of the file
    Column("at", String(27), nullable=False),
    Index(None, "sha256"),
)

# The files a workspace has now. The last four columns are those of the physical file that was hashed last: while they
# stay, its content is `version` and need not be hashed again. `ctime_ns` is among them because, unlike `mtime_ns`, the
# container cannot set it. Null: the file has never been in a folder.
workspace_files = Table(
    "workspace_files",
    metadata,
    Column("workspace", String(64), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("inode", Integer),
    Column("mtime_ns", Integer),
    Column("ctime_ns", Integer),
    Column("seen_size", Integer),
    ForeignKeyConstraint(
        ["workspace", "path", "version"],
        ["file_versions.workspace", "file_versions.path", "file_versions.version"],
    ),
)

# One permission to delete, for exactly these paths. `used_by` names the command or call that spent it.
deletion_grants = Table(
    "deletion_grants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("workspace", String(64), nullable=False),
    Column("paths", Text, nullable=False),  # JSON list; one that ends with a slash means everything below it
    Column("granted_by", Text, nullable=False),
    Column("granted_at", String(27), nullable=False),
    Column("expires_at", String(27), nullable=False),
    Column("used_at", String(27)),
    Column("used_by", Text),
    Index(None, "workspace", "used_at"),
)

# One workspace per chat session and owner; an expired row stays, so that a session's policy never changes. The daemon's
# own times are unix seconds (real numbers): they are only ever subtracted from one another.
sandboxes = Table(
    "sandboxes",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("policy", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("container", String(64)),
    Column("image", Text),
    Column("folder", Text, nullable=False),  # its name below the workspaces' root
    Column("created", Float, nullable=False),
    Column("active", Float, nullable=False),
    Column("started", Float),
    Column("reason", Text),
    Index("ux_sandboxes_owner_session", "owner", "session", unique=True),
    Index(None, "state"),
)

execs = Table(
    "execs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("sandbox", String(40), nullable=False),
    Column("owner", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("argv_digest", String(64), nullable=False),
    Column("argv_redacted", Text, nullable=False),
    Column("exit_code", Integer),
    Column("stdout_bytes", Integer, nullable=False, default=0),
    Column("stderr_bytes", Integer, nullable=False, default=0),
    Column("truncated", Boolean, nullable=False, default=False),
    Column("reason", Text),
    Column("report", Text),  # canonical JSON: what was restored, the usage after
    Column("started", Float, nullable=False),
    Column("finished", Float),
    Index(None, "sandbox"),
    Index(None, "state"),
)

kernels = Table(
    "kernels",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),  # `pool` while it is warm
    Column("run", Text),
    Column("state", String(16), nullable=False),
    Column("container", String(64)),
    Column("image", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("granted", Text, nullable=False),
    Column("ours", Boolean, nullable=False),  # sandboxd made the folders and removes them
    Column("warm", Boolean, nullable=False),
    Column("caller", Text),  # "pid:start time" of the process that must outlive it
    Column("created", Float, nullable=False),
    Column("seen", Float, nullable=False),
    Column("finished", Float),
    Column("exit_code", Integer),
    Column("reason", Text),
    Index(None, "state"),
)

# The first answer to a key; null until there is one.
idempotency = Table(
    "idempotency",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request", String(64), nullable=False),
    Column("resource", String(40), nullable=False),
    Column("answer", Text),
    Column("created", Float, nullable=False),
)

# What a ticket allows. The secret itself is a MAC over the id and is not stored.
tickets = Table(
    "tickets",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("effects", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
)

image_jobs = Table(
    "image_jobs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(8), nullable=False),
    Column("state", String(16), nullable=False),
    Column("progress", Float, nullable=False),
    Column("step", Text, nullable=False),
    Column("log", Text, nullable=False),
    Column("image", Text),
    Column("reason", Text),
    Column("created", Float, nullable=False),
    Column("finished", Float),
)

# What a box may reach: one row a person's approval. `body` is the canonical policy, `digest` its name.
egress_policies = Table(
    "egress_policies",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("sandbox", String(40), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("body", Text, nullable=False),
    Column("approved_by", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("ends", Float, nullable=False),
    Column("revoked", Float),
    Index(None, "sandbox"),
)

# Every connection that was asked of a door, and what came of it.
egress_log = Table(
    "egress_log",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("policy", String(64), nullable=False),
    Column("host", Text, nullable=False),
    Column("address", Text),
    Column("verdict", String(8), nullable=False),
    Column("reason", Text),
    Column("sent", Integer, nullable=False),
    Column("received", Integer, nullable=False),
)

# Images that containers were started from: a rerun may ask for one of these by id.
used_images = Table(
    "used_images", metadata, Column("id", Text, primary_key=True), Column("first_used", Float, nullable=False)
)

facts = Table("facts", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))


def workspace_key(owner: str, session: str) -> str:
    """The name of a workspace in these tables: 64 hex digits from its owner (`uid:1000`) and its chat session."""
    return hashlib.sha256(f"{len(owner)}:{owner}:{session}".encode()).hexdigest()
