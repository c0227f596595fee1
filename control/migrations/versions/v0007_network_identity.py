"""Which chain a network in use is, as its family says it: a number is not what every family has."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLE = "networks_in_use"


def upgrade() -> None:
    """Turn chain ids into text."""
    if op.get_bind().dialect.name == "sqlite":
        # A column cannot change its type there, and the table cannot be made anew: ledgers refer to its rows.
        op.add_column(_TABLE, sa.Column("identity", sa.String(100), server_default="", nullable=False))
        op.execute(f"update {_TABLE} set identity = cast(chain_id as text)")
        op.drop_column(_TABLE, "chain_id")
        return
    op.alter_column(
        _TABLE,
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
