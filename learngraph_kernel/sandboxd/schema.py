"""The tables of sandboxd's own database (`sandboxd.db`); the runtime's database is another file.

A workspace belongs to one chat session and one owner. It is named by `workspace_key`, which outlives every container,
every sandbox id and the physical folder. Times are text as in `store.clock`, which sorts as it reads.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import Boolean, Column, ForeignKeyConstraint, Index, Integer, MetaData, String, Table, Text

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


def workspace_key(owner: str, session: str) -> str:
    """The name of a workspace in these tables: 64 hex digits from its owner (`uid:1000`) and its chat session."""
    return hashlib.sha256(f"{len(owner)}:{owner}:{session}".encode()).hexdigest()
