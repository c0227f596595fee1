"""Tokens hold the latest requests to read their contracts again."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0.4.0"
down_revision = "0.2.0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; no token has a request yet."""
    for name in ("metadata_requested_at", "metadata_accepted_at"):
        op.add_column("subjects", sa.Column(name, DateTimeUTC(timezone=True), nullable=True))


def downgrade() -> None:
    """Refuse: going back would drop what tenants asked for; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
