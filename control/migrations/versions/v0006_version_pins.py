"""Which published versions cursors hold, and until when."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; nothing is pinned."""
    op.create_table(
        "version_pins",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pinned_until", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_version_pins"),
    )


def downgrade() -> None:
    """Refuse: going back would drop what tenants configured; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
