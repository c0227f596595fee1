"""Further work on the service, beside readers and writers: the past, reports and exports."""

from functools import partial
from urllib.parse import urlsplit

import urllib3

from tests.chain.world import holder_at
from tests.e2e.client import ApiClient
from tests.e2e.service import ServiceError
from tests.faults.load import Tenant
from tests.faults.service import LoadedService

_HISTORY_SECONDS = 10.0
_REPORT_SECONDS = 2.0
_EXPORT_SECONDS = 30.0
_TABLE_SECONDS = 5.0
# Apart from the addresses of the writers.
_FIRST_ADDRESS = 5 * 10**9


def add_work(loaded: LoadedService) -> None:
    """Add a thread for each kind of work and tenant."""
    for number, tenant in enumerate(loaded.tenants):
        loaded.load.add(partial(_ask_history, loaded, tenant, number))
        loaded.load.add(partial(_open_reports, loaded, tenant))
        loaded.load.add(partial(_download, loaded, tenant))
    loaded.load.add(partial(_export, loaded))


def _ask_history(loaded: LoadedService, tenant: Tenant, position: int) -> None:
    """Track a new wallet, and request its whole past and that of a token."""
    with loaded.client(tenant) as client:
        for number in loaded.load.rounds(_HISTORY_SECONDS):
            with loaded.load.tally.request():
                address = holder_at(_FIRST_ADDRESS * (position + 1) + number)
                created = client.post("/v1/wallets", {"ledger": tenant.ledger, "ledgerId": address})
                path = f"/v1/wallets/{created['id']}"
                client.put(f"{path}/tracking", {"trackingStatus": "enabled"})
                client.post(f"{path}/history-requests", {"from": "creation", "to": "now"})
                token = next(iter(tenant.tokens.values()))
                client.get(f"{token}/history-requests", limit=10)


def _open_reports(loaded: LoadedService, tenant: Tenant) -> None:
    """Open the page of each report, and read its data as the page does."""
    token = next(iter(tenant.tokens.values())).rpartition("/")[2]
    wallet = tenant.wallets[0].rpartition("/")[2]
    with loaded.client(tenant) as client:
        for number in loaded.load.rounds(_REPORT_SECONDS):
            report, parameters = (
                ("cap-table", {"tokenId": token}) if number % 2 else ("wallet-activity", {"walletId": wallet})
            )
            with loaded.load.tally.request():
                url = str(client.get(f"/v1/reports/{report}", **parameters)["reportUrl"])
                secret = urlsplit(url).fragment.removeprefix("t=")
                with ApiClient(loaded.service.api_url, secret) as page:
                    page.get(f"/embed/data/{report}/summary")
                    page.get(f"/embed/data/{report}/rows", limit=50)
            _fetch(loaded, url.partition("#")[0], {})


def _download(loaded: LoadedService, tenant: Tenant) -> None:
    """Download lists as files."""
    paths = [f"{path}/{rows}" for path in tenant.tokens.values() for rows in ("cap-table", "activities")]
    types = ("text/csv", "application/x-ndjson", "application/vnd.apache.parquet")
    for number in loaded.load.rounds(_TABLE_SECONDS):
        headers = {"Authorization": f"Bearer {tenant.key}", "Accept": types[number % len(types)]}
        _fetch(loaded, loaded.service.api_url + paths[number % len(paths)], headers)


def _fetch(loaded: LoadedService, url: str, headers: dict[str, str]) -> None:
    path = urlsplit(url).path
    try:
        response = urllib3.request("GET", url, headers=headers, retries=False, timeout=60)
    except urllib3.exceptions.HTTPError as error:
        loaded.load.tally.count(f"{type(error).__name__} of {path}")
    else:
        loaded.load.tally.count("ok" if response.status == 200 else f"{response.status} of {path}")


def _export(loaded: LoadedService) -> None:
    """Export a tenant's marts with the command."""
    for number in loaded.load.rounds(_EXPORT_SECONDS):
        tenant = loaded.tenants[number % len(loaded.tenants)]
        form = ("parquet", "csv")[number // 2 % 2]
        arguments = ("--tenant", tenant.name, "--format", form, "--out", str(loaded.folder / "export"), "--force")
        try:
            loaded.service.run("export", *arguments)
        except ServiceError as error:
            loaded.load.tally.count(f"export: {str(error)[-300:]}")
        else:
            loaded.load.tally.count("ok")
