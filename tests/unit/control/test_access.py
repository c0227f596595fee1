"""Tenants, keys and roles."""

import hashlib
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from control import access, revision, tenants
from control.access import Principal, Role
from control.errors import Conflict, Denied, Invalid, NotFound, Unauthenticated
from control.models import ApiKey
from control.store import ControlStore
from tests.unit.control.conftest import World, on_both

NOON = datetime(2024, 5, 1, 12, 0, 30, 500_000, tzinfo=UTC)


@on_both
def test_tenant_is_created_only_once(world: World) -> None:
    with pytest.raises(Conflict) as caught, world.store.write() as session:
        tenants.create(session, "acme")
    assert caught.value.existing_id == world.acme.tenant_id
    with world.store.read() as session:
        assert tenants.get_by_name(session, "acme").id == world.acme.tenant_id
        assert tenants.find_by_name(session, "nobody") is None
        with pytest.raises(NotFound):
            tenants.get_by_name(session, "nobody")


@on_both
def test_a_conflict_leaves_the_transaction_usable(world: World) -> None:
    with world.store.write() as session:
        with pytest.raises(Conflict):
            tenants.create(session, "acme")
        tenants.create(session, "third")
    with world.store.read() as session:
        assert tenants.find_by_name(session, "third") is not None


def test_a_malformed_tenant_name_is_refused(store: ControlStore) -> None:
    with pytest.raises(Invalid) as caught, store.write() as session:
        tenants.create(session, "x" * 201)
    assert caught.value.field == "name"


def test_a_key_opens_its_tenant_and_only_its_hash_is_stored(world: World) -> None:
    with world.store.write() as session:
        key, bearer = access.create_key(session, world.acme.tenant_id, "operator", NOON)
    head, key_part, secret = bearer.split("_")
    assert (head, "key_" + key_part, len(secret)) == ("lm", key.id, 64)
    with world.store.read() as session:
        principal = access.authenticate(session, bearer)
        stored = session.get_one(ApiKey, key.id)
        assert stored.secret_hash == hashlib.sha256(secret.encode()).hexdigest()
        assert stored.created_at == NOON
        assert secret not in str([getattr(stored, column.name) for column in ApiKey.__table__.columns])
    assert principal == Principal(world.acme.tenant_id, key.id, Role.OPERATOR)


def test_a_key_needs_a_known_role_and_tenant(world: World) -> None:
    with pytest.raises(Invalid) as caught, world.store.write() as session:
        access.create_key(session, world.acme.tenant_id, "owner")
    assert caught.value.field == "role"
    with pytest.raises(NotFound), world.store.write() as session:
        access.create_key(session, "ten_none", "viewer")


def test_a_wrong_key_is_refused_in_the_same_words(world: World) -> None:
    with world.store.write() as session:
        key, bearer = access.create_key(session, world.acme.tenant_id, "viewer")
        revoked, revoked_bearer = access.create_key(session, world.acme.tenant_id, "viewer")
        access.revoke_key(session, world.acme.tenant_id, revoked.id)
    last = "0" if bearer[-1] != "0" else "1"
    wrong = ["", "lm", "lm__", bearer[:-1] + last, bearer[:-1], bearer + "0", bearer.upper(), bearer + "\n", "x\x00",
             "lm_" + "0" * 26 + "_" + "0" * 64, revoked_bearer, key.secret_hash,
             f"lm_{key.id.removeprefix('key_')}_{key.secret_hash}"]  # fmt: skip
    said = set()
    with world.store.read() as session:
        for text in wrong:
            with pytest.raises(Unauthenticated) as caught:
                access.authenticate(session, text)
            said.add(caught.value.detail)
        assert access.authenticate(session, bearer).key_id == key.id
    assert len(said) == 1


@on_both
def test_key_is_revoked_once_and_only_by_its_tenant(world: World) -> None:
    with world.store.write() as session:
        key, _ = access.create_key(session, world.acme.tenant_id, "viewer")
    for tenant_id, key_id in (
        (world.other.tenant_id, key.id),
        (world.acme.tenant_id, "key_\x00"),
        (world.acme.tenant_id, "key_" + "0" * 26),
    ):
        with pytest.raises(NotFound), world.store.write() as session:
            access.revoke_key(session, tenant_id, key_id)
    with world.store.write() as session:
        access.revoke_key(session, world.acme.tenant_id, key.id, NOON)
    with world.store.write() as session:
        access.revoke_key(session, world.acme.tenant_id, key.id, NOON + timedelta(days=1))
    with world.store.read() as session:
        keys = access.list_keys(session, world.acme.tenant_id)
        assert [(stored.id, stored.revoked_at) for stored in keys] == [(world.acme.key_id, None), (key.id, NOON)]


@on_both
def test_use_is_recorded_after_one_with_the_clock_ahead(world: World) -> None:
    ahead = NOON + timedelta(days=1826)
    assert access.is_touch_due(Principal(world.acme.tenant_id, world.acme.key_id, Role.ADMIN, ahead), NOON)
    for now in (ahead, NOON):
        with world.store.write() as session:
            access.touch(session, world.acme.key_id, now)
    with world.store.read() as session:
        used = session.get_one(ApiKey, world.acme.key_id).last_used_at
    assert used == NOON.replace(second=0, microsecond=0)


@on_both
def test_use_is_recorded_at_most_once_a_minute(world: World) -> None:
    key_id = world.acme.key_id
    assert access.is_touch_due(world.acme, NOON)
    with world.store.write() as session:
        access.touch(session, key_id, NOON)
        access.touch(session, key_id, NOON - timedelta(hours=1))
    with world.store.read() as session:
        before = revision.read_revision(session)
        used = session.scalars(select(ApiKey.last_used_at).where(ApiKey.id == key_id)).one()
    assert used == NOON.replace(second=0, microsecond=0)
    principal = Principal(world.acme.tenant_id, key_id, Role.ADMIN, used)
    assert not access.is_touch_due(principal, used + timedelta(seconds=59))
    assert access.is_touch_due(principal, used + timedelta(seconds=60))
    with world.store.write() as session:
        access.touch(session, key_id, NOON + timedelta(minutes=1))
    with world.store.read() as session:
        assert session.get_one(ApiKey, key_id).last_used_at == used + timedelta(minutes=1)
        assert revision.read_revision(session) == before  # a request gives the pipeline no work


@pytest.mark.parametrize(
    ("held", "passes"),
    [("viewer", ["viewer"]), ("operator", ["viewer", "operator"]), ("admin", ["viewer", "operator", "admin"])],
)
def test_each_role_includes_the_ones_below(held: str, passes: list[str]) -> None:
    principal = Principal("ten_a", "key_a", Role(held))
    for role in Role:
        if role in passes:
            access.require(principal, role)
        else:
            with pytest.raises(Denied, match=f"needs the role {role}; the key has {held}"):
                access.require(principal, role)


def test_principal_contains_no_secret() -> None:
    assert {field.name for field in fields(Principal)} == {
        "tenant_id",
        "key_id",
        "role",
        "last_used_at",
        "revision",
        "shard",
        "shard_version",
    }
