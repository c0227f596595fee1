"""Pricing: items, sources, pairs, manual prices, links of tokens, and price discoveries as operations."""

import sqlalchemy as sa
from advanced_alchemy.types import DateTimeUTC
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IS_LIVE = sa.text("removed_at is null")
_PRICE_TYPES = "price_type in ('Ask', 'Bid', 'Trade', 'Market', 'NAV')"


def upgrade() -> None:
    """Create the tables of pricing; nothing is priced before."""
    _create_items()
    _create_sources()
    _create_pairs()
    _create_manual_prices()
    op.add_column(
        "subjects",
        sa.Column("pair_key", _KEY, sa.ForeignKey("price_pairs.pair_key", name="fk_subjects_pair_key_price_pairs")),
        inline_references=True,  # other tables refer to subjects, so that SQLite cannot build it anew
    )
    op.create_index("ix_subjects_pair_key", "subjects", ["pair_key"])
    with op.batch_alter_table("operations", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(sa.Column("pair_key", _KEY))
        batch.add_column(sa.Column("result", sa.JSON(none_as_null=True)))
        batch.create_foreign_key("fk_operations_pair_key_price_pairs", "price_pairs", ["pair_key"], ["pair_key"])
        batch.drop_constraint(op.f("ck_operations_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_operations_kind"), "kind in ('History', 'PriceDiscovery')")
        batch.create_check_constraint(
            op.f("ck_operations_pair_key"), "(kind = 'PriceDiscovery') = (pair_key is not null)"
        )
    op.create_index("ix_operations_pair_key", "operations", ["pair_key"])
    with op.batch_alter_table("audit_events") as batch:
        batch.alter_column("object_id", existing_type=sa.String(40), type_=sa.String(100), existing_nullable=False)


def _create_items() -> None:
    op.create_table(
        "priced_items",
        sa.Column("item_key", _KEY, nullable=False, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("symbol", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("item_class", sa.String(20), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("updated_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
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
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("updated_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
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
        sa.Column("changed_at", DateTimeUTC(timezone=True), nullable=False),
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
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("updated_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
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
        sa.Column("decided_at", DateTimeUTC(timezone=True), nullable=False),
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
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("removed_at", DateTimeUTC(timezone=True)),
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
        sa.Column("effective_from", DateTimeUTC(timezone=True), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text()),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", DateTimeUTC(timezone=True), nullable=False),
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


def downgrade() -> None:
    """Refuse: going back would drop what tenants configured and entered; restore a backup instead."""
    raise RuntimeError("restore a backup made before the migration")
