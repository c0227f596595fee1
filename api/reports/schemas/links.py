"""Structs of report links, embed tokens, and sites that may embed reports."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from api.schema import Instant, Schema
from control.embedding import MOST_ORIGINS
from control.inputs import MOMENT, Keywords, described, id_of
from control.origins import PATTERN
from control.settings import ReportsProvider

Report = Literal["cap-table", "cap-table-changes", "wallet-activity", "index"]
Theme = Literal["auto", "light", "dark"]

ReportUrl = Annotated[
    str,
    Meta(
        description="Address of the report for an iframe's `src`. The embed token is in the fragment, after `#`. "
        "Browsers send the fragment to no server."
    ),
]
LinkEnd = Annotated[
    Instant, Meta(description="Time until which the link can be opened. An open page renews its token itself.")
]


class ReportLink(Schema, frozen=True, kw_only=True):
    """A short-lived link to a report."""

    type: Report
    provider: ReportsProvider
    report_url: ReportUrl
    expires_at: LinkEnd
    iframe: Annotated[
        str, Meta(description="HTML for your page: a script that adjusts the height, then the frame with the link.")
    ]


class EmbedOrigins(Schema, frozen=True, kw_only=True):
    """Sites that may embed the tenant's reports. If the list is empty, only pages of this service may embed them."""

    embed_origins: Annotated[
        list[Annotated[str, described("Origin of a site.", pattern=PATTERN)]],
        described("Scheme, host and port of each site.", [["https://portal.example"]], maxItems=MOST_ORIGINS),
    ]


class Revocation(Schema, frozen=True, kw_only=True):
    """The revocation of all earlier links, tokens and open pages."""

    embed_id: Annotated[str, Meta(description="`emb_...`, a part of every link from now on.")]


class EmbedToken(Schema, frozen=True, kw_only=True):
    """A further token of an open report."""

    token: str
    expires_at: Instant
    renewable_until: Annotated[
        Instant, Meta(description="End of the report's session. After this time, the report needs a new link.")
    ]


class IndexLinkCreate(Schema, frozen=True, kw_only=True):
    """A report to open from the index page."""

    rules: ClassVar[Keywords] = {
        "anyOf": [
            {"properties": {"type": {"enum": ["cap-table", "wallet-activity"]}}},
            {"properties": {"from": {"type": "string"}}, "required": ["from"]},
        ]
    }

    type: Literal["cap-table", "cap-table-changes", "wallet-activity"]
    id: Annotated[str, described("Id of the token, `tok_...`, or of the wallet, `wal_...`.", **id_of("tok_", "wal_"))]
    from_: Annotated[str | None, described("The earlier moment of `cap-table-changes`, which needs it.", **MOMENT)] = (
        field(default=None, name="from")
    )


class IndexLink(Schema, frozen=True, kw_only=True):
    """A link to a report, in the session of the index page."""

    report_url: ReportUrl
    expires_at: LinkEnd
