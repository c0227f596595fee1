"""Configuration by environment: the one reader of `LEDGERMART_*` variables.

Network definitions (and the variables with their node addresses) are read by `control.networks.definitions`.
"""

import grp
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from control.origins import FORM, read_origin
from control.resources import DEFAULT_DATA_DIR

_SHIPPED_NETWORKS = Path(__file__).resolve().parent / "networks" / "networks.toml"
_SHIPPED_PRICE_SOURCES = Path(__file__).resolve().parent / "pricing" / "sources.toml"

ReportsProvider = Literal["builtin", "superset"]
AttestedPeriod = Literal["off", "month", "day"]
HIGHEST_QUOTA = 1_000_000_000
"""The largest limit of a quota, of the installation or of one tenant."""
HIGHEST_SHARD = 9_999
S3 = "s3://"
"""Beginning of addresses in a store with the protocol of S3."""
_STORE_OF_VERSIONS = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^@?#\s]*)?")
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Variable(NamedTuple):
    """One documented environment variable; `default` is the value of an unset or empty one."""

    name: str
    default: str
    meaning: str


VARIABLES = (
    Variable(
        "LEDGERMART_DATA_DIR",
        "<checkout>/data",
        "folder of the warehouse, the published versions and Dagster's records; `~/.local/share/ledgermart` if the "
        "wheel is installed",
    ),
    Variable(
        "LEDGERMART_DATA_GROUP",
        "none",
        "group that may read the published files in `serving/`, and no other file; `none`: only the service's own "
        "user may read them",
    ),
    Variable(
        "LEDGERMART_CONTROL_URL",
        "sqlite:///<data>/control.db",
        "database of the control store: an SQLite file or postgresql://",
    ),
    Variable(
        "LEDGERMART_SHARD",
        "0",
        "shard of the tenants that this pipeline builds, and default of `ledgermart tenant create`",
    ),
    Variable(
        "LEDGERMART_LAKE",
        "none",
        "lake of the facts that all shards share: `ducklake:postgres:` and the connection text of its catalogue in "
        "PostgreSQL. Use no pooler that changes sessions between transactions. `none`: each shard has its own facts",
    ),
    Variable(
        "LEDGERMART_LAKE_DATA",
        "none",
        "where the lake keeps its files: `s3://bucket/prefix`, or a folder that all machines share",
    ),
    Variable(
        "LEDGERMART_VERSIONS",
        "none",
        "store of published versions for API nodes on several machines: s3://bucket/prefix, or the path of a shared "
        "folder. LEDGERMART_CONTROL_URL must be PostgreSQL. `none`: the API reads the data folder",
    ),
    Variable(
        "LEDGERMART_LAKE_KEEP_DAYS",
        "7",
        "days for which the lake keeps old snapshots and replaced files; backups of its catalogue must be younger",
    ),
    Variable("LEDGERMART_NETWORKS", "control/networks/networks.toml", "file with the network definitions"),
    Variable("LEDGERMART_PRICE_SOURCES", "control/pricing/sources.toml", "file with the price source definitions"),
    Variable("LEDGERMART_API_HOST", "127.0.0.1", "address on which the API listens"),
    Variable("LEDGERMART_API_PORT", "8000", "port of the API"),
    Variable(
        "LEDGERMART_API_PUBLIC",
        "no",
        "`yes` allows the API to listen on an address that other machines reach; `no` refuses any but loopback",
    ),
    Variable(
        "LEDGERMART_TRUSTED_PROXIES",
        "127.0.0.1,::1",
        "addresses or networks of reverse proxies, separated by commas; the API takes the client's address from "
        "`X-Forwarded-For` of their requests only. It limits the connections of any other address. `none` trusts no "
        "proxy",
    ),
    Variable(
        "LEDGERMART_PUBLIC_URL",
        "http://<api host>:<api port>",
        "origin under which browsers reach the API; links to reports begin with it",
    ),
    Variable("LEDGERMART_REPORTS_PROVIDER", "builtin", "renderer of the reports: `builtin` or `superset`"),
    Variable("LEDGERMART_SUPERSET_URL", "http://127.0.0.1:8088", "origin under which browsers reach Superset"),
    Variable(
        "LEDGERMART_DAGSTER_PAGES",
        "yes",
        "`no` makes `ledgermart up` leave out Dagster's web pages; schedules run as before",
    ),
    Variable("LEDGERMART_DAGSTER_PORT", "3000", "port of Dagster's web pages"),
    Variable(
        "LEDGERMART_DAGSTER_WRITES",
        "no",
        "`yes` lets Dagster's pages start and stop runs, schedules and sensors; `no` makes them read-only",
    ),
    Variable("LEDGERMART_CYCLE_SECONDS", "30", "minimum time between the starts of two pipeline cycles, in seconds"),
    Variable(
        "LEDGERMART_NETWORK_SECONDS",
        "120",
        "maximum time of one network in a cycle, in seconds; a network that needs more fails alone and continues in a "
        "later cycle",
    ),
    Variable(
        "LEDGERMART_NETWORK_ANSWER_MB",
        "4000",
        "maximum size of the answers of one network's node in a cycle, uncompressed, in megabytes",
    ),
    Variable(
        "LEDGERMART_PRICE_POLL_SECONDS",
        "60",
        "polling interval of price sources, in seconds; polls are aligned to the clock, so a new pair shifts none; "
        "a source's definition may set a longer interval",
    ),
    Variable(
        "LEDGERMART_AS_OF_SECONDS",
        "300",
        "period in seconds; once in each period, as-of moves to the newest collected block even if the tenant has no "
        "new rows; periods are aligned to the clock",
    ),
    Variable(
        "LEDGERMART_ATTEST",
        "month",
        "automatic attestations: `month` or `day` attests tracked tokens and wallets at the end of every month or "
        "day; `off` disables them",
    ),
    Variable(
        "LEDGERMART_ATTEST_MAX_HOLDERS",
        "10000",
        "maximum number of holders of a token, or assets of a wallet, for automatic attestations; larger tokens and "
        "wallets are left out",
    ),
    Variable(
        "LEDGERMART_LOCK_WAIT_SECONDS", "60", "maximum time that a second writer waits for the warehouse, in seconds"
    ),
    Variable(
        "LEDGERMART_VERSION_GRACE_SECONDS", "900", "time for which a superseded version stays readable, in seconds"
    ),
    Variable("LEDGERMART_VERSION_DISK_BUDGET_MB", "20000", "maximum disk space of published versions, in megabytes"),
    Variable(
        "LEDGERMART_RATE_LIMIT_PER_MINUTE",
        "3000",
        "maximum number of API requests of one key, and of forms from one IP address, per minute",
    ),
    Variable(
        "LEDGERMART_MAX_STORED_PRICES",
        "1000000",
        "maximum number of manual prices of one tenant, with all revisions; `ledgermart tenant quotas` sets another "
        "limit for a tenant",
    ),
    Variable(
        "LEDGERMART_MAX_OBJECTS",
        "10000",
        "maximum number of objects of one tenant: ledgers, tokens, wallets, priced items, price sources and their "
        "pairs, pairs, unfinished operations; `ledgermart tenant quotas` sets another limit for a tenant",
    ),
    Variable(
        "LEDGERMART_MAX_SCRIPTS",
        "100000",
        "maximum number of output scripts of one tenant's wallets of keys: 1,000 for each branch of a wallet",
    ),
    Variable("LEDGERMART_QUERY_TIMEOUT_SECONDS", "30", "maximum duration of one query of the API, in seconds"),
    Variable(
        "LEDGERMART_QUERY_MEMORY_MB",
        "1024",
        "maximum memory of the API's query engine for each open version, in megabytes; tables for paging may take "
        "half of it",
    ),
    Variable(
        "LEDGERMART_PIPELINE_MEMORY_MB",
        "half of the machine's memory",
        "maximum memory of the pipeline's query engine, in megabytes; larger queries spill to disk",
    ),
    Variable(
        "LEDGERMART_PROCESS_MEMORY_MB",
        "three quarters of the machine's memory",
        "maximum memory of each process that `ledgermart up` starts, in megabytes; a run or request that needs more "
        "fails alone",
    ),
)


# Settings of earlier releases, each with the reason why it has no effect any more.
REMOVED = {"LEDGERMART_CODE_SERVER_PORT": "removed: the code server listens on a socket in the data folder"}
# Variables that are no settings: for child processes, analysts' dbt projects and the command `report`.
_OTHERS = {
    "LEDGERMART_API_KEY",
    "LEDGERMART_CODE_SERVER_SOCKET",
    "LEDGERMART_DAGSTER_DIR",
    "LEDGERMART_MARTS_PATH",
    "LEDGERMART_SANDBOX",
    "LEDGERMART_WAREHOUSE_PATH",
}


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that look like settings and have no effect, each with the reason."""
    known = _OTHERS | {variable.name for variable in VARIABLES}
    found = sorted(name for name in environ if name.startswith("LEDGERMART_") and name not in known)
    return {name: REMOVED.get(name, "no setting has this name; see docs/reference/settings.md") for name in found}


class SettingsError(Exception):
    """A variable of the environment is malformed; the message names it and the fix."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of one process; paths are absolute."""

    data_dir: Path
    data_group: int | None
    control_url: str = field(repr=False)  # may hold a password
    shard: int
    lake: str | None = field(repr=False)  # may hold a password
    lake_data: str
    versions: str | None
    lake_keep_days: int
    networks_file: Path
    price_sources_file: Path
    api_host: str
    api_port: int
    api_public: bool
    trusted_proxies: tuple[IpNetwork, ...]
    public_url: str | None
    reports_provider: ReportsProvider
    superset_url: str
    dagster_pages: bool
    dagster_port: int
    dagster_writes: bool
    cycle_seconds: int
    network_seconds: int
    network_answer_mb: int
    price_poll_seconds: int
    as_of_seconds: int
    attest: AttestedPeriod
    attest_max_holders: int
    lock_wait_seconds: int
    version_grace_seconds: int
    version_disk_budget_mb: int
    rate_limit_per_minute: int
    max_stored_prices: int
    max_objects: int
    max_scripts: int
    query_timeout_seconds: int
    query_memory_mb: int
    pipeline_memory_mb: int
    process_memory_mb: int

    @property
    def public_origin(self) -> str:
        """The origin that links to reports begin with: the configured one, or where the API listens."""
        if self.public_url is not None:
            return self.public_url
        host = f"[{self.api_host}]" if ":" in self.api_host else self.api_host
        return f"http://{host}:{self.api_port}"

    @property
    def warehouse_path(self) -> Path:
        """The warehouse file, written by the pipeline alone."""
        return self.data_dir / "warehouse.duckdb"

    @property
    def marts_path(self) -> Path:
        """The file in which dbt builds the marts, before they are published."""
        return self.data_dir / "marts_build.duckdb"

    @property
    def serving_dir(self) -> Path:
        """The folder of published versions."""
        return self.data_dir / "serving"

    @property
    def dagster_dir(self) -> Path:
        """The folder of Dagster's own records."""
        return self.data_dir / "dagster"

    @property
    def code_server_socket(self) -> Path:
        """The socket on which Dagster's code server listens."""
        return self.data_dir / "code-server.sock"

    @property
    def dbt_target_dir(self) -> Path:
        """The folder that dbt writes to."""
        return self.data_dir / "dbt" / "target"

    @property
    def manifest_path(self) -> Path:
        """dbt's manifest of the published version."""
        return self.dbt_target_dir / "manifest.json"

    @property
    def staging_path(self) -> Path:
        """Folder for rows of data sets' files until they are checked and stored."""
        return self.data_dir / "staging"

    @property
    def lock_path(self) -> Path:
        """The lock file that every writer of the warehouse holds."""
        return self.data_dir / "warehouse.lock"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from an environment, by default that of the process.

    A variable that is unset or empty takes its default of `VARIABLES`; a relative path counts from the working
    directory.

    Raises:
        SettingsError: a value is malformed or out of range; names the variable and the fix.
    """
    variables = os.environ if environ is None else environ
    data_dir = _path(variables, "LEDGERMART_DATA_DIR", DEFAULT_DATA_DIR)
    lake, lake_data = _lake(variables)
    return Settings(
        data_dir=data_dir,
        data_group=_group(variables, "LEDGERMART_DATA_GROUP"),
        control_url=_control_url(variables, data_dir),
        shard=_integer(variables, "LEDGERMART_SHARD", 0, HIGHEST_SHARD),
        lake=lake,
        lake_data=lake_data,
        versions=_versions(variables, data_dir),
        lake_keep_days=_integer(variables, "LEDGERMART_LAKE_KEEP_DAYS", 1, 3_650),
        networks_file=_path(variables, "LEDGERMART_NETWORKS", _SHIPPED_NETWORKS),
        price_sources_file=_path(variables, "LEDGERMART_PRICE_SOURCES", _SHIPPED_PRICE_SOURCES),
        api_host=_host(variables, "LEDGERMART_API_HOST"),
        api_port=_integer(variables, "LEDGERMART_API_PORT", 1, 65_535),
        api_public=_yes_or_no(variables, "LEDGERMART_API_PUBLIC"),
        trusted_proxies=_networks(variables, "LEDGERMART_TRUSTED_PROXIES"),
        public_url=_origin(variables, "LEDGERMART_PUBLIC_URL") if variables.get("LEDGERMART_PUBLIC_URL") else None,
        reports_provider=_provider(variables, "LEDGERMART_REPORTS_PROVIDER"),
        superset_url=_origin(variables, "LEDGERMART_SUPERSET_URL"),
        dagster_pages=_yes_or_no(variables, "LEDGERMART_DAGSTER_PAGES"),
        dagster_port=_integer(variables, "LEDGERMART_DAGSTER_PORT", 1, 65_535),
        dagster_writes=_yes_or_no(variables, "LEDGERMART_DAGSTER_WRITES"),
        cycle_seconds=_integer(variables, "LEDGERMART_CYCLE_SECONDS", 1, 86_400),
        network_seconds=_integer(variables, "LEDGERMART_NETWORK_SECONDS", 1, 86_400),
        network_answer_mb=_integer(variables, "LEDGERMART_NETWORK_ANSWER_MB", 1, 1_000_000_000),
        price_poll_seconds=_integer(variables, "LEDGERMART_PRICE_POLL_SECONDS", 1, 86_400),
        as_of_seconds=_integer(variables, "LEDGERMART_AS_OF_SECONDS", 1, 86_400),
        attest=_attested_period(variables),
        attest_max_holders=_integer(variables, "LEDGERMART_ATTEST_MAX_HOLDERS", 0, 1_000_000_000),
        lock_wait_seconds=_integer(variables, "LEDGERMART_LOCK_WAIT_SECONDS", 0, 86_400),
        version_grace_seconds=_integer(variables, "LEDGERMART_VERSION_GRACE_SECONDS", 0, 31_536_000),
        version_disk_budget_mb=_integer(variables, "LEDGERMART_VERSION_DISK_BUDGET_MB", 1, 1_000_000_000),
        rate_limit_per_minute=_integer(variables, "LEDGERMART_RATE_LIMIT_PER_MINUTE", 1, 10_000_000),
        max_stored_prices=_integer(variables, "LEDGERMART_MAX_STORED_PRICES", 0, HIGHEST_QUOTA),
        max_objects=_integer(variables, "LEDGERMART_MAX_OBJECTS", 0, HIGHEST_QUOTA),
        max_scripts=_integer(variables, "LEDGERMART_MAX_SCRIPTS", 0, HIGHEST_QUOTA),
        query_timeout_seconds=_integer(variables, "LEDGERMART_QUERY_TIMEOUT_SECONDS", 1, 3_600),
        query_memory_mb=_integer(variables, "LEDGERMART_QUERY_MEMORY_MB", 64, 1_000_000),
        pipeline_memory_mb=_memory(variables, "LEDGERMART_PIPELINE_MEMORY_MB", 256, Fraction(1, 2)),
        process_memory_mb=_memory(variables, "LEDGERMART_PROCESS_MEMORY_MB", 1_024, Fraction(3, 4)),
    )


_DEFAULTS = {variable.name: variable.default for variable in VARIABLES}


def _integer(variables: Mapping[str, str], name: str, lowest: int, highest: int) -> int:
    text = variables.get(name) or _DEFAULTS[name]
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and lowest <= int(text) <= highest):
        raise SettingsError(f"{name} is {text!r}; set it to a whole number from {lowest} to {highest}")
    return int(text)


def _memory(variables: Mapping[str, str], name: str, lowest: int, share: Fraction) -> int:
    if not variables.get(name):
        return max(lowest, int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * share) // 1_000_000)
    return _integer(variables, name, lowest, 1_000_000)


def _path(variables: Mapping[str, str], name: str, default: Path) -> Path:
    path = Path(variables.get(name) or default)
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError(
            f"{name} is {path}, but that user has no home folder; set it to an absolute path"
        ) from error


def _group(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name) or _DEFAULTS[name]
    if text == "none":
        return None
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError as error:
        raise SettingsError(f"{name} is {text!r}; set it to the name of a group of this machine, or to none") from error


def _host(variables: Mapping[str, str], name: str) -> str:
    text = variables.get(name) or _DEFAULTS[name]
    if any(character.isspace() or character in "/@" for character in text):
        raise SettingsError(f"{name} is {text!r}; set it to a host name or an address, such as 127.0.0.1")
    return text


def _yes_or_no(variables: Mapping[str, str], name: str) -> bool:
    text = variables.get(name) or _DEFAULTS[name]
    if text not in ("yes", "no"):
        raise SettingsError(f"{name} is {text!r}; set it to yes or no")
    return text == "yes"


def _networks(variables: Mapping[str, str], name: str) -> tuple[IpNetwork, ...]:
    text = variables.get(name) or _DEFAULTS[name]
    if text == "none":
        return ()
    try:
        return tuple(ipaddress.ip_network(part.strip()) for part in text.split(","))
    except ValueError as error:
        fix = "addresses or networks, separated by commas, such as 10.0.0.5,10.1.0.0/24, or to none"
        raise SettingsError(f"{name} is {text!r}; set it to {fix}") from error


def _origin(variables: Mapping[str, str], name: str) -> str:
    text = variables.get(name) or _DEFAULTS[name]
    try:
        return read_origin(text)
    except ValueError as error:
        raise SettingsError(f"{name} is {text!r}; set it to {FORM}") from error


def _attested_period(variables: Mapping[str, str]) -> AttestedPeriod:
    name = "LEDGERMART_ATTEST"
    text = variables.get(name) or _DEFAULTS[name]
    if text not in get_args(AttestedPeriod):
        raise SettingsError(f"{name} is {text!r}; set it to one of {', '.join(get_args(AttestedPeriod))}")
    return cast("AttestedPeriod", text)


def _provider(variables: Mapping[str, str], name: str) -> ReportsProvider:
    text = variables.get(name) or _DEFAULTS[name]
    if text not in get_args(ReportsProvider):
        raise SettingsError(f"{name} is {text!r}; set it to {' or '.join(get_args(ReportsProvider))}")
    return cast("ReportsProvider", text)


def _control_url(variables: Mapping[str, str], data_dir: Path) -> str:
    name = "LEDGERMART_CONTROL_URL"
    text = variables.get(name)
    if not text:
        return _sqlite_url(data_dir / "control.db")
    forms = "sqlite:////absolute/path/control.db or postgresql://user:password@host/database"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise SettingsError(f"{name} is not a database URL; set it to {forms}") from error
    if url.drivername == "sqlite":
        if not url.database or url.database == ":memory:":
            raise SettingsError(f"{name} names no SQLite file, which all processes must share; set it to {forms}")
        # Absolute, because processes with other working directories must find the same file.
        return _sqlite_url(Path(url.database).expanduser().absolute())
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return text
    raise SettingsError(f"{name} begins with {url.drivername!r}; set it to {forms}")


def _lake(variables: Mapping[str, str]) -> tuple[str | None, str]:
    text = variables.get("LEDGERMART_LAKE") or "none"
    data = variables.get("LEDGERMART_LAKE_DATA") or "none"
    if text == "none":
        return None, data
    kind = "ducklake:postgres:"
    if not text.startswith(kind) or len(text) == len(kind):
        form = f"{kind}postgresql://user:password@host/database"
        raise SettingsError(f"LEDGERMART_LAKE is not the address of a lake; set it to {form}, or to none")
    if not data.startswith(S3) and not Path(data).is_absolute():
        raise SettingsError(
            f"LEDGERMART_LAKE_DATA is {data!r}; set it to s3://bucket/prefix or to an absolute path of a shared folder"
        )
    return text.removeprefix(kind), data


def _versions(variables: Mapping[str, str], data_dir: Path) -> str | None:
    name = "LEDGERMART_VERSIONS"
    text = variables.get(name) or _DEFAULTS[name]
    if text == "none":
        return None
    place = text
    if "://" not in text:
        place = str(_path(variables, name, data_dir))
    elif not _STORE_OF_VERSIONS.fullmatch(text):
        # The message leaves the value out, because it may hold a password.
        raise SettingsError(
            f"{name} is no store of versions; set it to s3://bucket/prefix, to the path of a folder that all machines "
            "share, or to none; credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if make_url(_control_url(variables, data_dir)).get_backend_name() == "sqlite":
        raise SettingsError(
            f"{name} is set, but LEDGERMART_CONTROL_URL is an SQLite file, which no other machine can read; set "
            f"LEDGERMART_CONTROL_URL to postgresql://user:password@host/database, or {name} to none"
        )
    return place


def _sqlite_url(path: Path) -> str:
    return URL.create("sqlite", database=str(path)).render_as_string()
