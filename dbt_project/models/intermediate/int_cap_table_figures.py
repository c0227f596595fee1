"""The figures of every token's cap table that depend on all its holders, computed as the API does at any block."""

from typing import Any

from figures.cap_table import parse_balances, summarize

_COLUMNS = {
    "subject_key": "bigint",
    "total_supply_raw": "bignum",
    "total_supply_status": "varchar",
    "holder_count": "bigint",
    "opens_without_holders": "boolean",
    "holders_status": "varchar",
    "unattributed_raw": "bignum",
    "unattributed_percentage": "varchar",
    "unattributed_status": "varchar",
    "top10_percentage": "varchar",
    "top10_status": "varchar",
    "hhi": "varchar",
    "hhi_status": "varchar",
    "gini": "varchar",
    "gini_status": "varchar",
    "nakamoto": "bigint",
    "nakamoto_status": "varchar",
}


def to_row(
    subject_key: int,
    supply_raw: str | None,
    supply_status: str,
    holder_count: int | None,
    opens_without_holders: bool | None,
    quantities_raw: str | None,
) -> tuple[Any, ...]:
    """Return the columns of one token."""
    found = summarize(
        parse_balances(quantities_raw or ""),
        None if supply_raw is None else int(supply_raw),
        supply_status,
        opens_without_holders=bool(opens_without_holders),
    )
    figures = found.concentration
    return (
        subject_key,
        supply_raw,
        supply_status,
        holder_count,
        opens_without_holders,
        found.holders_status,
        None if found.unattributed is None else str(found.unattributed),
        found.unattributed_percentage,
        found.unattributed_status,
        figures.top10,
        figures.top10_status,
        figures.hhi,
        figures.hhi_status,
        figures.gini,
        figures.gini_status,
        figures.nakamoto,
        figures.nakamoto_status,
    )


def model(dbt: Any, session: Any) -> Any:
    """Return one row per token; unchanged ones keep the row of an earlier build."""
    dbt.config(materialized="replaced_table")
    changed = dbt.ref("int_cap_tables_changed")
    tokens = dbt.ref("tokens")
    inputs = changed.project(
        "subject_key, total_supply_raw::varchar, total_supply_status, holder_count, opens_without_holders,"
        " quantities_raw"
    )
    # One token after the other: each may have millions of holders.
    rows = [to_row(*row) for row in iter(inputs.fetchone, None)]
    values = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
    computed = session.sql(
        "select " + ", ".join(f"unnest(${name}::{kind}[]) as {name}" for name, kind in _COLUMNS.items()),
        params=dict(zip(_COLUMNS, values, strict=True)),
    )
    if len(rows) == len(tokens):
        return computed
    kept = session.sql(f"select * from {dbt.this}").set_alias("kept")
    return kept.join(changed, "subject_key", how="anti").join(tokens, "subject_key", how="semi").union(computed)
