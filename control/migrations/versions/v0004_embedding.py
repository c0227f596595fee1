"""Embedding of reports: a public id per tenant, and the origins that may embed."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables; a tenant gets its id with its first link. `ControlStore.migrate` makes the secrets."""
    op.create_table(
        "tenant_embeddings",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("embed_id", sa.String(40), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("changed_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenant_embeddings"),
        sa.UniqueConstraint("embed_id", name="uq_tenant_embeddings_embed_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_tenant_embeddings_tenant_id_tenants"),
    )
    op.create_table(
        "embed_origins",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "position", name="pk_embed_origins"),
        sa.UniqueConstraint("tenant_id", "origin", name="uq_embed_origins_tenant_id_origin"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_embed_origins_tenant_id_tenants"),
    )


def downgrade() -> None:
    """Refuse: going back would drop what tenants configured; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
