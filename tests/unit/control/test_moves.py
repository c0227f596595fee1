"""Moves of tenants between shards, as the control store records them."""

import pytest
from sqlalchemy.orm import Session

from control import access, moves, tenants
from control.access import Principal
from control.errors import Conflict, Invalid
from control.models import Tenant
from control.moves import Bundle
from control.snapshot import networks_with_subjects, read_manual_prices, read_snapshot
from tests.unit.control.conftest import World, on_both
from tests.unit.control.test_shards import sharded

__all__ = ["sharded"]

OBJECT = ("moves/x/hash.duckdb", 10, "hash")


def tenant_of(session: Session, principal: Principal) -> Tenant:
    return tenants.get(session, principal.tenant_id)


def begin(world: World, principal: Principal, to: int = 2) -> None:
    with world.store.write() as session:
        moves.begin(session, tenant_of(session, principal), 1, to)


def record(world: World, principal: Principal, name: str = OBJECT[0]) -> str | None:
    with world.store.write() as session:
        return moves.record(session, Bundle(principal.tenant_id, name, *OBJECT[1:]), 1, 2)


@on_both
def test_tenant_is_held_then_collected_by_both_then_switched(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    mover = sharded[1].tenant_id
    begin(world, sharded[1])
    with world.store.read() as session:
        held = [row.tenant_id for row in read_snapshot(session, 1).tables["control_held_tenants"]]
        assert (held, moves.find_arriving(session, 2), networks_with_subjects(session, 2)) == ([mover], [], set())
        assert [moves.find_leaving(session, shard) for shard in (1, 2)] == [{mover: "in shard 1"}, {}]
    assert record(world, sharded[1]) is None
    assert record(world, sharded[1], "later") == OBJECT[0]
    with world.store.read() as session:
        assert moves.find_arriving(session, 2) == [Bundle(mover, "later", *OBJECT[1:])]
        assert networks_with_subjects(session, 2) == {"polygon"}
        # Only imported tenants are in the snapshot.
        assert read_snapshot(session, 2).tables["control_tenants"] == []
        snapshot = read_snapshot(session, 2, [mover, sharded[0].tenant_id])
        assert [row.tenant_id for row in snapshot.tables["control_tenants"]] == [mover]
        assert snapshot.tables["control_held_tenants"] == []
        assert len(snapshot.manual_sources) == 1
        assert [len(read_manual_prices(session, 2, 99, [mover], new)) for new in ([], [mover])] == [0, 1]
        assert len(read_snapshot(session, 1).tables["control_tenants"]) == 1
    with world.store.write() as session:
        assert not moves.finish(session, mover, 2, OBJECT[0], 7)
        assert not moves.finish(session, mover, 3, "later", 7)
        assert moves.finish(session, mover, 2, "later", 7)
        assert not moves.finish(session, mover, 2, "later", 7)
    with world.store.read() as session:
        tenant = tenants.get(session, mover)
        assert (tenant.shard, tenant.shard_version, tenant.next_shard, tenant.move_object) == (2, 7, None, None)
        assert [moves.newest_switch(session, shard) for shard in (1, 2)] == [0, 7]
        assert (moves.find_left(session, 1), moves.find_left(session, 2)) == ({mover}, set())
        assert mover in moves.find_residents(session, 2)
        assert read_snapshot(session, 1).tables["control_tenants"] == []


@on_both
def test_tenant_moves_again_once_its_old_shard_has_deleted_its_rows(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    mover = sharded[1].tenant_id
    begin(world, sharded[1])
    record(world, sharded[1])
    with world.store.write() as session:
        moves.finish(session, mover, 2, OBJECT[0], 7)
    for to in (1, 3):
        with world.store.write() as session, pytest.raises(Conflict, match="shard 1 still has rows of tenant"):
            moves.begin(session, tenant_of(session, sharded[1]), 2, to)
    with world.store.write() as session:
        moves.forget_left(session, mover, 2)
        assert moves.find_left(session, 1) == {mover}
        moves.forget_left(session, mover, 1)
        assert moves.find_left(session, 1) == set()
    with world.store.write() as session:
        moves.begin(session, tenant_of(session, sharded[1]), 2, 3)
        assert tenant_of(session, sharded[1]).next_shard == 3


@on_both
def test_cancelled_move_can_neither_be_recorded_nor_finished(
    world: World, sharded: tuple[Principal, Principal]
) -> None:
    begin(world, sharded[1])
    record(world, sharded[1])
    with world.store.write() as session:
        moves.cancel(session, tenant_of(session, sharded[1]))
        assert not moves.finish(session, sharded[1].tenant_id, 2, OBJECT[0], 7)
        assert moves.find_arriving(session, 2) == []
    with pytest.raises(Conflict, match="cancelled or finished"):
        record(world, sharded[1])
    with world.store.write() as session, pytest.raises(Conflict, match="is not moving"):
        moves.cancel(session, tenant_of(session, sharded[1]))


@on_both
def test_wrong_shards_are_refused(world: World, sharded: tuple[Principal, Principal]) -> None:
    with world.store.write() as session:
        for to in (-1, 1, 10_000):
            with pytest.raises(Invalid, match="the new shard must be"):
                moves.begin(session, tenant_of(session, sharded[1]), 1, to)
        with pytest.raises(Conflict, match="is in shard 1"):
            moves.begin(session, tenant_of(session, sharded[1]), 0, 2)
    begin(world, sharded[1])
    begin(world, sharded[1])
    with pytest.raises(Conflict, match="is moving to another shard"):
        begin(world, sharded[1], 3)


@on_both
def test_keys_are_those_of_the_tenant_alone(world: World, sharded: tuple[Principal, Principal]) -> None:
    with world.store.read() as session:
        first, second = (moves.read_keys(session, owner.tenant_id) for owner in sharded)
    assert [len(keys) for keys in second[1:]] == [1, 3, 1, 1]
    for ours, theirs in zip(first[1:], second[1:], strict=True):
        assert not set(ours) & set(theirs)


@on_both
def test_principal_names_first_version_of_new_shard(world: World, sharded: tuple[Principal, Principal]) -> None:
    with world.store.write() as session:
        _, bearer = access.create_key(session, sharded[1].tenant_id, access.Role.VIEWER)
    with world.store.read() as session:
        found = access.authenticate(session, bearer)
    assert (found.shard, found.shard_version) == (1, None)
    begin(world, sharded[1])
    record(world, sharded[1])
    with world.store.write() as session:
        moves.finish(session, sharded[1].tenant_id, 2, OBJECT[0], 7)
    with world.store.read() as session:
        found = access.authenticate(session, bearer)
    assert (found.shard, found.shard_version) == (2, 7)
