"""What Alembic runs for every command: it uses the connection it is handed, and never a URL."""

from __future__ import annotations

from alembic import context

from learngraph_kernel.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
