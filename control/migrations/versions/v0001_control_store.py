"""First schema of the control store: tenants, keys, networks in use, ledgers, subjects, windows."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IS_LIVE = sa.text("removed_at is null")
_IS_OPEN = sa.text("closed_at is null")


def upgrade() -> None:
    """Create all tables, and the one row of control_state."""
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tenants"),
        sa.UniqueConstraint("name", name="uq_tenants_name"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("revoked_at", DateTimeUTC(timezone=True)),
        sa.Column("last_used_at", DateTimeUTC(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_api_keys_tenant_id_tenants"),
        sa.CheckConstraint("role in ('viewer', 'operator', 'admin')", name=op.f("ck_api_keys_role")),
    )
    op.create_index("ix_api_keys_tenant_id", "api_keys", ["tenant_id"])
    op.create_table(
        "networks_in_use",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("family", sa.String(20), nullable=False),
        sa.Column("chain_id", sa.BigInteger(), nullable=False),
        sa.Column("first_used_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_networks_in_use"),
    )
    op.create_table(
        "ledgers",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("network", sa.String(63), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("display_name", sa.Text()),
        sa.Column("description", sa.Text()),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("updated_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_ledgers"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_ledgers_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["network"], ["networks_in_use.name"], name="fk_ledgers_network_networks_in_use"),
    )
    op.create_index(
        "uq_ledgers_live_name",
        "ledgers",
        ["tenant_id", "name"],
        unique=True,
        sqlite_where=_IS_LIVE,
        postgresql_where=_IS_LIVE,
    )
    op.create_table(
        "subjects",
        sa.Column("subject_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("ledger_id", sa.String(40), nullable=False),
        sa.Column("address", sa.String(128), nullable=False),
        sa.Column("symbol", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("external_id", sa.Text()),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("updated_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
        sa.PrimaryKeyConstraint("subject_key", name="pk_subjects"),
        sa.UniqueConstraint("id", name="uq_subjects_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_subjects_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["ledger_id"], ["ledgers.id"], name="fk_subjects_ledger_id_ledgers"),
        sa.CheckConstraint("kind in ('token', 'wallet')", name=op.f("ck_subjects_kind")),
        sa.CheckConstraint("(kind = 'token') = (symbol is not null)", name=op.f("ck_subjects_symbol")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_subjects_live_identity",
        "subjects",
        ["ledger_id", "kind", "address"],
        unique=True,
        sqlite_where=_IS_LIVE,
        postgresql_where=_IS_LIVE,
    )
    op.create_index("ix_subjects_tenant_id_kind_created_at_id", "subjects", ["tenant_id", "kind", "created_at", "id"])
    op.create_table(
        "tracking_windows",
        sa.Column("window_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("subject_key", _KEY, nullable=False),
        sa.Column("opened_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("closed_at", DateTimeUTC(timezone=True)),
        sa.Column("opened_by", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("window_key", name="pk_tracking_windows"),
        sa.ForeignKeyConstraint(
            ["subject_key"], ["subjects.subject_key"], name="fk_tracking_windows_subject_key_subjects"
        ),
        sa.ForeignKeyConstraint(["opened_by"], ["api_keys.id"], name="fk_tracking_windows_opened_by_api_keys"),
        sa.CheckConstraint("closed_at is null or closed_at >= opened_at", name=op.f("ck_tracking_windows_order")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tracking_windows_subject_key", "tracking_windows", ["subject_key"])
    op.create_index(
        "uq_tracking_windows_open",
        "tracking_windows",
        ["subject_key"],
        unique=True,
        sqlite_where=_IS_OPEN,
        postgresql_where=_IS_OPEN,
    )
    op.create_table(
        "idempotency_records",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("method", sa.String(10), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("response_body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key", name="pk_idempotency_records"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_idempotency_records_tenant_id_tenants"),
    )
    op.create_index("ix_idempotency_records_created_at", "idempotency_records", ["created_at"])
    op.create_table(
        "service_secrets",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_service_secrets"),
    )
    state = op.create_table(
        "control_state",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_control_state"),
        sa.CheckConstraint("id = 1", name=op.f("ck_control_state_single_row")),
    )
    op.bulk_insert(state, [{"id": 1, "revision": 0}])


def downgrade() -> None:
    """Refuse: going back would drop what tenants configured; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
