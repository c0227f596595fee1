"""Reading the environment."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import psutil
import pytest

from control.settings import VARIABLES, Settings, SettingsError, load_settings, unknown_variables

INTEGERS = [variable.name for variable in VARIABLES if variable.default.isdigit()]


def test_defaults() -> None:
    settings = load_settings({})
    checkout = Path(__file__).resolve().parents[3]
    assert settings == Settings(
        data_dir=checkout / "data",
        data_group=None,
        control_url=f"sqlite:///{checkout}/data/control.db",
        shard=0,
        lake=None,
        lake_data="none",
        versions=None,
        lake_keep_days=7,
        networks_file=checkout / "control/networks/networks.toml",
        price_sources_file=checkout / "control/pricing/sources.toml",
        api_host="127.0.0.1",
        api_port=8000,
        api_public=False,
        trusted_proxies=(IPv4Network("127.0.0.1"), IPv6Network("::1")),
        public_url=None,
        reports_provider="builtin",
        superset_url="http://127.0.0.1:8088",
        dagster_pages=True,
        dagster_port=3000,
        dagster_writes=False,
        cycle_seconds=30,
        network_seconds=120,
        network_answer_mb=4_000,
        price_poll_seconds=60,
        as_of_seconds=300,
        attest="month",
        attest_max_holders=10_000,
        lock_wait_seconds=60,
        version_grace_seconds=900,
        version_disk_budget_mb=20000,
        rate_limit_per_minute=3000,
        max_stored_prices=1_000_000,
        max_objects=10_000,
        max_scripts=100_000,
        query_timeout_seconds=30,
        query_memory_mb=1024,
        pipeline_memory_mb=psutil.virtual_memory().total // 2_000_000,
        process_memory_mb=psutil.virtual_memory().total * 3 // 4_000_000,
    )
    assert settings.warehouse_path == checkout / "data/warehouse.duckdb"
    assert settings.marts_path == checkout / "data/marts_build.duckdb"
    assert settings.serving_dir == checkout / "data/serving"
    assert settings.dagster_dir == checkout / "data/dagster"
    assert settings.lock_path == checkout / "data/warehouse.lock"


def test_path_in_unknown_home_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"LEDGERMART_DATA_DIR is ~no-such-user/data, .* absolute path"):
        load_settings({"LEDGERMART_DATA_DIR": "~no-such-user/data"})


def test_empty_means_unset() -> None:
    assert load_settings({variable.name: "" for variable in VARIABLES}) == load_settings({})


def test_every_documented_integer_is_read() -> None:
    settings = load_settings({name: str(1000 + number) for number, name in enumerate(INTEGERS)})
    for number, name in enumerate(INTEGERS):
        assert getattr(settings, name.removeprefix("LEDGERMART_").lower()) == 1000 + number


def test_a_variable_without_effect_is_named() -> None:
    environment = {variable.name: "1" for variable in VARIABLES} | {"ETHEREUM_RPC_URL": "http://127.0.0.1:1"}
    assert unknown_variables(environment | {"LEDGERMART_DAGSTER_DIR": "d", "LEDGERMART_API_KEY": "k"}) == {}
    found = unknown_variables({"LEDGERMART_CODE_SERVER_PORT": "4000", "LEDGERMART_API_PROT": "1"})
    assert found == {
        "LEDGERMART_API_PROT": "no setting has this name; see docs/reference/settings.md",
        "LEDGERMART_CODE_SERVER_PORT": "removed: the code server listens on a socket in the data folder",
    }


@pytest.mark.parametrize("text", ["YES", "true", "1", " yes"])
def test_a_switch_is_yes_or_no(text: str) -> None:
    assert load_settings({"LEDGERMART_DAGSTER_WRITES": "yes"}).dagster_writes
    assert not load_settings({"LEDGERMART_DAGSTER_WRITES": "no"}).dagster_writes
    with pytest.raises(SettingsError, match=r"LEDGERMART_DAGSTER_WRITES is .*; set it to yes or no"):
        load_settings({"LEDGERMART_DAGSTER_WRITES": text})


def test_relative_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"LEDGERMART_DATA_DIR": "d", "LEDGERMART_NETWORKS": "n.toml"})
    assert (settings.data_dir, settings.networks_file) == (tmp_path / "d", tmp_path / "n.toml")
    assert settings.control_url == f"sqlite:///{tmp_path}/d/control.db"
    assert load_settings({"LEDGERMART_CONTROL_URL": "sqlite:///c.db"}).control_url == f"sqlite:///{tmp_path}/c.db"


@pytest.mark.parametrize("value", ["many", "-1", "1.5", " 60", "٣", "1" * 13, "10000000000"])
def test_a_malformed_number_names_its_variable(value: str) -> None:
    for name in INTEGERS:
        with pytest.raises(SettingsError, match=f"{name} is .* whole number from"):
            load_settings({name: value})


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://h/d", "sqlite://", "sqlite:///:memory:", "postgresql+asyncpg://h/d"]
)
def test_a_malformed_control_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="LEDGERMART_CONTROL_URL"):
        load_settings({"LEDGERMART_CONTROL_URL": url})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://bucket", "s3://bucket"),
        ("shared", "{folder}/shared"),
        ("/mnt/shared", "/mnt/shared"),
        ("none", None),
    ],
)
def test_the_store_of_versions_is_a_bucket_or_a_folder(
    text: str, place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings({"LEDGERMART_VERSIONS": text, "LEDGERMART_CONTROL_URL": "postgresql://host/base"})
    assert settings.versions == (place.format(folder=tmp_path) if place else None)


@pytest.mark.parametrize(
    "text", ["s3://", "s3://key:hush@bucket/prefix", "s3://bucket/a?hush=1", "https://bucket/hush"]
)
def test_a_malformed_store_of_versions_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LEDGERMART_VERSIONS is no store of versions; set it to s3://") as caught:
        load_settings({"LEDGERMART_VERSIONS": text, "LEDGERMART_CONTROL_URL": "postgresql://host/base"})
    assert "hush" not in str(caught.value)


def test_shared_versions_need_a_control_store_that_other_machines_reach() -> None:
    fix = r"LEDGERMART_VERSIONS is set, but LEDGERMART_CONTROL_URL is an SQLite file.*; set LEDGERMART_CONTROL_URL to"
    with pytest.raises(SettingsError, match=fix):
        load_settings({"LEDGERMART_VERSIONS": "s3://bucket/prefix"})


@pytest.mark.parametrize("host", ["http://localhost", "a b"])
def test_a_malformed_host_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match="LEDGERMART_API_HOST"):
        load_settings({"LEDGERMART_API_HOST": host})


def test_settings_do_not_show_a_password() -> None:
    assert "hush" not in repr(load_settings({"LEDGERMART_CONTROL_URL": "postgresql://me:hush@host/base"}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LEDGERMART_API_PUBLIC", "true"),
        ("LEDGERMART_TRUSTED_PROXIES", "proxy.example"),
        ("LEDGERMART_TRUSTED_PROXIES", "10.0.0.5/8"),
    ],
)
def test_wrong_settings_of_the_server_are_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings({name: text})


def test_proxies_are_addresses_and_networks() -> None:
    found = load_settings({"LEDGERMART_TRUSTED_PROXIES": "10.0.0.5, fd00::/8", "LEDGERMART_API_PUBLIC": "yes"})
    assert found.trusted_proxies == (IPv4Network("10.0.0.5"), IPv6Network("fd00::/8"))
    assert found.api_public
    assert load_settings({"LEDGERMART_TRUSTED_PROXIES": "none"}).trusted_proxies == ()
