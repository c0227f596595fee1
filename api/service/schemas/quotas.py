"""Structs of quotas."""

from typing import Annotated

from msgspec import Meta

from api.schema import Schema
from control.quotas import QuotaName


class Quota(Schema, frozen=True, kw_only=True):
    """One quota of a tenant with its usage."""

    quota: QuotaName
    used: Annotated[int, Meta(ge=0, description="Number of stored prices, objects or output scripts.")]
    limit: Annotated[int, Meta(ge=0, description="A write that would exceed it returns 409 `quota-exceeded`.")]
    setting: Annotated[str, Meta(description="Variable or command with which the administrator changes the limit.")]


class Quotas(Schema, frozen=True, kw_only=True):
    """All quotas of a tenant."""

    data: list[Quota]
