"""The version of each shard that API nodes serve."""

import sqlalchemy as sa
from alembic import op

from control.types import UtcDateTime

revision = "0.10.0"
down_revision = "0.8.0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; it stays empty where versions are served from the data folder."""
    op.create_table(
        "served_versions",
        sa.Column("shard", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("object_name", sa.Text(), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("shard", name="pk_served_versions"),
    )


def downgrade() -> None:
    """Refuse: going back would lose which versions are served; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
