"""Embed ids and origins: created once, replaced atomically, validated before use in a header."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from control import access, audit, embedding, ids, service_secrets
from control.access import Principal
from control.audit import AuditFilters
from control.errors import Denied, Invalid, InvalidValues
from control.models import EmbedOrigin
from control.origins import PATTERN, read_origin
from control.settings import SettingsError, load_settings
from control.store import ControlStore
from tests.unit.control.conftest import World, on_both, on_postgres
from tests.unit.control.second_writer import start_waiting


def audited(world: World) -> list[tuple[str, dict[str, object] | None, dict[str, object] | None]]:
    with world.store.read() as session:
        events = audit.list_page(session, world.acme.tenant_id, AuditFilters()).rows
    return [(event.action, event.before, event.after) for event in reversed(events) if event.object_kind == "embedding"]


@on_both
def test_embed_id_is_created_once_per_tenant(world: World) -> None:
    with world.store.read() as session:
        assert embedding.present_id(session, world.acme.tenant_id) is None
    with world.store.write() as session:
        made = embedding.make_id(session, world.acme.tenant_id)
        assert embedding.make_id(session, world.acme.tenant_id) == made
        other = embedding.make_id(session, world.other.tenant_id)
    assert ids.is_id("emb_", made)
    assert made != other
    with world.store.read() as session:
        assert embedding.present_id(session, world.acme.tenant_id) == made
        found = embedding.find(session, made)
        assert found is not None
        assert (found.tenant_id, found.embed_id, found.origins) == (world.acme.tenant_id, made, ())


@on_postgres
def test_concurrent_first_links_get_one_id(world: World) -> None:
    def make() -> str:
        with world.store.write() as session:
            return embedding.make_id(session, world.acme.tenant_id)

    with world.store.write() as session:
        made = embedding.make_id(session, world.acme.tenant_id)
        second = start_waiting(world.settings, make)
    assert second.result() == made


@on_both
def test_an_unknown_embed_id_shows_no_tenant(world: World) -> None:
    with world.store.write() as session:
        embedding.make_id(session, world.acme.tenant_id)
    with world.store.read() as session:
        for embed_id in ("", "emb_", "emb_' or 1=1", "emb_" + "0" * 26, "ten_" + "0" * 26, "\x00"):
            assert embedding.find(session, embed_id) is None, embed_id


def test_a_revocation_replaces_the_id_and_keeps_the_origins(world: World) -> None:
    with world.store.write() as session:
        first = embedding.make_id(session, world.acme.tenant_id)
        other = embedding.make_id(session, world.other.tenant_id)
        embedding.set_origins(session, world.acme, ["https://portal.example"])
    with world.store.write() as session:
        second = embedding.revoke(session, world.acme)
    assert second != first
    with world.store.read() as session:
        assert embedding.find(session, first) is None
        found = embedding.find(session, second)
        assert found is not None
        assert found.origins == ("https://portal.example",)
        assert embedding.present_id(session, world.other.tenant_id) == other
    assert audited(world) == [
        ("embedding.origins", {"embedOrigins": []}, {"embedOrigins": ["https://portal.example"]}),
        ("embedding.revoke", {"embedId": first}, {"embedId": second}),
    ]


def test_a_tenant_without_links_can_revoke(world: World) -> None:
    with world.store.write() as session:
        made = embedding.revoke(session, world.acme)
    with world.store.read() as session:
        assert embedding.present_id(session, world.acme.tenant_id) == made


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_only_an_admin_revokes_and_sets_origins(world: World, role: str) -> None:
    lower = Principal(world.acme.tenant_id, world.acme.key_id, access.Role(role))
    with world.store.write() as session:
        with pytest.raises(Denied):
            embedding.revoke(session, lower)
        with pytest.raises(Denied):
            embedding.set_origins(session, lower, [])
    assert audited(world) == []


@on_both
def test_origins_are_replaced_in_order_without_repetition(world: World) -> None:
    wanted = [
        "https://b.example",
        "HTTPS://A.example:443",
        "http://a.example:80",
        "https://b.EXAMPLE",
        "http://10.0.0.5:81",
    ]
    kept = ["https://b.example", "https://a.example", "http://a.example", "http://10.0.0.5:81"]
    with world.store.write() as session:
        assert embedding.set_origins(session, world.acme, wanted) == kept
        assert embedding.set_origins(session, world.acme, kept) == kept
        embedding.set_origins(session, world.other, ["https://theirs.example"])
    with world.store.read() as session:
        assert embedding.list_origins(session, world.acme.tenant_id) == kept
    assert len(audited(world)) == 1
    with world.store.write() as session:
        assert embedding.set_origins(session, world.acme, kept[1:2]) == kept[1:2]
        assert embedding.set_origins(session, world.acme, []) == []
    with world.store.read() as session:
        assert embedding.list_origins(session, world.acme.tenant_id) == []
        assert session.scalars(select(EmbedOrigin.origin)).all() == ["https://theirs.example"]
    assert len(audited(world)) == 3


@on_postgres
def test_concurrent_writers_of_origins_wait_for_each_other(world: World) -> None:
    wanted = ["https://a.example", "https://b.example"]

    def replace() -> None:
        with world.store.write() as session:
            embedding.set_origins(session, world.acme, wanted)

    with world.store.write() as session:
        embedding.set_origins(session, world.acme, ["https://c.example", "https://a.example", "https://d.example"])
        second = start_waiting(world.settings, replace)
    second.result()
    with world.store.read() as session:
        assert embedding.list_origins(session, world.acme.tenant_id) == wanted


def test_every_wrong_origin_is_named_and_nothing_is_stored(world: World) -> None:
    with pytest.raises(InvalidValues) as caught, world.store.write() as session:
        embedding.set_origins(session, world.acme, ["https://fine.example", "*", "https://a.example/path"])
    assert [error.field for error in caught.value.errors] == ["embedOrigins/1", "embedOrigins/2"]
    with world.store.read() as session:
        assert embedding.list_origins(session, world.acme.tenant_id) == []


def test_number_of_origins_is_limited(world: World) -> None:
    many = [f"https://p{number}.example" for number in range(51)]
    with world.store.write() as session:
        assert len(embedding.set_origins(session, world.acme, many[:50])) == 50
        with pytest.raises(Invalid, match="at most 50"):
            embedding.set_origins(session, world.acme, many)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://portal.example", "https://portal.example"),
        ("HTTPS://Portal.Example", "https://portal.example"),
        ("https://portal.example:443", "https://portal.example"),
        ("http://portal.example:443", "http://portal.example:443"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ("https://a-1.b--2.example:65535", "https://a-1.b--2.example:65535"),
    ],
)
def test_origin_is_normalised_as_browsers_send_it(written: str, read: str) -> None:
    assert read_origin(written) == read


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "*", "null", "'self'", "'none'", "https:", "https://", "https://*", "https://*.example"),
        *("portal.example", "//portal.example", "ftp://portal.example", "javascript://portal.example", "data:,x"),
        *("https://portal.example/", "https://portal.example/path", "https://portal.example?q", "https://portal.example#f"),
        *("https://user@portal.example", "https://user:password@portal.example", "https://portal.example:"),
        *("https://portal.example:0", "https://portal.example:080", "https://portal.example:65536", "https://a:1:2"),
        *("https://portal.example; script-src *", "https://a.example, https://b.example"),
        *("https://portal.example\r\nSet-Cookie: a=b", "https://portal.example\n", "\thttps://portal.example"),
        *("https://portal.example'", 'https://portal.example"', "https://portal_a.example", "https://portal.example."),
        *("https://-a.example", "https://a-.example", "https://a..example", "https://.example"),
        *("https://b\u00fccher.example", "https://portal.example\u3002", "https://[::1]", "https://[::1]:8443"),
        *("https://127.1", "https://1.2.3.256", "https://01.2.3.4", "https://2130706433", "https://127.0.0.0x1"),
        *("https://0x7f", "https://a.example b.example", f"https://{'a' * 64}.example"),
        f"https://{'a.' * 126}aa",
    ],
)  # fmt: skip
def test_invalid_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_origin(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEDGERMART_PUBLIC_URL", "https://api.example/path"),
        ("LEDGERMART_PUBLIC_URL", "api.example"),
        ("LEDGERMART_SUPERSET_URL", "https://bi.example; script-src *"),
        ("LEDGERMART_REPORTS_PROVIDER", "metabase"),
    ],
)
def test_settings_of_reports_are_checked(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings({name: value})


def test_links_begin_with_the_public_url_or_where_the_api_listens() -> None:
    assert load_settings({}).public_origin == "http://127.0.0.1:8000"
    ipv6 = load_settings({"LEDGERMART_API_HOST": "::1", "LEDGERMART_API_PORT": "9000"})
    assert ipv6.public_origin == "http://[::1]:9000"
    assert load_settings({"LEDGERMART_PUBLIC_URL": "https://API.example:443"}).public_origin == "https://api.example"


@on_both
def test_secret_unknown_to_an_older_version_is_added(store: ControlStore) -> None:
    with store.write() as session:
        key = service_secrets.get(session, service_secrets.CURSOR_KEY)
        session.execute(text("delete from service_secrets where name != 'cursor-signing-key'"))
    store.migrate()
    with store.read() as session:
        assert service_secrets.get(session, service_secrets.CURSOR_KEY) == key
        made = {service_secrets.get(session, name) for name in service_secrets.NAMES}
        assert len(made) == len(service_secrets.NAMES)
        assert {len(secret) for secret in made} == {32}


@settings(max_examples=25)
@given(st.from_regex(PATTERN.replace("$", r"\Z")) | st.from_regex(r"[Hh]ttps?://[A-Za-z0-9.-]{1,12}(:[0-9]{1,6})?\Z"))
def test_documented_pattern_accepts_the_same_origins(origin: str) -> None:
    is_documented = re.search(PATTERN, origin) is not None
    try:
        read_origin(origin)
    except ValueError:
        assert not is_documented
    else:
        assert is_documented
