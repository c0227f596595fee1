"""Tables of the control store.

They have the structure and the guarantees of the database. The rules are in `access`, `ledgers`, `tokens`, `wallets`,
`pricing` and the modules beside them. A change here needs a migration under `control/migrations/versions`.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from control.types import UtcDateTime

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

# SQLite numbers rows by itself only in a column of its type INTEGER, which has 64 bits there too.
_KEY = BigInteger().with_variant(Integer(), "sqlite")

# Partial unique indexes: a removed object frees its identity.
_IS_LIVE = text("removed_at is null")
_IS_OPEN = text("closed_at is null")
_IS_UNFINISHED = text("finished_at is null")


class Base(DeclarativeBase):
    """Common metadata of all tables."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: UtcDateTime()}


class Tenant(Base):
    """One tenant; everything else but networks and service secrets belongs to one.

    `revision` counts its configuration writes.
    """

    __tablename__ = "tenants"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime]
    revision: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    stored_prices: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """Number of its manual prices: counting a million rows at each write would take too long."""
    max_stored_prices: Mapped[int | None] = mapped_column(BigInteger)
    """Limit of its own; null: the limit of the installation. The same holds for `max_objects`."""
    max_objects: Mapped[int | None] = mapped_column(BigInteger)
    shard: Mapped[int] = mapped_column(Integer, default=0, server_default="0")
    """The warehouse in which its marts are built."""
    shard_version: Mapped[int | None] = mapped_column(BigInteger)
    """First published version of that shard with a tenant that moved there; null if it was created there."""
    previous_shard: Mapped[int | None] = mapped_column(Integer)
    """Shard that it left, until the pipeline of that shard has deleted its rows; else null."""
    next_shard: Mapped[int | None] = mapped_column(Integer)
    """Shard to which it is moving; null if it is not."""
    move_object: Mapped[str | None] = mapped_column(Text)
    """Name of the object with its rows in the store of versions. Null until it is stored, as the two columns below."""
    move_bytes: Mapped[int | None] = mapped_column(BigInteger)
    move_sha256: Mapped[str | None] = mapped_column(String(64))


class ApiKey(Base):
    """A bearer key of one tenant with one role; of its secret only the SHA-256 is kept, in hexadecimal."""

    __tablename__ = "api_keys"
    __table_args__ = (CheckConstraint("role in ('viewer', 'operator', 'admin')", name="role"),)

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), index=True)
    role: Mapped[str] = mapped_column(String(20))
    secret_hash: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class NetworkInUse(Base):
    """A network that some ledger has referred to: pins its name to the family and chain of that moment."""

    __tablename__ = "networks_in_use"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    family: Mapped[str] = mapped_column(String(20))
    identity: Mapped[str] = mapped_column(String(100))
    first_used_at: Mapped[datetime]


class Ledger(Base):
    """A tenant's name for a network."""

    __tablename__ = "ledgers"
    __table_args__ = (
        Index(
            "uq_ledgers_live_name",
            "tenant_id",
            "name",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    network: Mapped[str] = mapped_column(ForeignKey("networks_in_use.name"))
    name: Mapped[str] = mapped_column(String(63))
    display_name: Mapped[str | None] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Subject(Base):
    """A tenant's token or wallet; `subject_key` is its narrow key in the warehouse and is never used twice."""

    __tablename__ = "subjects"
    __table_args__ = (
        CheckConstraint("kind in ('token', 'wallet')", name="kind"),
        CheckConstraint("(kind = 'token') = (symbol is not null)", name="symbol"),
        Index(
            "uq_subjects_live_identity",
            "ledger_id",
            "kind",
            "address",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
        Index("ix_subjects_tenant_id_kind_created_at_id", "tenant_id", "kind", "created_at", "id"),
        Index("ix_subjects_live_tenant_id", "tenant_id", sqlite_where=_IS_LIVE, postgresql_where=_IS_LIVE),
        {"sqlite_autoincrement": True},
    )

    subject_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    kind: Mapped[str] = mapped_column(String(10))
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    ledger_id: Mapped[str] = mapped_column(ForeignKey("ledgers.id"))
    address: Mapped[str] = mapped_column(String(128))
    """The address in stored form; of a wallet of keys `keys:` and their identity."""
    descriptor: Mapped[str | None] = mapped_column(Text)
    """The canonical descriptor of a wallet of keys, which only administrators may read."""
    shown_as: Mapped[str | None] = mapped_column(Text)
    """The descriptor with shortened keys, which all answers show; null for a single address."""
    symbol: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str | None] = mapped_column(Text)
    external_id: Mapped[str | None] = mapped_column(Text)
    pair_key: Mapped[int | None] = mapped_column(ForeignKey("price_pairs.pair_key"), index=True)
    """The pair that a token is linked to, which prices it."""
    search_text: Mapped[str] = mapped_column(Text)
    """The text for the filter `q`, case-folded: databases fold only ASCII, or by their own locale."""
    metadata_requested_at: Mapped[datetime | None]
    """Latest request to read a token's contract again."""
    metadata_accepted_at: Mapped[datetime | None]
    """Latest request that accepts a change of the contract's metadata."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class TrackingWindow(Base):
    """A time in which a subject is tracked: [opened_at, closed_at) in whole seconds; at most one is open."""

    __tablename__ = "tracking_windows"
    __table_args__ = (
        CheckConstraint("closed_at is null or closed_at >= opened_at", name="order"),
        Index("uq_tracking_windows_open", "subject_key", unique=True, sqlite_where=_IS_OPEN, postgresql_where=_IS_OPEN),
        {"sqlite_autoincrement": True},
    )

    window_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    subject_key: Mapped[int] = mapped_column(ForeignKey("subjects.subject_key"), index=True)
    opened_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    opened_by: Mapped[str] = mapped_column(ForeignKey("api_keys.id"))


class Operation(Base):
    """Work that a tenant asked for and the pipeline does and reports on."""

    __tablename__ = "operations"
    __table_args__ = (
        CheckConstraint("kind in ('History', 'PriceDiscovery', 'Attestation')", name="kind"),
        CheckConstraint("(kind = 'PriceDiscovery') = (pair_key is not null)", name="pair_key"),
        CheckConstraint("status in ('Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled')", name="status"),
        CheckConstraint("native in ('full', 'balance-only')", name="native"),
        Index(
            "ix_operations_unfinished", "operation_key", sqlite_where=_IS_UNFINISHED, postgresql_where=_IS_UNFINISHED
        ),
        {"sqlite_autoincrement": True},
    )

    operation_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    kind: Mapped[str] = mapped_column(String(20))
    subject_key: Mapped[int | None] = mapped_column(ForeignKey("subjects.subject_key"), index=True)
    pair_key: Mapped[int | None] = mapped_column(ForeignKey("price_pairs.pair_key"), index=True)
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON)
    """What was asked for.

    Of a history request `from`, `to` (canonical texts) and `native`, null where left open; of a price discovery `from`,
    `to` (instants), `windowSize` and `multiplier` (decimal text); of an attestation `asOf` (canonical text).
    """
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """What came of it so far.

    Of a price discovery `pricesStored` and `missing`; of a history request and an attestation `waitsUntil`, an instant,
    while it waits for its network's budget of requests; of an attestation `attestationNumber`, too.
    """
    status: Mapped[str] = mapped_column(String(20))
    progress_done: Mapped[int] = mapped_column(BigInteger)
    """Blocks; of a price discovery windows, each counted once per source; of an attestation balances."""
    progress_total: Mapped[int | None] = mapped_column(BigInteger)
    from_block: Mapped[int | None] = mapped_column(BigInteger)
    to_block: Mapped[int | None] = mapped_column(BigInteger)
    native: Mapped[str | None] = mapped_column(String(20))
    """The resolved mode of collecting native value."""
    note: Mapped[str | None] = mapped_column(Text)
    rate: Mapped[str | None] = mapped_column(Text)
    """Blocks per second, decimal text."""
    estimated_end: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    cancel_requested_at: Mapped[datetime | None]
    created_by: Mapped[str] = mapped_column(ForeignKey("api_keys.id"))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    reported_at: Mapped[datetime]
    """When anything in this row last changed."""


class PricedItem(Base):
    """Something that has a price or that prices are expressed in; `symbol` names it within its tenant."""

    __tablename__ = "priced_items"
    __table_args__ = (
        CheckConstraint(
            "item_class in ('Currency', 'Cryptocurrency', 'Commodity', 'Equity', 'Option', 'Fund', 'Other')",
            name="item_class",
        ),
        Index(
            "uq_priced_items_live_symbol",
            "tenant_id",
            "symbol",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
        {"sqlite_autoincrement": True},
    )

    item_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    symbol: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(Text)
    item_class: Mapped[str] = mapped_column(String(20))
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class MappingSymbol(Base):
    """The symbol under which a price source knows an item, where that is not the item's own."""

    __tablename__ = "mapping_symbols"

    item_key: Mapped[int] = mapped_column(ForeignKey("priced_items.item_key"), primary_key=True)
    source_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    """Of a preconfigured source or a manual one; so are all `source_id` below."""
    symbol: Mapped[str] = mapped_column(Text)


class ManualSource(Base):
    """A price source with prices that the tenant enters; preconfigured ones are defined in `control.pricing`."""

    __tablename__ = "manual_sources"
    __table_args__ = (
        Index(
            "uq_manual_sources_live_name",
            "tenant_id",
            "name",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
        {"sqlite_autoincrement": True},
    )

    source_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    name: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class SourceSwitch(Base):
    """The tenant's switch of a source; without one a manual source is disabled and a preconfigured one enabled."""

    __tablename__ = "source_switches"

    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    source_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    is_enabled: Mapped[bool]
    changed_at: Mapped[datetime]


class PricePair(Base):
    """A pair of items, the type of its price, and its rules."""

    __tablename__ = "price_pairs"
    __table_args__ = (
        CheckConstraint("price_type in ('Ask', 'Bid', 'Trade', 'Market', 'NAV')", name="price_type"),
        CheckConstraint("(max_age is null) = (max_age_seconds is null)", name="max_age"),
        Index(
            "uq_price_pairs_live_identity",
            "tenant_id",
            "priced_as_key",
            "priced_in_key",
            "price_type",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
        {"sqlite_autoincrement": True},
    )

    pair_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    priced_as_key: Mapped[int] = mapped_column(ForeignKey("priced_items.item_key"))
    priced_in_key: Mapped[int] = mapped_column(ForeignKey("priced_items.item_key"))
    price_type: Mapped[str] = mapped_column(String(10))
    max_age: Mapped[str | None] = mapped_column(String(40))
    """ISO 8601 duration as written; null is no limit."""
    max_age_seconds: Mapped[int | None] = mapped_column(BigInteger)
    allow_inverse: Mapped[bool]
    bridge_key: Mapped[int | None] = mapped_column(ForeignKey("priced_items.item_key"))
    max_jump: Mapped[str | None] = mapped_column(Text)
    """Percent, decimal text; so is `max_deviation`."""
    max_deviation: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class PairSource(Base):
    """A source of a pair; the least position is asked first."""

    __tablename__ = "pair_sources"
    __table_args__ = (UniqueConstraint("pair_key", "source_id"),)

    pair_key: Mapped[int] = mapped_column(ForeignKey("price_pairs.pair_key"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source_id: Mapped[str] = mapped_column(String(100))


class SupportedPair(Base):
    """A pair for which a manual source has prices."""

    __tablename__ = "supported_pairs"
    __table_args__ = (
        CheckConstraint("price_type in ('Ask', 'Bid', 'Trade', 'Market', 'NAV')", name="price_type"),
        Index(
            "uq_supported_pairs_live_identity",
            "source_key",
            "priced_as_key",
            "priced_in_key",
            "price_type",
            unique=True,
            sqlite_where=_IS_LIVE,
            postgresql_where=_IS_LIVE,
        ),
        Index("ix_supported_pairs_live_tenant_id", "tenant_id", sqlite_where=_IS_LIVE, postgresql_where=_IS_LIVE),
        {"sqlite_autoincrement": True},
    )

    supported_pair_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    source_key: Mapped[int] = mapped_column(ForeignKey("manual_sources.source_key"))
    priced_as_key: Mapped[int] = mapped_column(ForeignKey("priced_items.item_key"))
    priced_in_key: Mapped[int] = mapped_column(ForeignKey("priced_items.item_key"))
    price_type: Mapped[str] = mapped_column(String(10))
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class ManualPrice(Base):
    """A price that a tenant entered, never changed; of those for one instant the greatest revision counts."""

    __tablename__ = "manual_prices"
    __table_args__ = (
        UniqueConstraint("supported_pair_key", "effective_from", "revision"),
        {"sqlite_autoincrement": True},
    )

    manual_price_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    supported_pair_key: Mapped[int] = mapped_column(ForeignKey("supported_pairs.supported_pair_key"))
    price: Mapped[str] = mapped_column(Text)
    """Canonical decimal text, at most 18 decimals."""
    effective_from: Mapped[datetime]
    revision: Mapped[int]
    note: Mapped[str | None] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(ForeignKey("api_keys.id"))
    created_at: Mapped[datetime]


class PriceReview(Base):
    """An operator's word on a price that a pair's guards stopped; `price_id` is the marts' id of the price."""

    __tablename__ = "price_reviews"
    __table_args__ = (CheckConstraint("decision in ('Accepted', 'Rejected')", name="decision"),)

    pair_key: Mapped[int] = mapped_column(ForeignKey("price_pairs.pair_key"), primary_key=True)
    price_id: Mapped[str] = mapped_column(String(60), primary_key=True)
    decision: Mapped[str] = mapped_column(String(10))
    decided_by: Mapped[str] = mapped_column(ForeignKey("api_keys.id"))
    decided_at: Mapped[datetime]


class TenantEmbedding(Base):
    """How a tenant's reports are embedded; `embed_id` is public, and a new one ends every link made before."""

    __tablename__ = "tenant_embeddings"

    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    embed_id: Mapped[str] = mapped_column(String(40), unique=True)
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class EmbedOrigin(Base):
    """An origin with pages that may embed a tenant's reports, in the form of `control.origins`."""

    __tablename__ = "embed_origins"
    __table_args__ = (UniqueConstraint("tenant_id", "origin"),)

    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    origin: Mapped[str] = mapped_column(Text)


class AuditEvent(Base):
    """One configuration write: who changed what, from what to what; never a secret."""

    __tablename__ = "audit_events"
    __table_args__ = (
        Index("ix_audit_events_tenant_id_occurred_at_id", "tenant_id", "occurred_at", "id"),
        Index("ix_audit_events_tenant_id_object_id", "tenant_id", "object_id"),
    )

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    actor: Mapped[str] = mapped_column(String(40))
    """Id of the key, or `cli`."""
    action: Mapped[str] = mapped_column(String(40))
    object_kind: Mapped[str] = mapped_column(String(20))
    object_id: Mapped[str] = mapped_column(String(100))
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    request_id: Mapped[str | None] = mapped_column(String(128))
    client_address: Mapped[str | None] = mapped_column(String(45))
    occurred_at: Mapped[datetime]


class IdempotencyRecord(Base):
    """The first answer to a POST with an Idempotency-Key, to be replayed."""

    __tablename__ = "idempotency_records"

    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    method: Mapped[str] = mapped_column(String(10))
    path: Mapped[str] = mapped_column(Text)
    body_hash: Mapped[str] = mapped_column(String(64))
    status: Mapped[int]
    response_body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(index=True)


class ServiceSecret(Base):
    """A secret of the whole service, made once when the store is migrated."""

    __tablename__ = "service_secrets"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary)


class ControlState(Base):
    """One row: how many configuration writes there have been, so that a reader sees cheaply that something changed."""

    __tablename__ = "control_state"
    __table_args__ = (CheckConstraint("id = 1", name="single_row"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    revision: Mapped[int] = mapped_column(BigInteger)


class VersionPin(Base):
    """A published version that cursors of a tenant hold; it is not removed before `pinned_until`."""

    __tablename__ = "version_pins"

    version: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"), primary_key=True)
    pinned_until: Mapped[datetime]


class PublishedVersion(Base):
    """A published version in the store of versions, while API nodes may read it."""

    __tablename__ = "published_versions"

    shard: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    object_name: Mapped[str] = mapped_column(Text)
    byte_count: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    pointer: Mapped[str] = mapped_column(Text)
    """Content of the pointer's file, which API nodes keep beside their copy of the version."""
    published_at: Mapped[datetime]


class Shard(Base):
    """A shard with a published version, and the version in force; it moves by compare-and-swap."""

    __tablename__ = "shards"
    __table_args__ = (
        ForeignKeyConstraint(["shard", "version"], ["published_versions.shard", "published_versions.version"]),
    )

    shard: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    version: Mapped[int] = mapped_column(BigInteger)


class RequestWindow(Base):
    """Requests of a key in its last window of one minute, counted for all API nodes."""

    __tablename__ = "request_windows"

    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    window_number: Mapped[int] = mapped_column(BigInteger)
    """Minutes since 1970 by the database's clock."""
    requests: Mapped[int] = mapped_column(BigInteger)
