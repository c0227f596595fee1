"""Roles: an operation refuses keys below the role that the document names.

`test_openapi_examples` shows that a key of this role suffices.
"""

from typing import Any

import pytest
from litestar.testing import TestClient

from control.access import Role
from tests.api.document import KEYED, ask, role_of, stored
from tests.api.test_errors import problem
from tests.api.world import World

# Reading operations that need more than the role viewer.
READ_BY_ADMINS = {"list_audit_events", "read_embed_origins", "read_wallet_keys"}
# Admins remove objects, start collection and attestation, and manage embedding. Operators do the other writes.
WRITTEN_BY_ADMINS = {
    "attest_token",
    "attest_wallet",
    "cancel_token_attestation",
    "cancel_token_history_request",
    "cancel_wallet_attestation",
    "cancel_wallet_history_request",
    "put_embed_origins",
    "put_token_tracking",
    "put_wallet_tracking",
    "remove_ledger",
    "remove_pair",
    "remove_price_source",
    "remove_priced_item",
    "remove_supported_pair",
    "remove_token",
    "remove_wallet",
    "request_token_history",
    "request_wallet_history",
    "revoke_reports",
}


def test_each_operation_names_its_decided_role() -> None:
    named: dict[str, str | None] = {}
    decided: dict[str, str | None] = {}
    for _, method, operation in (param.values for param in KEYED):
        name = operation["operationId"]
        named[name] = role_of(operation)
        least = Role.VIEWER if method == "get" else Role.OPERATOR
        decided[name] = Role.ADMIN if name in READ_BY_ADMINS | WRITTEN_BY_ADMINS else least
    assert named == decided
    assert set(named) >= READ_BY_ADMINS | WRITTEN_BY_ADMINS


@pytest.fixture(scope="module")
def before(unchanged: World) -> list[str]:
    """All rows before the first test."""
    return stored(unchanged)


@pytest.mark.proof("a role that is too low is refused and changes nothing")
@pytest.mark.parametrize(("path", "method", "operation"), KEYED)
def test_key_of_a_lower_role_is_refused_and_changes_nothing(
    unchanged: World, reader: TestClient[Any], before: list[str], path: str, method: str, operation: dict[str, Any]
) -> None:
    role, roles = Role(str(role_of(operation))), list(Role)
    for lower in roles[: roles.index(role)]:
        answer = ask(reader, path, method, operation, unchanged.headers(lower))
        assert problem(answer, 403, "role-too-low")["requiredRole"] == role
    problem(ask(reader, path, method, operation, {"Authorization": ""}), 401, "unauthenticated")
    assert stored(unchanged) == before
