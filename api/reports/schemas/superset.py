"""Structs for dashboards of Superset: guest tokens for report pages, and the file that provisioning writes."""

from typing import Annotated

from msgspec import Meta

from api.schema import Instant, Schema


class GuestToken(Schema, frozen=True, kw_only=True):
    """A dashboard of Superset, and the token that opens it for one tenant and one token or wallet."""

    guest_token: str
    expires_at: Annotated[
        Instant, Meta(description="Time at which the guest token expires; request a new one before it.")
    ]
    superset_url: Annotated[str, Meta(description="Origin of Superset.", examples=["https://bi.example"])]
    embedded_id: Annotated[str, Meta(description="Id for embedding the dashboard.")]
    embedder: Annotated[
        str | None,
        Meta(
            description="Origin of the pages that may embed the dashboard; Superset refuses other origins. Null if "
            "`make superset` of an earlier release made the dashboard.",
            examples=["https://api.example"],
        ),
    ]
    frame: Annotated[
        str,
        Meta(
            description="Value for the parameter `frame` of the dashboard's address; it names the sites that may embed "
            "it."
        ),
    ]


class Dataset(Schema, frozen=True, kw_only=True):
    """A dataset of a dashboard; `time_column` is the column that a range filters, None for present figures."""

    id: int
    time_column: str | None


class Dashboard(Schema, frozen=True, kw_only=True):
    """A dashboard as provisioned; `embedder` is the origin of the pages that may show it."""

    embedded_id: str
    datasets: list[Dataset]
    embedder: str | None = None


class Provisioned(Schema, frozen=True, kw_only=True):
    """The dashboards that `bi/superset/provision.py` made, by report."""

    dashboards: dict[str, Dashboard]
