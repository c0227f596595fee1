"""Isolation of Superset's guests: requests beyond their page never return rows of another tenant.

Both tenants have a token with the same holders, but the other tenant's addresses begin with `MARK`.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx
import jwt
import pytest

from tests.api.world import World
from tests.browser.market import LUMEN, NEWEST, Market
from tests.superset.service import Guest, Superset, rows_of
from tests.superset.world import MARK

pytestmark = pytest.mark.release

Chart = Callable[[str], dict[str, Any]]
HOLDERS = "Holders of the token"
COLUMNS = ["rank", "holder_address", "quantity", "value"]


def metric(sql: str) -> dict[str, Any]:
    return {"expressionType": "SQL", "sqlExpression": sql, "label": "asked"}


def column(sql: str) -> dict[str, Any]:
    return {"expressionType": "SQL", "sqlExpression": sql, "label": "asked"}


@cache
def holders() -> int:
    """How many holders the market's token has, counted from what moved."""
    market = Market()
    balances = market.balances_before(NEWEST + 1)
    return sum(1 for holder in market.holders if balances[LUMEN, holder])


def assert_nothing_foreign(world: World, answer: httpx.Response) -> None:
    assert MARK not in answer.text.lower()
    assert world.foreign_tenant_id not in answer.text.replace(answer.request.content.decode(errors="replace"), "")


def test_a_guest_sees_its_own_rows(world: World, guest: Guest, chart: Chart) -> None:
    rows = rows_of(guest.query(chart(HOLDERS), COLUMNS, orderby=[["rank", True]]))
    assert [row["rank"] for row in rows] == list(range(1, holders() + 1))
    assert not any(row["holder_address"].lower().startswith(MARK) for row in rows)


def test_the_other_tenant_sees_its_own(world: World, superset: Superset, chart: Chart) -> None:
    other = superset.guest(superset.claims(world.foreign_tenant_id))
    rows = rows_of(other.query(chart(HOLDERS), COLUMNS))
    assert len(rows) == holders()
    assert all(row["holder_address"].lower().startswith(MARK) for row in rows)


def test_the_token_narrows_the_tenant(superset: Superset, world: World, guest: Guest, chart: Chart) -> None:
    """The tenant has several tokens; the guest's report is about one of them."""
    wide = superset.claims(world.tenant_id, rls_rules=[{"clause": f"tenant_id = '{world.tenant_id}'"}])
    keys = {row["subject_key"] for row in rows_of(superset.guest(wide).query(chart("Total supply"), ["subject_key"]))}
    assert len(keys) > 1
    [row] = rows_of(guest.query(chart("Total supply"), ["subject_key"]))
    assert row["subject_key"] in keys


@pytest.mark.parametrize("where", ["1=1) OR (1=1", "1=1 OR 1=1", "tenant_id like 'ten_%' or true", "1=1 -- ", "1=1 /*"])
def test_an_extra_condition_returns_no_foreign_rows(world: World, guest: Guest, chart: Chart, where: str) -> None:
    answer = guest.query(chart(HOLDERS), COLUMNS, extras={"where": where})
    assert_nothing_foreign(world, answer)
    having = guest.query(chart(HOLDERS), [], metrics=[metric("count(*)")], extras={"having": where})
    for each in (answer, having):
        assert each.status_code in (200, 400)
        if each.status_code == 200:
            found = rows_of(each)
            assert len(found) in (1, holders())
            assert all(row.get("asked") in (None, holders()) for row in found)


SUBQUERY = "(select max(holder_address) from bi.holders)"


@pytest.mark.parametrize(
    "query",
    [
        {"columns": COLUMNS, "extras": {"where": f"holder_address = {SUBQUERY}"}},
        {"columns": COLUMNS, "extras": {"where": "1=1 union select 1, 2, 3, 4"}},
        {"columns": [], "metrics": [metric(SUBQUERY)]},
        {"columns": [column(SUBQUERY)]},
        {"columns": COLUMNS, "filters": [{"col": column(SUBQUERY), "op": "IS NOT NULL"}]},
        {"columns": COLUMNS, "orderby": [[column(SUBQUERY), True]]},
        {"columns": COLUMNS, "extras": {"where": "{{ dataset(2) }} is not null"}},
        {"columns": [column("(from marts.cap_tables select first(holder_address))")]},
    ],
    ids=["where", "union", "metric", "column", "filter", "order", "template", "from first"],
)
def test_no_further_table_can_be_read(world: World, guest: Guest, chart: Chart, query: dict[str, Any]) -> None:
    answer = guest.query(chart(HOLDERS), **query)
    assert answer.status_code in (400, 403, 422, 500), answer.text[:500]
    assert_nothing_foreign(world, answer)


def test_filtering_for_another_tenant_returns_no_rows(world: World, guest: Guest, chart: Chart) -> None:
    wanted = [{"col": "tenant_id", "op": "==", "val": world.foreign_tenant_id}]
    assert rows_of(guest.query(chart(HOLDERS), COLUMNS, filters=wanted)) == []


@pytest.mark.parametrize(
    "sql",
    ["count(*)", "count(distinct tenant_id)", "max(holder_address)", "min(tenant_id)", "count(*) over ()"],
)
def test_other_metrics_are_computed_from_own_rows(world: World, guest: Guest, chart: Chart, sql: str) -> None:
    answer = guest.query(chart(HOLDERS), [], metrics=[metric(sql)])
    assert_nothing_foreign(world, answer)
    if answer.status_code == 200:
        expected = {sql: holders(), "count(distinct tenant_id)": 1, "min(tenant_id)": world.tenant_id}
        found = {row["asked"] for row in rows_of(answer)}
        assert sql == "max(holder_address)" or found == {expected[sql]}


@pytest.mark.parametrize(
    "sql",
    [
        "read_text('/etc/hostname')",
        "(select content from read_text('/etc/hostname'))",
        "getenv('SUPERSET_GUEST_KEY')",
        "query('select 1')",
        "(select max(tenant_id) from query('select tenant_id from marts.tokens'))",
    ],
)
def test_nothing_outside_the_file_can_be_read(guest: Guest, chart: Chart, superset: Superset, sql: str) -> None:
    answer = guest.query(chart(HOLDERS), [column(sql)])
    assert answer.status_code != 200 or rows_of(answer)[0]["asked"] in (None, ""), answer.text[:500]
    assert superset.key not in answer.text


def test_a_query_needs_a_chart_of_the_dashboard(guest: Guest, chart: Chart, superset: Superset) -> None:
    known = chart(HOLDERS)
    assert guest.query(known, COLUMNS, form_data={}).status_code == 403
    own = {each["id"] for each in superset.provisioned("cap-table")["datasets"]}
    others = {each["id"] for each in superset.provisioned("wallet-activity")["datasets"]}
    assert not own & others
    for dataset in others:
        assert guest.query(known, ["tenant_id"], dataset=dataset).status_code == 403


@pytest.mark.parametrize("kind", ["samples", "drill_detail", "results", "query", "columns", "timegrains"])
@pytest.mark.parametrize("form", ["json", "csv", "xlsx"])
def test_other_result_types_have_no_foreign_rows(
    world: World, guest: Guest, chart: Chart, kind: str, form: str
) -> None:
    answer = guest.query(chart(HOLDERS), COLUMNS, result_type=kind, result_format=form)
    assert_nothing_foreign(world, answer)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/database/"),
        ("GET", "/api/v1/database/1"),
        ("GET", "/api/v1/database/1/schemas/"),
        ("GET", "/api/v1/database/1/tables/?q=(schema_name:bi)"),
        ("GET", "/api/v1/database/1/select_star/tokens/bi/"),
        ("GET", "/api/v1/dataset/"),
        ("GET", "/api/v1/dataset/2"),
        ("GET", "/api/v1/datasource/table/2/column/holder_address/values/"),
        ("POST", "/datasource/samples?datasource_type=table&datasource_id=2"),
        ("GET", "/datasource/get/table/2/"),
        ("GET", "/api/v1/explore/?slice_id=1"),
        ("GET", "/api/v1/query/"),
        ("GET", "/api/v1/saved_query/"),
        ("POST", "/api/v1/sqllab/execute/"),
        ("GET", "/api/v1/sqllab/"),
        ("POST", "/api/v1/security/guest_token/"),
        ("GET", "/api/v1/security/users/"),
        ("GET", "/api/v1/security/roles/"),
        ("GET", "/api/v1/rowlevelsecurity/"),
        ("GET", "/api/v1/dashboard/export/?q=!(1,2)"),
        ("GET", "/api/v1/chart/export/?q=!(1)"),
        ("GET", "/api/v1/assets/export/"),
        ("GET", "/api/v1/log/"),
        ("GET", "/api/v1/report/"),
        ("POST", "/api/v1/dashboard/"),
        ("DELETE", "/api/v1/dashboard/1"),
        ("PUT", "/api/v1/chart/1"),
    ],
)
def test_the_rest_of_superset_is_closed(world: World, guest: Guest, method: str, path: str) -> None:
    body = {"database_id": 1, "sql": "select * from marts.tokens"} if method in ("POST", "PUT") else None
    answer = guest.ask(method, path, body)
    # 302 leads to the page to sign in.
    assert answer.status_code in (302, 400, 401, 403, 404, 405), f"{answer.status_code} {answer.text[:300]}"
    assert_nothing_foreign(world, answer)


def test_one_report_is_not_another(superset: Superset, guest: Guest) -> None:
    other = superset.provisioned("wallet-activity")["embeddedId"]
    dashboard = int(guest.dashboard(superset.provisioned("cap-table")["embeddedId"]).json()["result"]["dashboard_id"])
    assert guest.dashboard(other).status_code in (403, 404) or guest.ask(
        "GET", f"/api/v1/dashboard/{3 - dashboard}/charts"
    ).status_code in (403, 404)


def test_without_rules_a_guest_is_still_its_tenant(world: World, superset: Superset, chart: Chart) -> None:
    open_token = superset.guest(superset.claims(world.tenant_id, rls_rules=[]))
    answer = open_token.query(chart(HOLDERS), ["tenant_id", *COLUMNS])
    assert {row["tenant_id"] for row in rows_of(answer)} == {world.tenant_id}


def test_a_rule_for_an_unknown_dataset_opens_nothing(world: World, superset: Superset, chart: Chart) -> None:
    claims = superset.claims(
        world.tenant_id, rls_rules=[{"dataset": 9999, "clause": "1 = 1"}, {"clause": "1=1 or 1=1"}]
    )
    rows = rows_of(superset.guest(claims).query(chart(HOLDERS), ["tenant_id"]))
    assert {row["tenant_id"] for row in rows} == {world.tenant_id}


def test_rules_of_another_tenant_leave_nothing(world: World, superset: Superset, chart: Chart) -> None:
    theirs = superset.claims(world.foreign_tenant_id)["rls_rules"]
    assert (
        rows_of(superset.guest(superset.claims(world.tenant_id, rls_rules=theirs)).query(chart(HOLDERS), COLUMNS)) == []
    )


@pytest.mark.parametrize(
    "name",
    [
        "x' OR '1'='1",
        "ten_01m805847w6dg31ahdpv83mad'",
        "ten_01m805847w6dg31ahdpv83madw' or '1'='1",
        "ten_01m805847w6dg31ahdpv83madw\n",
        "TEN_01M805847W6DG31AHDPV83MADW",
        "6f0c1a4e-9d0b-5c0e-8a3e-2f1b7c5d9e10",
        "admin",
        "",
        None,
        ["ten_01m805847w6dg31ahdpv83madw"],
    ],
)
def test_a_username_that_is_no_tenant_gets_401(world: World, superset: Superset, chart: Chart, name: Any) -> None:
    for rules in ([], [{"clause": "1=1"}]):
        claims = superset.claims(world.tenant_id, user={"username": name}, rls_rules=rules)
        assert superset.guest(claims).query(chart(HOLDERS), COLUMNS).status_code == 401


def test_a_user_without_a_name_gets_401(world: World, superset: Superset, chart: Chart) -> None:
    for user in ({}, None, "ten_01m805847w6dg31ahdpv83madw"):
        claims = superset.claims(world.tenant_id, user=user, rls_rules=[])
        assert superset.guest(claims).query(chart(HOLDERS), COLUMNS).status_code == 401


def test_a_token_that_is_not_ours_is_refused(world: World, superset: Superset, chart: Chart) -> None:
    claims = superset.claims(world.tenant_id)
    past = int(time.time()) - 10
    tokens = {
        "expired": jwt.encode(claims | {"exp": past}, superset.key, algorithm="HS256"),
        "forged": jwt.encode(claims, "another key of at least 32 bytes......", algorithm="HS256"),
        "unsigned": jwt.encode(claims, "", algorithm="none"),
        "another audience": jwt.encode(claims | {"aud": "superset"}, superset.key, algorithm="HS256"),
        "another type": jwt.encode(claims | {"type": "user"}, superset.key, algorithm="HS256"),
        "a grant to frame": superset.frame("https://portal.example"),
        "nothing": "",
    }
    for what, token in tokens.items():
        assert superset.guest(token).query(chart(HOLDERS), COLUMNS).status_code == 401, what


def test_without_a_token_there_is_nothing(world: World, superset: Superset, chart: Chart) -> None:
    nobody = superset.guest("")
    nobody.headers.clear()
    answer = nobody.query(chart(HOLDERS), COLUMNS)
    assert answer.status_code in (400, 401, 403)
    assert_nothing_foreign(world, answer)


def test_tenants_in_turn_see_their_own_each_time(world: World, superset: Superset, chart: Chart) -> None:
    """Caches between requests are separate for each tenant."""
    for tenant, is_other in ((world.tenant_id, False), (world.foreign_tenant_id, True)) * 2:
        rows = rows_of(superset.guest(superset.claims(tenant)).query(chart(HOLDERS), COLUMNS))
        assert len(rows) == holders()
        assert {row["holder_address"].lower().startswith(MARK) for row in rows} == {is_other}
