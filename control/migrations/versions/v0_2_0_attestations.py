"""Attestations are a kind of operations."""

import sqlalchemy as sa
from alembic import op

revision = "0.2.0"
down_revision = "0.1.0"
branch_labels = None
depends_on = None

_NAME = "ck_operations_kind"


def upgrade() -> None:
    """Widen the kinds of operations; SQLite writes the table anew for that."""
    with op.batch_alter_table("operations", table_kwargs={"sqlite_autoincrement": True}) as operations:
        operations.drop_constraint(op.f(_NAME), type_="check")
        operations.create_check_constraint(op.f(_NAME), sa.text("kind in ('History', 'PriceDiscovery', 'Attestation')"))


def downgrade() -> None:
    """Refuse: going back would drop what tenants asked for; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
