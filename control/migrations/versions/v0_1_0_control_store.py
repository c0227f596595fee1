"""First schema of the control store."""

import sqlalchemy as sa
from alembic import op

from control.types import UtcDateTime

revision = "0.1.0"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IS_LIVE = sa.text("removed_at is null")
_IS_OPEN = sa.text("closed_at is null")
_IS_UNFINISHED = sa.text("finished_at is null")
_PRICE_TYPES = "price_type in ('Ask', 'Bid', 'Trade', 'Market', 'NAV')"


def upgrade() -> None:
    """Create all tables, and the one row of control_state; `ControlStore.migrate` makes the secrets."""
    _create_tenants()
    _create_service()
    _create_items()
    _create_sources()
    _create_pairs()
    _create_manual_prices()
    _create_subjects()
    _create_operations()
    _create_audit()
    _create_embedding()


def _create_tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_tenants"),
        sa.UniqueConstraint("name", name="uq_tenants_name"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("revoked_at", UtcDateTime()),
        sa.Column("last_used_at", UtcDateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_api_keys_tenant_id_tenants"),
        sa.CheckConstraint("role in ('viewer', 'operator', 'admin')", name=op.f("ck_api_keys_role")),
    )
    op.create_index("ix_api_keys_tenant_id", "api_keys", ["tenant_id"])
    op.create_table(
        "networks_in_use",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("family", sa.String(20), nullable=False),
        sa.Column("identity", sa.String(100), nullable=False),
        sa.Column("first_used_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_networks_in_use"),
    )


def _create_service() -> None:
    op.create_table(
        "idempotency_records",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("method", sa.String(10), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("response_body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
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
    op.create_table(
        "version_pins",
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pinned_until", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_version_pins"),
    )


def _create_items() -> None:
    op.create_table(
        "priced_items",
        sa.Column("item_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("symbol", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("item_class", sa.String(20), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
        sa.PrimaryKeyConstraint("item_key", name="pk_priced_items"),
        sa.UniqueConstraint("id", name="uq_priced_items_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_priced_items_tenant_id_tenants"),
        sa.CheckConstraint(
            "item_class in ('Currency', 'Cryptocurrency', 'Commodity', 'Equity', 'Option', 'Fund', 'Other')",
            name=op.f("ck_priced_items_item_class"),
        ),
        sqlite_autoincrement=True,
    )
    _create_live_index("uq_priced_items_live_symbol", "priced_items", ["tenant_id", "symbol"])
    op.create_table(
        "mapping_symbols",
        sa.Column("item_key", _KEY, nullable=False),
        sa.Column("source_id", sa.String(100), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("item_key", "source_id", name="pk_mapping_symbols"),
        sa.ForeignKeyConstraint(
            ["item_key"], ["priced_items.item_key"], name="fk_mapping_symbols_item_key_priced_items"
        ),
    )


def _create_sources() -> None:
    op.create_table(
        "manual_sources",
        sa.Column("source_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
        sa.PrimaryKeyConstraint("source_key", name="pk_manual_sources"),
        sa.UniqueConstraint("id", name="uq_manual_sources_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_manual_sources_tenant_id_tenants"),
        sqlite_autoincrement=True,
    )
    _create_live_index("uq_manual_sources_live_name", "manual_sources", ["tenant_id", "name"])
    op.create_table(
        "source_switches",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("source_id", sa.String(100), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "source_id", name="pk_source_switches"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_source_switches_tenant_id_tenants"),
    )


def _create_pairs() -> None:
    op.create_table(
        "price_pairs",
        sa.Column("pair_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("priced_as_key", _KEY, nullable=False),
        sa.Column("priced_in_key", _KEY, nullable=False),
        sa.Column("price_type", sa.String(10), nullable=False),
        sa.Column("max_age", sa.String(40)),
        sa.Column("max_age_seconds", sa.BigInteger()),
        sa.Column("allow_inverse", sa.Boolean(), nullable=False),
        sa.Column("bridge_key", _KEY),
        sa.Column("max_jump", sa.Text()),
        sa.Column("max_deviation", sa.Text()),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
        sa.PrimaryKeyConstraint("pair_key", name="pk_price_pairs"),
        sa.UniqueConstraint("id", name="uq_price_pairs_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_price_pairs_tenant_id_tenants"),
        _item_reference("price_pairs", "priced_as_key"),
        _item_reference("price_pairs", "priced_in_key"),
        _item_reference("price_pairs", "bridge_key"),
        sa.CheckConstraint(_PRICE_TYPES, name=op.f("ck_price_pairs_price_type")),
        sa.CheckConstraint("(max_age is null) = (max_age_seconds is null)", name=op.f("ck_price_pairs_max_age")),
        sqlite_autoincrement=True,
    )
    _create_live_index(
        "uq_price_pairs_live_identity", "price_pairs", ["tenant_id", "priced_as_key", "priced_in_key", "price_type"]
    )
    op.create_table(
        "pair_sources",
        sa.Column("pair_key", _KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.String(100), nullable=False),
        sa.PrimaryKeyConstraint("pair_key", "position", name="pk_pair_sources"),
        sa.UniqueConstraint("pair_key", "source_id", name="uq_pair_sources_pair_key_source_id"),
        sa.ForeignKeyConstraint(["pair_key"], ["price_pairs.pair_key"], name="fk_pair_sources_pair_key_price_pairs"),
    )
    op.create_table(
        "price_reviews",
        sa.Column("pair_key", _KEY, nullable=False),
        sa.Column("price_id", sa.String(60), nullable=False),
        sa.Column("decision", sa.String(10), nullable=False),
        sa.Column("decided_by", sa.String(40), nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("pair_key", "price_id", name="pk_price_reviews"),
        sa.ForeignKeyConstraint(["pair_key"], ["price_pairs.pair_key"], name="fk_price_reviews_pair_key_price_pairs"),
        sa.ForeignKeyConstraint(["decided_by"], ["api_keys.id"], name="fk_price_reviews_decided_by_api_keys"),
        sa.CheckConstraint("decision in ('Accepted', 'Rejected')", name=op.f("ck_price_reviews_decision")),
    )


def _create_manual_prices() -> None:
    op.create_table(
        "supported_pairs",
        sa.Column("supported_pair_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("source_key", _KEY, nullable=False),
        sa.Column("priced_as_key", _KEY, nullable=False),
        sa.Column("priced_in_key", _KEY, nullable=False),
        sa.Column("price_type", sa.String(10), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
        sa.PrimaryKeyConstraint("supported_pair_key", name="pk_supported_pairs"),
        sa.UniqueConstraint("id", name="uq_supported_pairs_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_supported_pairs_tenant_id_tenants"),
        sa.ForeignKeyConstraint(
            ["source_key"], ["manual_sources.source_key"], name="fk_supported_pairs_source_key_manual_sources"
        ),
        _item_reference("supported_pairs", "priced_as_key"),
        _item_reference("supported_pairs", "priced_in_key"),
        sa.CheckConstraint(_PRICE_TYPES, name=op.f("ck_supported_pairs_price_type")),
        sqlite_autoincrement=True,
    )
    _create_live_index(
        "uq_supported_pairs_live_identity",
        "supported_pairs",
        ["source_key", "priced_as_key", "priced_in_key", "price_type"],
    )
    op.create_table(
        "manual_prices",
        sa.Column("manual_price_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("supported_pair_key", _KEY, nullable=False),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("effective_from", UtcDateTime(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("manual_price_key", name="pk_manual_prices"),
        sa.UniqueConstraint("id", name="uq_manual_prices_id"),
        sa.UniqueConstraint(
            "supported_pair_key",
            "effective_from",
            "revision",
            name="uq_manual_prices_supported_pair_key_effective_from_revision",
        ),
        sa.ForeignKeyConstraint(
            ["supported_pair_key"],
            ["supported_pairs.supported_pair_key"],
            name="fk_manual_prices_supported_pair_key_supported_pairs",
        ),
        sa.ForeignKeyConstraint(["created_by"], ["api_keys.id"], name="fk_manual_prices_created_by_api_keys"),
        sqlite_autoincrement=True,
    )


def _item_reference(table: str, column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], ["priced_items.item_key"], name=f"fk_{table}_{column}_priced_items")


def _create_live_index(name: str, table: str, columns: list[str]) -> None:
    op.create_index(name, table, columns, unique=True, sqlite_where=_IS_LIVE, postgresql_where=_IS_LIVE)


def _create_subjects() -> None:
    op.create_table(
        "ledgers",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("network", sa.String(63), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("display_name", sa.Text()),
        sa.Column("description", sa.Text()),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
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
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("removed_at", UtcDateTime()),
        sa.Column("pair_key", _KEY),
        sa.PrimaryKeyConstraint("subject_key", name="pk_subjects"),
        sa.UniqueConstraint("id", name="uq_subjects_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_subjects_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["ledger_id"], ["ledgers.id"], name="fk_subjects_ledger_id_ledgers"),
        sa.ForeignKeyConstraint(["pair_key"], ["price_pairs.pair_key"], name="fk_subjects_pair_key_price_pairs"),
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
    op.create_index("ix_subjects_pair_key", "subjects", ["pair_key"])
    op.create_index("ix_subjects_tenant_id_kind_created_at_id", "subjects", ["tenant_id", "kind", "created_at", "id"])
    op.create_table(
        "tracking_windows",
        sa.Column("window_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("subject_key", _KEY, nullable=False),
        sa.Column("opened_at", UtcDateTime(), nullable=False),
        sa.Column("closed_at", UtcDateTime()),
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


def _create_operations() -> None:
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
        sa.Column("estimated_end", UtcDateTime()),
        sa.Column("error", sa.Text()),
        sa.Column("cancel_requested_at", UtcDateTime()),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime()),
        sa.Column("finished_at", UtcDateTime()),
        sa.Column("reported_at", UtcDateTime(), nullable=False),
        sa.Column("pair_key", _KEY),
        sa.Column("result", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("operation_key", name="pk_operations"),
        sa.UniqueConstraint("id", name="uq_operations_id"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_operations_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["subject_key"], ["subjects.subject_key"], name="fk_operations_subject_key_subjects"),
        sa.ForeignKeyConstraint(["created_by"], ["api_keys.id"], name="fk_operations_created_by_api_keys"),
        sa.ForeignKeyConstraint(["pair_key"], ["price_pairs.pair_key"], name="fk_operations_pair_key_price_pairs"),
        sa.CheckConstraint("kind in ('History', 'PriceDiscovery')", name=op.f("ck_operations_kind")),
        sa.CheckConstraint("(kind = 'PriceDiscovery') = (pair_key is not null)", name=op.f("ck_operations_pair_key")),
        sa.CheckConstraint(
            "status in ('Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled')",
            name=op.f("ck_operations_status"),
        ),
        sa.CheckConstraint("native in ('full', 'balance-only')", name=op.f("ck_operations_native")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_operations_subject_key", "operations", ["subject_key"])
    op.create_index("ix_operations_pair_key", "operations", ["pair_key"])
    op.create_index(
        "ix_operations_unfinished",
        "operations",
        ["operation_key"],
        sqlite_where=_IS_UNFINISHED,
        postgresql_where=_IS_UNFINISHED,
    )


def _create_audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object_kind", sa.String(20), nullable=False),
        sa.Column("object_id", sa.String(100), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True)),
        sa.Column("after", sa.JSON(none_as_null=True)),
        sa.Column("request_id", sa.String(128)),
        sa.Column("occurred_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_audit_events_tenant_id_tenants"),
    )
    op.create_index("ix_audit_events_tenant_id_occurred_at_id", "audit_events", ["tenant_id", "occurred_at", "id"])
    op.create_index("ix_audit_events_tenant_id_object_id", "audit_events", ["tenant_id", "object_id"])


def _create_embedding() -> None:
    op.create_table(
        "tenant_embeddings",
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("embed_id", sa.String(40), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("changed_at", UtcDateTime(), nullable=False),
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
