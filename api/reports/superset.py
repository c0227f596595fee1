"""Guest tokens of Superset: this service signs them, without a call to Superset.

A token's rules limit every dataset of the dashboard to the tenant and to one token or wallet. `bi/superset` has two
further barriers. Superset inserts rules into SQL without escaping. So a rule may contain only integers, instants that
this service formats, and ids that match the strict pattern of tenant ids.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import msgspec

from api.errors import ApiError
from api.http.parameters import TimeRange, read_range
from api.reports.schemas.superset import Dashboard, GuestToken, Provisioned
from control import ids, service_secrets
from control.store import ControlStore

LIFE = timedelta(minutes=5)
AUDIENCE = "ledgermart-superset"
FRAME_AUDIENCE = "ledgermart-superset-frame"
"""Same values as in `bi/superset/superset_config.py` and `frames.py`."""


class GuestTokenSigner:
    """Signer of guest tokens.

    Args:
        key: secret shared with Superset.
        superset_url: origin of Superset.
        public_origin: origin of this service's pages.
    """

    def __init__(self, key: bytes, superset_url: str, public_origin: str) -> None:
        self._key = key.hex()
        self._superset_url = superset_url
        self._public_origin = public_origin

    def sign(
        self,
        tenant_id: str,
        dashboard: Dashboard,
        rules: Sequence[Mapping[str, str | int]],
        origins: Sequence[str],
        now: datetime,
        session_end: datetime,
    ) -> GuestToken:
        """Return a token for one dashboard, with a signed list of the sites that may frame it.

        Args:
            tenant_id: tenant of the page.
            dashboard: dashboard that the token opens.
            rules: result of `row_rules`.
            origins: sites that may embed the tenant's reports.
            now: the present instant.
            session_end: end of the session; the token expires no later.
        """
        whole_seconds = now.replace(microsecond=0)
        end = min(whole_seconds + LIFE, session_end)
        times = {"iat": whole_seconds, "exp": end}
        claims = {
            "type": "guest",
            "aud": AUDIENCE,
            "user": {"username": tenant_id, "first_name": "Guest", "last_name": "Guest"},
            "resources": [{"type": "dashboard", "id": dashboard.embedded_id}],
            "rls_rules": list(rules),
        }
        grant = {"aud": FRAME_AUDIENCE, "origins": [self._public_origin, *origins]}
        return GuestToken(
            guest_token=jwt.encode(claims | times, self._key, algorithm="HS256"),
            expires_at=end,
            superset_url=self._superset_url,
            embedded_id=dashboard.embedded_id,
            embedder=dashboard.embedder,
            frame=jwt.encode(grant | times, self._key, algorithm="HS256"),
        )


def read_key(store: ControlStore) -> bytes:
    """Return the secret shared with Superset."""
    with store.read() as session:
        return service_secrets.get(session, service_secrets.SUPERSET_GUEST_KEY)


def find_dashboard(data_dir: Path, report: str) -> Dashboard:
    """Return a report's dashboard from the file that provisioning wrote.

    Raises:
        ApiError: 503, the report's dashboard is not provisioned.
    """
    path = data_dir / "superset" / "provisioned.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Provisioned).dashboards[report]
    except (FileNotFoundError, KeyError, msgspec.DecodeError) as error:
        raise ApiError(
            503,
            "superset-not-provisioned",
            f"the dashboard {report} is not provisioned in Superset; run `make superset`",
            headers={"Retry-After": "30"},
        ) from error


def row_rules(
    tenant_id: str, dashboard: Dashboard, subject_key: int, params: Mapping[str, str]
) -> list[dict[str, str | int]]:
    """Return the row-level rules of a guest token: one for the tenant, and one for the subject in each dataset.

    A range (`from`, `to`) filters the datasets with a time column; the other datasets show the present.

    Raises:
        ValueError: the tenant id does not match the pattern of tenant ids.
        ApiError: 422, the report has `asOf`, which Superset does not support; or the range is empty.
    """
    if not ids.is_id("ten_", tenant_id):
        raise ValueError("a guest token is for one tenant, and this is not the id of one")
    if "asOf" in params:
        raise ApiError(
            422, "not-supported", "Superset's dashboards show the present; leave asOf out, or use the builtin provider"
        )
    times = read_range(params.get("from"), params.get("to"))
    rules: list[dict[str, str | int]] = [{"clause": f"tenant_id = '{tenant_id}'"}]
    for dataset in dashboard.datasets:
        clauses = [f"subject_key = {subject_key:d}"]
        if dataset.time_column is not None:
            clauses += _time_clauses(dataset.time_column, times)
        rules.append({"dataset": dataset.id, "clause": " and ".join(clauses)})
    return rules


def _time_clauses(column: str, times: TimeRange) -> list[str]:
    bounds = ((">=", times.start), ("<", times.end))
    return [f"{column} {sign} timestamp '{_naive(moment)}'" for sign, moment in bounds if moment is not None]


def _naive(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
