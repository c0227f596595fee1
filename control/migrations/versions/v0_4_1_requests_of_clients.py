"""Pins of versions name their tenant, and audit events the address of the client."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0.4.1"
down_revision = "0.2.0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of pins anew: cursors of an earlier release have expired anyway."""
    op.drop_table("version_pins")
    op.create_table(
        "version_pins",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("pinned_until", DateTimeUTC(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_version_pins_tenant_id_tenants"),
        sa.PrimaryKeyConstraint("version", "tenant_id", name="pk_version_pins"),
    )
    op.add_column("audit_events", sa.Column("client_address", sa.String(45), nullable=True))


def downgrade() -> None:
    """Refuse: going back would drop what tenants asked for; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
