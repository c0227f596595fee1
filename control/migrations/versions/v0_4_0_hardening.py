"""Quotas, canonical rates, requests to read contracts again, pins by tenant, and addresses of clients."""

import sqlalchemy as sa
from alembic import op

from control.types import UtcDateTime

revision = "0.4.0"
down_revision = "0.2.0"
branch_labels = None
depends_on = None

_IS_LIVE = sa.text("removed_at is null")


def upgrade() -> None:
    """Add tables, columns and indexes, and fill those that derive from stored rows."""
    _add_quotas()
    _name_tenants_of_pins()
    # Rates of earlier releases end with a zero.
    op.execute("update operations set rate = substr(rate, 1, length(rate) - 2) where rate like '%.0'")
    for name in ("metadata_requested_at", "metadata_accepted_at"):
        op.add_column("subjects", sa.Column(name, UtcDateTime(), nullable=True))
    op.add_column("audit_events", sa.Column("client_address", sa.String(45), nullable=True))


def _add_quotas() -> None:
    """Add limits, the count of prices, and indexes that count objects."""
    op.add_column("tenants", sa.Column("stored_prices", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("tenants", sa.Column("max_stored_prices", sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("max_objects", sa.BigInteger(), nullable=True))
    op.execute(
        """
        update tenants set stored_prices = (
            select count(*)
            from manual_prices
            inner join supported_pairs on supported_pairs.supported_pair_key = manual_prices.supported_pair_key
            where supported_pairs.tenant_id = tenants.id
        )
        """
    )
    for table in ("subjects", "supported_pairs"):
        op.create_index(
            f"ix_{table}_live_tenant_id", table, ["tenant_id"], sqlite_where=_IS_LIVE, postgresql_where=_IS_LIVE
        )


def _name_tenants_of_pins() -> None:
    """Replace the table of pins by an empty one: cursors of an earlier release have expired anyway."""
    op.drop_table("version_pins")
    op.create_table(
        "version_pins",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("pinned_until", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_version_pins_tenant_id_tenants"),
        sa.PrimaryKeyConstraint("version", "tenant_id", name="pk_version_pins"),
    )


def downgrade() -> None:
    """Refuse: going back would drop limits; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
