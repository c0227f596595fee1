"""Operations that the pipeline does for tenants, and the audit of configuration writes."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IS_UNFINISHED = sa.text("finished_at is null")


def upgrade() -> None:
    """Create both tables; what was done before leaves no audit."""
    op.create_table(
        "operations",
        sa.Column("operation_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("subject_key", _KEY),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("progress_done", sa.BigInteger(), nullable=False),
        sa.Column("progress_total", sa.BigInteger()),
        sa.Column("from_block", sa.BigInteger()),
        sa.Column("to_block", sa.BigInteger()),
        sa.Column("native", sa.String(20)),
        sa.Column("note", sa.Text()),
        sa.Column("rate", sa.Text()),
        sa.Column("estimated_end", DateTimeUTC(timezone=True)),
        sa.Column("error", sa.Text()),
        sa.Column("cancel_requested_at", DateTimeUTC(timezone=True)),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("started_at", DateTimeUTC(timezone=True)),
        sa.Column("finished_at", DateTimeUTC(timezone=True)),
        sa.Column("reported_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("operation_key", name="pk_operations"),
        sa.UniqueConstraint("id", name="uq_operations_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_operations_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["subject_key"], ["subjects.subject_key"], name="fk_operations_subject_key_subjects"),
        sa.ForeignKeyConstraint(["created_by"], ["api_keys.id"], name="fk_operations_created_by_api_keys"),
        sa.CheckConstraint("kind in ('History')", name=op.f("ck_operations_kind")),
        sa.CheckConstraint(
            "status in ('Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled')",
            name=op.f("ck_operations_status"),
        ),
        sa.CheckConstraint("native in ('full', 'balance-only')", name=op.f("ck_operations_native")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operations_subject_key", "operations", ["subject_key"])
    op.create_index(
        "ix_operations_unfinished",
        "operations",
        ["operation_key"],
        sqlite_where=_IS_UNFINISHED,
        postgresql_where=_IS_UNFINISHED,
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object_kind", sa.String(20), nullable=False),
        sa.Column("object_id", sa.String(40), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True)),
        sa.Column("after", sa.JSON(none_as_null=True)),
        sa.Column("request_id", sa.String(128)),
        sa.Column("occurred_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_audit_events_tenant_id_tenants"),
    )
    op.create_index("ix_audit_events_tenant_id_occurred_at_id", "audit_events", ["tenant_id", "occurred_at", "id"])
    op.create_index("ix_audit_events_tenant_id_object_id", "audit_events", ["tenant_id", "object_id"])


def downgrade() -> None:
    """Refuse: going back would drop what tenants asked for and the audit; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
