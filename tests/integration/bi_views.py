"""Checks of the schema `bi` that hold in every file that dbt made: it has the rows of the marts, shown for people."""

import duckdb
from eth_utils import to_checksum_address  # type: ignore[attr-defined]

# Views, and the marts of which they have one row for each.
ROW_OF = {
    "address_names": "address_names",
    "attestations": "attestations",
    "balance_changes": "balance_changes",
    "concentration": "cap_table_summaries",
    "holders": "cap_tables",
    "prices": "system_prices",
    "supply_changes": "supply_changes",
    "token_activities": "token_activities",
    "token_capitalization_days": "token_capitalization_days",
    "token_holder_days": "token_holder_days",
    "tokens": "tokens",
    "wallet_activities": "wallet_activities",
    "wallet_balances": "wallet_balances",
    "wallet_value_days": "wallet_value_days",
    "wallets": "wallets",
}


def check_bi_views(marts: duckdb.DuckDBPyConnection) -> None:
    """Compare the views of `bi` with the marts under them.

    Raises:
        AssertionError: a join adds or loses rows, a number is not the nearest to its exact text, or an address has no
            checksum. Or the slices of a supply are not the whole supply.
    """
    for view, mart in ROW_OF.items():
        tenants = "select tenant_id, count(*) from {} group by tenant_id order by tenant_id"
        expected = marts.execute(tenants.format(f"marts.{mart}")).fetchall()
        assert marts.execute(tenants.format(f"bi.{view}")).fetchall() == expected, view
    columns = marts.execute(
        "select table_name, column_name from duckdb_columns() where schema_name = 'bi' order by all"
    ).fetchall()
    for view, column in columns:
        if column.endswith("_exact"):
            number = column.removesuffix("_exact")
            for shown, exact in marts.execute(f"select {number}, {column} from bi.{view}").fetchall():
                assert shown == (None if exact is None else float(exact)), (view, column, exact)
        elif column.endswith("address"):
            for (shown,) in marts.execute(f"select distinct {column} from bi.{view}").fetchall():
                is_address = shown is not None and shown.startswith("0x")
                assert not is_address or shown == to_checksum_address(shown), (view, column, shown)
    known = {address for (address,) in marts.execute("select address from marts.addresses").fetchall()}
    for mart, column in (
        ("tokens", "address"),
        ("wallets", "address"),
        ("token_positions", "holder_address"),
        ("balance_changes", "holder_address"),
        ("wallet_activities", "counterparty_address"),
        ("token_activities", "from_address"),
    ):
        met = marts.execute(f"select distinct {column} from marts.{mart} where {column} like '0x%'").fetchall()
        assert {address for (address,) in met} <= known | {f"0x{'0' * 40}"}, (mart, column)
    _check_slices(marts)


def _check_slices(marts: duckdb.DuckDBPyConnection) -> None:
    """The slices of a supply are the supply, unless holders have more than it."""
    shares = marts.execute(
        """
        select any_value(tokens.total_supply_raw), sum(slices.percentage_exact::decimal(38, 12))::varchar,
            count(distinct slices.slice_number) = count(*)
        from bi.ownership as slices
        inner join marts.cap_table_summaries as tokens using (subject_key)
        where tokens.supply_status not in ('ZeroSupply', 'Unknown') and tokens.unattributed_raw >= 0::bignum
        group by slices.subject_key
        """
    ).fetchall()
    for supply, share, is_unique in shares:
        assert supply is not None
        assert is_unique
        # Each of at most 12 slices is rounded to 12 decimals.
        assert abs(float(share) - 100) < 1e-10, share
