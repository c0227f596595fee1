"""Which chain a network in use is, as its family says it: a number is not what every family has."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Turn chain ids into text."""
    with op.batch_alter_table("networks_in_use") as table:
        table.alter_column(
            "chain_id",
            new_column_name="identity",
            existing_type=sa.BigInteger(),
            existing_nullable=False,
            type_=sa.String(100),
            postgresql_using="chain_id::varchar",
        )


def downgrade() -> None:
    """Refuse: going back would drop what tenants configured; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
