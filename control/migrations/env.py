"""Alembic's entry: runs the revisions on the connection that `ControlStore.migrate` holds.

The caller owns the transaction and the lock; a configuration file or a URL is not read here.
"""

from alembic import context

from control.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    transactional_ddl=True,  # SQLite can, when BEGIN is sent explicitly, as the store does
)
context.run_migrations()
