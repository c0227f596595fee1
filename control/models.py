"""Tables of the control store.

Only structure and what the database itself must guarantee; the rules are in `access`, `ledgers`, `tokens`, `wallets`
and their neighbours. A change here needs a migration under `control/migrations/versions`.
"""

from datetime import datetime
from typing import Any, ClassVar

from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

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


class Base(DeclarativeBase):
    """Common metadata of all tables."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {datetime: DateTimeUTC(timezone=True)}


class Tenant(Base):
    """One tenant; everything else but networks and service secrets belongs to one."""

    __tablename__ = "tenants"

    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    created_at: Mapped[datetime]


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
    """A network that some ledger has referred to: pins its name to the family and chain id of that moment."""

    __tablename__ = "networks_in_use"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    family: Mapped[str] = mapped_column(String(20))
    chain_id: Mapped[int] = mapped_column(BigInteger)
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
        {"sqlite_autoincrement": True},
    )

    subject_key: Mapped[int] = mapped_column(_KEY, primary_key=True)
    id: Mapped[str] = mapped_column(String(40), unique=True)
    kind: Mapped[str] = mapped_column(String(10))
    tenant_id: Mapped[str] = mapped_column(ForeignKey("tenants.id"))
    ledger_id: Mapped[str] = mapped_column(ForeignKey("ledgers.id"))
    address: Mapped[str] = mapped_column(String(128))
    symbol: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str | None] = mapped_column(Text)
    external_id: Mapped[str | None] = mapped_column(Text)
    search_text: Mapped[str] = mapped_column(Text)
    """What `q` looks through, case-folded: databases fold only ASCII, or by their own locale."""
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
