"""Rules of tokens and wallets: creation, lists, tracking windows."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from control import ledgers, revision, subjects, tokens, wallets
from control.access import Principal, Role
from control.errors import Conflict, Denied, Invalid, NotFound
from control.ledgers import LedgerPut
from control.models import Subject, TrackingWindow
from control.pages import After
from control.subjects import Kind, SubjectFilters, SubjectRow, TokenCreate, TokenPatch, WalletCreate, WalletPatch
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.second_writer import start_waiting

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"


def address(number: int) -> str:
    return f"0x{number:040x}"


@pytest.fixture
def main(world: World) -> str:
    """Create a ledger «main» for both tenants; return the id of acme's."""
    with world.store.write() as session:
        ledgers.put(session, world.other, world.networks, "ethereum", LedgerPut(name="main"))
        return ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="main"))[0].id


def add_token(world: World, ledger_id: str = USDC, **values: Any) -> SubjectRow:
    given = {"ledger": "main", "symbol": "T"} | values
    now = given.pop("now", None)
    with world.store.write() as session:
        return tokens.create(session, world.acme, world.networks, TokenCreate(ledger_id=ledger_id, **given), now)


def add_wallet(world: World, ledger_id: str = USDC, **values: Any) -> SubjectRow:
    given = {"ledger": "main"} | values
    now = given.pop("now", None)
    with world.store.write() as session:
        return wallets.create(session, world.acme, world.networks, WalletCreate(ledger_id=ledger_id, **given), now)


def track(world: World, token: SubjectRow, enabled: bool, now: datetime, **values: Any) -> SubjectRow:
    with world.store.write() as session:
        return subjects.set_tracking(session, world.acme, token, enabled, now, **values)


def spans(world: World, subject: SubjectRow) -> list[tuple[datetime, datetime | None]]:
    with world.store.read() as session:
        return [(window.opened_at, window.closed_at) for window in subjects.windows(session, subject.subject_key)]


def count(world: World) -> int:
    with world.store.read() as session:
        return session.execute(select(func.count()).select_from(Subject)).scalar_one()


def test_a_token_is_stored_disabled_with_its_address_in_stored_form(world: World, main: str) -> None:
    token = add_token(world, symbol="USDC", external_id="ext-1", name="USD Coin", now=NOON)
    assert token == SubjectRow(
        subject_key=token.subject_key,
        id=token.id,
        kind=Kind.TOKEN,
        tenant_id=world.acme.tenant_id,
        ledger_id=main,
        ledger_name="main",
        network="ethereum",
        family="evm",
        address=USDC.lower(),
        shown_as=None,
        symbol="USDC",
        name="USD Coin",
        external_id="ext-1",
        is_tracked=False,
        pair_key=None,
        pair_id=None,
        priced_as=None,
        priced_in=None,
        created_at=NOON,
        updated_at=NOON,
    )
    assert (token.presented_address, token.tracking_status, token.id[:4]) == (USDC, "disabled", "tok_")
    assert spans(world, token) == []
    with world.store.read() as session:
        assert tokens.get(session, world.acme.tenant_id, token.id) == token


def test_a_wallet_has_no_symbol_and_the_same_address_may_be_a_token(world: World, main: str) -> None:
    token = add_token(world)
    wallet = add_wallet(world, ledger=main)
    assert (wallet.symbol, wallet.kind, wallet.id[:4], wallet.address) == (None, Kind.WALLET, "wal_", token.address)
    assert wallet.subject_key != token.subject_key


@on_both
def test_another_tenants_and_another_kinds_ids_do_not_exist(world: World, main: str) -> None:
    token = add_token(world)
    with world.store.read() as session:
        for tenant_id, token_id in (
            (world.other.tenant_id, token.id),
            (world.acme.tenant_id, "tok_" + "0" * 26),
            (world.acme.tenant_id, "tok_\x00"),
            (world.acme.tenant_id, token.id.upper()),
        ):
            with pytest.raises(NotFound):
                tokens.get(session, tenant_id, token_id)
        with pytest.raises(NotFound):
            wallets.get(session, world.acme.tenant_id, token.id)
        assert tokens.list_page(session, world.other.tenant_id, world.networks, SubjectFilters()).rows == ()


@on_both
@pytest.mark.parametrize("add", [add_token, add_wallet])
def test_a_duplicate_names_the_existing_one_in_any_form_of_the_address(
    world: World, main: str, add: Callable[..., SubjectRow]
) -> None:
    first = add(world)
    for form in (USDC, USDC.lower(), "0x" + USDC[2:].upper()):
        with pytest.raises(Conflict) as caught:
            add(world, form, ledger=main)
        assert (caught.value.existing_id, caught.value.code) == (first.id, f"duplicate-{first.kind}")
    assert count(world) == 1


@on_both
def test_an_identity_is_per_ledger_and_per_tenant(world: World, main: str) -> None:
    add_token(world)
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "ethereum", LedgerPut(name="second"))
        tokens.create(session, world.acme, world.networks, TokenCreate(ledger="second", symbol="T", ledger_id=USDC))
        tokens.create(session, world.other, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC))
    assert count(world) == 3


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"ledger": "none"}, "ledger", "unknown-ledger"),
        ({"ledger": ""}, "ledger", "unknown-ledger"),
        ({"ledger": "\x00"}, "ledger", "unknown-ledger"),
        ({"ledger_id": USDC.replace("A", "a")}, "ledgerId", "invalid-address"),
        ({"symbol": "x" * 65}, "symbol", "too-long"),
        ({"name": "x" * 201}, "name", "too-long"),
        ({"external_id": "a\nb"}, "externalId", "control-character"),
    ],
)
def test_a_malformed_token_names_the_field_and_stores_nothing(
    world: World, main: str, values: dict[str, str], field: str, code: str
) -> None:
    with pytest.raises(Invalid) as caught:
        add_token(world, **values)
    assert (caught.value.field, caught.value.code) == (field, code)
    assert count(world) == 0


def test_another_tenants_ledger_is_unknown(world: World, main: str) -> None:
    with pytest.raises(Invalid) as caught, world.store.write() as session:
        tokens.create(session, world.other, world.networks, TokenCreate(ledger=main, symbol="T", ledger_id=USDC))
    assert caught.value.field == "ledger"


def test_roles(world: World, main: str) -> None:
    token = add_token(world)
    wallet = add_wallet(world)
    viewer = Principal(world.acme.tenant_id, world.acme.key_id, Role.VIEWER)
    operator = Principal(world.acme.tenant_id, world.acme.key_id, Role.OPERATOR)
    with world.store.write() as session:
        with pytest.raises(Denied):
            tokens.create(session, viewer, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=address(1)))
        with pytest.raises(Denied):
            wallets.create(session, viewer, world.networks, WalletCreate(ledger="main", ledger_id=address(1)))
        with pytest.raises(Denied):
            subjects.set_tracking(session, operator, token, True)
        with pytest.raises(Denied):
            subjects.set_tracking(session, operator, wallet, True)
        tokens.create(session, operator, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=address(1)))
    with pytest.raises(NotFound), world.store.write() as session:
        subjects.set_tracking(session, world.other, token, True)
    assert spans(world, token) == spans(world, wallet) == []


def test_windows_are_whole_seconds_and_repeated_calls_change_nothing(world: World, main: str) -> None:
    token = add_token(world, now=NOON)
    opened = track(world, token, True, NOON + timedelta(seconds=1.9))
    assert (opened.is_tracked, opened.tracking_status) == (True, "enabled")
    assert opened.updated_at == NOON + timedelta(seconds=1.9)
    with world.store.read() as session:
        before = revision.read_revision(session)
    assert track(world, token, True, NOON + timedelta(seconds=5)) == opened
    with world.store.read() as session:
        assert revision.read_revision(session) == before
    closed = track(world, token, False, NOON + timedelta(seconds=9.999))
    assert closed.tracking_status == "disabled"
    assert track(world, token, False, NOON + timedelta(seconds=20)) == closed
    track(world, token, True, NOON + timedelta(seconds=30))
    assert spans(world, token) == [
        (NOON + timedelta(seconds=1), NOON + timedelta(seconds=9)),
        (NOON + timedelta(seconds=30), None),
    ]
    with world.store.read() as session:
        assert session.scalars(select(TrackingWindow.opened_by).distinct()).all() == [world.acme.key_id]


@on_both
def test_windows_never_run_backwards_nor_overlap(world: World, main: str) -> None:
    token = add_token(world)
    track(world, token, True, NOON + timedelta(seconds=0.9))
    track(world, token, False, NOON + timedelta(seconds=0.95))  # within the second: empty
    track(world, token, True, NOON + timedelta(seconds=10))
    track(world, token, False, NOON + timedelta(seconds=5))  # the clock was set back
    track(world, token, True, NOON + timedelta(seconds=7))
    track(world, token, False, NOON + timedelta(seconds=12))
    assert spans(world, token) == [(NOON, NOON), (NOON + timedelta(seconds=7), NOON + timedelta(seconds=12))]


@on_both
def test_tracking_follows_the_true_time_after_the_clock_was_ahead(world: World, main: str) -> None:
    token, years = add_token(world), timedelta(days=1826)
    # Opened ahead.
    track(world, token, True, NOON + years)
    track(world, token, False, NOON)
    track(world, token, True, NOON + timedelta(seconds=1))
    # Closed ahead.
    track(world, token, False, NOON + years)
    track(world, token, True, NOON + timedelta(seconds=2))
    track(world, token, False, NOON + timedelta(seconds=3))
    times = [NOON + timedelta(seconds=second) for second in (1, 2, 3)]
    assert spans(world, token) == [(times[0], times[1]), (times[1], times[2])]


def test_windows_stay_in_order_for_any_requests_and_clock(world: World, main: str) -> None:
    offsets = st.integers(-5_000, 20_000).map(lambda number: timedelta(milliseconds=number))

    @given(st.lists(st.tuples(st.booleans(), offsets)))
    @settings(max_examples=30)
    def check(steps: list[tuple[bool, timedelta]]) -> None:
        with world.store.write() as session:
            wallet = wallets.create(session, world.acme, world.networks, WalletCreate(ledger="main", ledger_id=USDC))
            for enabled, offset in steps:
                tracked = subjects.set_tracking(session, world.acme, wallet, enabled, NOON + offset)
                assert tracked.is_tracked is enabled
            found = subjects.windows(session, wallet.subject_key)
            session.rollback()
        edges = [edge for window in found for edge in (window.opened_at, window.closed_at) if edge is not None]
        assert edges == sorted(edges)
        assert all(edge.microsecond == 0 for edge in edges)
        assert all(window.closed_at is not None for window in found[:-1])

    check()


def test_non_fungible_contract_can_be_disabled_but_not_enabled(world: World, main: str) -> None:
    token = add_token(world)
    with pytest.raises(Invalid) as caught:
        track(world, token, True, NOON, is_fungible=False)
    assert (caught.value.field, spans(world, token)) == ("trackingStatus", [])
    assert track(world, token, True, NOON, is_fungible=True).is_tracked
    assert track(world, token, True, NOON, is_fungible=False).is_tracked
    assert not track(world, token, False, NOON, is_fungible=False).is_tracked


def rows(world: World, sort: str = "createdAt", limit: int = 50, **filters: Any) -> list[str]:
    """Return names or symbols of all rows, read page by page."""
    found: list[str] = []
    after: After | None = None
    with world.store.read() as session:
        while True:
            page = tokens.list_page(
                session, world.acme.tenant_id, world.networks, SubjectFilters(**filters), sort, limit, after
            )
            assert len(page.rows) <= limit
            found += [row.name or f"({row.symbol})" for row in page.rows]
            after = page.after
            if after is None:
                return found


@pytest.fixture
def five(world: World, main: str) -> None:
    """Create five tokens, by address 1 to 5; two share a name and a time, one has no name."""
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "polygon", LedgerPut(name="side"))
    for number, (symbol, name, ledger, second) in enumerate(
        [
            ("B", "beta", "main", 0),
            ("A", "Ärger 100%", "main", 1),
            ("C", "beta", "side", 1),
            ("D", None, "side", 1),
            ("a", "Alpha_x", "main", 2),
        ],
        start=1,
    ):
        token = add_token(
            world,
            address(number),
            symbol=symbol,
            name=name,
            ledger=ledger,
            external_id=f"ext-{number % 2}",
            now=NOON + timedelta(seconds=second),
        )
        if number in (2, 4):
            track(world, token, True, NOON)
        if number == 5:
            track(world, token, True, NOON)
            track(world, token, False, NOON)


@on_both
@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("createdAt", ["beta", "Ärger 100%", "beta", "(D)", "Alpha_x"]),
        ("name", ["(D)", "Alpha_x", "beta", "beta", "Ärger 100%"]),
        ("symbol", ["Ärger 100%", "beta", "beta", "(D)", "Alpha_x"]),
    ],
)
def test_every_sort_gives_every_row_once_on_pages_of_any_size(
    world: World, five: None, sort: str, expected: list[str]
) -> None:
    for limit in (1, 2, 3, 5, 50):
        assert rows(world, sort, limit) == expected
        assert rows(world, "-" + sort, limit) == expected[::-1]


FILTERED: list[tuple[dict[str, str], list[str]]] = [
    ({"ledger": "side"}, ["beta", "(D)"]),
    ({"ledger": "none"}, []),
    ({"ledger_id": address(2)}, ["Ärger 100%"]),
    ({"ledger_id": address(10).upper().replace("X", "x")}, []),
    ({"symbol": "A"}, ["Ärger 100%"]),
    ({"external_id": "ext-0"}, ["Ärger 100%", "(D)"]),
    ({"tracking_status": "enabled"}, ["Ärger 100%", "(D)"]),
    ({"tracking_status": "disabled"}, ["beta", "beta", "Alpha_x"]),
    ({"q": "BET"}, ["beta", "beta"]),
    ({"q": "äRG"}, ["Ärger 100%"]),
    ({"q": "0%"}, ["Ärger 100%"]),
    ({"q": "a_x"}, ["Alpha_x"]),
    ({"q": "a%x"}, []),
    ({"q": "EXT-0"}, ["Ärger 100%", "(D)"]),
    ({"q": "000000005"}, ["Alpha_x"]),
    ({"q": " "}, ["Ärger 100%"]),
    ({"q": "beta", "ledger": "side"}, ["beta"]),
    ({"q": "'; drop table subjects; --"}, []),
]


@on_both
def test_filters(world: World, five: None) -> None:
    assert len(rows(world)) == 5
    for filters, expected in FILTERED:
        assert (filters, rows(world, limit=2, **filters)) == (filters, expected)


def test_ledger_filter_accepts_an_id(world: World, five: None, main: str) -> None:
    assert rows(world, ledger=main) == ["beta", "Ärger 100%", "Alpha_x"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"tracking_status": "Enabled"}, "name", "trackingStatus"),
    ({"ledger_id": "0x1"}, "name", "ledgerId"),
    ({"q": ""}, "name", "q"),
    ({"q": "a\x00"}, "name", "q"),
    ({"symbol": "\ud800"}, "name", "symbol"),
    ({"external_id": "\x00"}, "name", "externalId"),
    ({"ledger": "\x00"}, "name", "ledger"),
    ({}, "price", "sort"),
    ({}, "--name", "sort"),
    ({}, "", "sort"),
]


@on_both
def test_malformed_lists_are_refused(world: World, main: str) -> None:
    for filters, sort, field in REFUSED:
        with pytest.raises(Invalid) as caught:
            rows(world, sort, **filters)
        assert (filters, sort, caught.value.field) == (filters, sort, field)


def test_wallets_have_no_symbol_to_sort_or_filter_by(world: World, main: str) -> None:
    add_wallet(world, name="w")
    with world.store.read() as session:
        assert (
            len(wallets.list_page(session, world.acme.tenant_id, world.networks, SubjectFilters(q="W"), "-name").rows)
            == 1
        )
        for filters, sort in ((SubjectFilters(symbol="T"), "name"), (SubjectFilters(), "symbol")):
            with pytest.raises(Invalid):
                wallets.list_page(session, world.acme.tenant_id, world.networks, filters, sort)


def test_a_position_of_another_sort_is_refused(world: World, main: str) -> None:
    with pytest.raises(Invalid) as caught, world.store.read() as session:
        tokens.list_page(
            session, world.acme.tenant_id, world.networks, SubjectFilters(), "createdAt", 5, After("beta", "tok_x")
        )
    assert caught.value.field == "cursor"


@on_postgres
def test_a_second_writer_of_the_same_token_waits_and_gets_the_conflict(world: World, main: str) -> None:
    with world.store.write() as session:
        first = tokens.create(
            session, world.acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC)
        )
        second = start_waiting(world.settings, lambda: add_token(world))
    refused = second.exception()
    assert isinstance(refused, Conflict)
    assert (refused.existing_id, count(world)) == (first.id, 1)


@on_postgres
def test_a_second_writer_succeeds_when_the_first_gives_up(world: World, main: str) -> None:
    with world.store.write() as session:
        tokens.create(session, world.acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC))
        second = start_waiting(world.settings, lambda: add_token(world))
        session.rollback()
    made = second.result()
    with world.store.read() as session:
        assert tokens.get(session, world.acme.tenant_id, made.id) == made
    assert count(world) == 1


@on_postgres
def test_a_token_enabled_twice_at_once_has_one_window(world: World, main: str) -> None:
    token = add_token(world)
    with world.store.write() as session:
        subjects.set_tracking(session, world.acme, token, True, NOON)
        second = start_waiting(world.settings, lambda: track(world, token, True, NOON + timedelta(seconds=1)))
    assert second.result().is_tracked
    assert spans(world, token) == [(NOON, None)]


def change(world: World, token: SubjectRow, **values: Any) -> SubjectRow:
    now = values.pop("now", None)
    with world.store.write() as session:
        return tokens.update(session, world.acme, token, TokenPatch(**values), now)


def test_update_keeps_unset_fields_and_none_clears_a_field(world: World, main: str) -> None:
    token = add_token(world, symbol="OLD", name="Old name", external_id="ext", now=NOON)
    later = NOON + timedelta(seconds=1)
    renamed = change(world, token, name="New name", now=later)
    assert renamed == replace(token, name="New name", updated_at=later)
    again = change(world, token, symbol="NEW", external_id=None, now=later + timedelta(seconds=1))
    assert again == replace(renamed, symbol="NEW", external_id=None, updated_at=later + timedelta(seconds=1))
    assert (again.id, again.subject_key, again.address) == (token.id, token.subject_key, token.address)
    assert change(world, token, name=None).name is None
    with world.store.read() as session:
        before = revision.read_revision(session)
    stored = change(world, token)
    assert change(world, token, symbol="NEW", name=None) == stored
    with world.store.read() as session:
        assert revision.read_revision(session) == before


@on_both
def test_search_and_sort_follow_a_change(world: World, main: str) -> None:
    token = add_token(world, symbol="OLD", name="Old name", external_id="ext-old")
    change(world, token, symbol="NEW", name="New name", external_id="ext-new")
    assert rows(world, q="old") == []
    for text in ("new n", "ext-new", "NEW\nNew", USDC[:12]):
        assert rows(world, q=text.partition("\n")[0]) == ["New name"]
    assert rows(world, symbol="OLD") == []
    assert rows(world, external_id="ext-new") == ["New name"]


def test_a_wallet_is_changed_likewise(world: World, main: str) -> None:
    wallet = add_wallet(world, name="a", external_id="b")
    with world.store.write() as session:
        changed = wallets.update(session, world.acme, wallet, WalletPatch(name="c"))
    assert (changed.name, changed.external_id, changed.symbol) == ("c", "b", None)


@pytest.mark.parametrize(
    ("values", "field"),
    [({"symbol": ""}, "symbol"), ({"name": "a\x00"}, "name"), ({"external_id": "x" * 201}, "externalId")],
)
def test_a_malformed_change_is_named_and_stores_nothing(
    world: World, main: str, values: dict[str, str], field: str
) -> None:
    token = add_token(world, symbol="T", name="n")
    with pytest.raises(Invalid) as caught:
        change(world, token, **({"name": "m"} | values))
    assert caught.value.field == field
    with world.store.read() as session:
        assert tokens.get(session, world.acme.tenant_id, token.id) == token


def test_roles_and_tenants_limit_changes_and_removal(world: World, main: str) -> None:
    token = add_token(world)
    viewer, operator = (
        Principal(world.acme.tenant_id, world.acme.key_id, role) for role in (Role.VIEWER, Role.OPERATOR)
    )
    with world.store.write() as session:
        with pytest.raises(Denied):
            tokens.update(session, viewer, token, TokenPatch(name="x"))
        with pytest.raises(Denied):
            subjects.remove(session, operator, token)
        with pytest.raises(NotFound):
            tokens.update(session, world.other, token, TokenPatch(name="x"))
        with pytest.raises(NotFound):
            subjects.remove(session, world.other, token)
        assert tokens.update(session, operator, token, TokenPatch(name="x")).name == "x"


@on_both
def test_removal_closes_the_window_and_keeps_the_rows(world: World, main: str) -> None:
    token = track(world, add_token(world, now=NOON), True, NOON)
    with world.store.read() as session:
        before = revision.read_revision(session)
    with world.store.write() as session:
        subjects.remove(session, world.acme, token, NOON + timedelta(seconds=5.5))
    assert spans(world, token) == [(NOON, NOON + timedelta(seconds=5))]
    with world.store.read() as session:
        assert revision.read_revision(session) == before + 1
        stored = session.get_one(Subject, token.subject_key)
        assert (stored.removed_at, stored.address) == (NOON + timedelta(seconds=5.5), token.address)
        with pytest.raises(NotFound):
            tokens.get(session, world.acme.tenant_id, token.id)
    assert rows(world) == []
    for work in (subjects.remove, lambda *arguments: tokens.update(*arguments, TokenPatch(name="x"))):
        with pytest.raises(NotFound), world.store.write() as session:
            work(session, world.acme, token)
    with pytest.raises(NotFound):
        track(world, token, True, NOON)
    again = add_token(world)
    assert again.id != token.id
    assert again.subject_key > token.subject_key
    assert (again.is_tracked, spans(world, again)) == (False, [])


def test_removal_never_closes_a_window_before_it_opened(world: World, main: str) -> None:
    wallet = add_wallet(world)
    with world.store.write() as session:
        wallet = subjects.set_tracking(session, world.acme, wallet, True, NOON)
        subjects.remove(session, world.acme, wallet, NOON - timedelta(hours=1))
    assert spans(world, wallet) == [(NOON, NOON)]


@on_postgres
def test_one_of_two_concurrent_removals_succeeds(world: World, main: str) -> None:
    token = add_token(world)

    def remove() -> None:
        with world.store.write() as session:
            subjects.remove(session, world.acme, token)

    with world.store.write() as session:
        subjects.remove(session, world.acme, token)
        second = start_waiting(world.settings, remove)
    assert isinstance(second.exception(), NotFound)


@on_postgres
def test_token_cannot_be_added_to_a_ledger_being_removed(world: World, main: str) -> None:
    with world.store.write() as session:
        ledgers.remove(session, world.acme, "main")
        second = start_waiting(world.settings, lambda: add_token(world))
    refused = second.exception()
    assert isinstance(refused, Invalid)
    assert (refused.field, count(world)) == ("ledger", 0)


@on_postgres
def test_ledger_is_not_removed_while_a_token_is_added(world: World, main: str) -> None:
    def remove() -> None:
        with world.store.write() as session:
            ledgers.remove(session, world.acme, "main")

    with world.store.write() as session:
        tokens.create(session, world.acme, world.networks, TokenCreate(ledger="main", symbol="T", ledger_id=USDC))
        second = start_waiting(world.settings, remove)
    refused = second.exception()
    assert isinstance(refused, Conflict)
    assert (refused.code, count(world)) == ("ledger-in-use", 1)


OLD_SCRIPT_ADDRESS, SCRIPT_ADDRESS = "3GBygsGPvTdfKMbq4AKZZRu1sPMWPEsBfd", "MNQ7zkgMsaV67rsjA3JuP59RC5wxRXpwgE"


@pytest.fixture
def litecoin(world: World) -> None:
    """Create a ledger «coins» for acme."""
    with world.store.write() as session:
        ledgers.put(session, world.acme, world.networks, "litecoin", LedgerPut(name="coins"))


def test_wallet_is_stored_in_the_networks_canonical_form(world: World, litecoin: None) -> None:
    wallet = add_wallet(world, OLD_SCRIPT_ADDRESS, ledger="coins")
    assert wallet.address == wallet.presented_address == SCRIPT_ADDRESS
    with pytest.raises(Conflict) as caught:
        add_wallet(world, SCRIPT_ADDRESS, ledger="coins")
    assert (caught.value.code, caught.value.existing_id) == ("duplicate-wallet", wallet.id)
    for text in (OLD_SCRIPT_ADDRESS, SCRIPT_ADDRESS):
        filters = SubjectFilters(ledger_id=text)
        with world.store.read() as session:
            assert wallets.list_page(session, world.acme.tenant_id, world.networks, filters).rows == (wallet,)


def test_address_of_another_network_is_refused(world: World, main: str, litecoin: None) -> None:
    for ledger, text in (("coins", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), ("coins", USDC), ("main", "native")):
        with pytest.raises(Invalid) as caught:
            add_wallet(world, text, ledger=ledger)
        assert (caught.value.field, caught.value.code) == ("ledgerId", "invalid-address")
    assert count(world) == 0


@pytest.mark.parametrize(
    ("ledger", "text", "code"),
    [
        ("main", "native", "native-asset"),
        ("main", "NATIVE", "native-asset"),
        ("coins", "Native", "native-asset"),
        ("coins", SCRIPT_ADDRESS, "no-tokens"),
        ("coins", USDC, "no-tokens"),
    ],
)
def test_native_asset_is_no_token(world: World, main: str, litecoin: None, ledger: str, text: str, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        add_token(world, text, ledger=ledger)
    assert (caught.value.field, caught.value.code) == ("ledgerId", code)
    assert "create a wallet to see its balance" in str(caught.value)
    assert count(world) == 0


def test_ledger_of_an_undefined_or_changed_network_accepts_no_subjects(world: World, main: str) -> None:
    defined = world.networks["ethereum"]
    del world.networks["ethereum"]
    for add in (add_token, add_wallet):
        with pytest.raises(Conflict, match="LEDGERMART_NETWORKS no longer defines it") as caught:
            add(world)
        assert caught.value.code == "network-undefined"
    world.networks["ethereum"] = replace(defined, own=world.networks["polygon"].own)
    for add in (add_token, add_wallet):
        with pytest.raises(Conflict, match="is in use as") as caught:
            add(world)
        assert caught.value.code == "network-changed"
    assert count(world) == 0
