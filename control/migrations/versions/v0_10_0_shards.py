"""Shards of tenants and their moves, the published versions of each shard, and requests counted for all API nodes."""

import sqlalchemy as sa
from alembic import op

from control.types import UtcDateTime

revision = "0.10.0"
down_revision = "0.8.0"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Put all tenants into shard 0; the other tables stay empty where versions are served from the data folder."""
    op.add_column("tenants", sa.Column("shard", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("tenants", sa.Column("shard_version", sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("previous_shard", sa.Integer(), nullable=True))
    op.add_column("tenants", sa.Column("next_shard", sa.Integer(), nullable=True))
    op.add_column("tenants", sa.Column("move_object", sa.Text(), nullable=True))
    op.add_column("tenants", sa.Column("move_bytes", sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("move_sha256", sa.String(64), nullable=True))
    op.create_table(
        "published_versions",
        sa.Column("shard", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("object_name", sa.Text(), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.Column("published_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("shard", "version", name="pk_published_versions"),
    )
    op.create_table(
        "shards",
        sa.Column("shard", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("shard", name="pk_shards"),
        sa.ForeignKeyConstraint(
            ["shard", "version"],
            ["published_versions.shard", "published_versions.version"],
            name="fk_shards_shard_version_published_versions",
        ),
    )
    op.create_table(
        "request_windows",
        sa.Column("key", sa.String(128), nullable=False),
        sa.Column("window_number", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_request_windows"),
    )


def downgrade() -> None:
    """Refuse: going back would lose which versions are served; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
