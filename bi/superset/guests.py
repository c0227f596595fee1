"""Identity and visible rows of an embedded page: the rules of its token, and one that no token can leave out.

Loaded by Superset, in its environment.
"""

import re
from typing import Any

from superset.security import SupersetSecurityManager
from superset.utils.log import AbstractEventLogger

_TENANT_ID = re.compile(r"ten_[0-9abcdefghjkmnpqrstvwxyz]{26}")


class GuestSecurityManager(SupersetSecurityManager):
    """Security manager that accepts only tenants as guests, and shows each tenant its own rows alone."""

    def parse_jwt_guest_token(self, raw_token: str) -> dict[str, Any]:
        """Check a guest token, and that its user name is a tenant's id.

        The name ends up in SQL, by the rule `tenant_id = '{{ current_username() }}'`, which escapes nothing.

        Raises:
            ValueError: the user name has another form; Superset answers 401.
        """
        token: dict[str, Any] = super().parse_jwt_guest_token(raw_token)
        name = (token.get("user") or {}).get("username")
        if not isinstance(name, str) or _TENANT_ID.fullmatch(name) is None:
            raise ValueError("the user of the guest token is no tenant")
        return token

    def get_guest_rls_filters(self, dataset: Any) -> list[Any]:
        """Return the token's rules for a dataset and the tenant's own rule, also if the dataset was not provisioned."""
        rules: list[Any] = super().get_guest_rls_filters(dataset)
        guest = self.get_current_guest_user_if_guest()
        if guest is None:
            return rules
        return [*rules, {"dataset": None, "clause": f"tenant_id = '{guest.username}'"}]


class NoEvents(AbstractEventLogger):
    """Event logger that records no views: Superset's own log grows without end, and each view would be a write."""

    def log(self, *_: Any, **__: Any) -> None:
        """Do nothing."""
