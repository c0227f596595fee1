"""Wallets of keys: their descriptor, and its form with shortened keys."""

import sqlalchemy as sa
from alembic import op

revision = "0.8.0"
down_revision = "0.4.0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns; wallets of earlier releases are single addresses and have neither."""
    for name in ("descriptor", "shown_as"):
        op.add_column("subjects", sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    """Refuse: going back would drop the keys of wallets; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
