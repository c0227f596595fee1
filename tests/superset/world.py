"""Two tenants with the same market; the addresses of the other tenant's holders begin with `MARK`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.api.marts import publish
from tests.api.valued import value_of
from tests.api.world import FOREIGN_TOKEN_ID, FOREIGN_WALLET_ID, World, percentage_of, text_of
from tests.browser.configured import LUMEN_ID, TREASURY_ID
from tests.browser.market import SUPPLY
from tests.browser.published import Rows, make_market, market_rows

MARK = "0xf0e1"
"""Begin of the other tenant's addresses, in lower case; none of the first one's has it."""

_APPROXIMATED = (
    "amount",
    "change24h",
    "market_capitalization",
    "quantity",
    "supply",
    "total_supply",
    "total_value",
    "value",
)


def make_two_markets(directory: Path) -> World:
    """Make a world in which both tenants have a token and a wallet with much to show; publish it as version 1."""
    world = make_market(directory)
    publish_two_markets(world, 1)
    return world


def publish_two_markets(world: World, version: int, rows: Rows | None = None) -> None:
    """Publish a version and move both names of the one in force, as the pipeline does."""
    path = publish(world.settings.serving_dir, version, two_markets(world) if rows is None else rows)
    beside = path.with_name(".current.tmp")
    beside.unlink(missing_ok=True)
    beside.hardlink_to(path)
    beside.rename(path.with_name("current.duckdb"))


def two_markets(world: World) -> Rows:
    """Return the rows of both tenants, with the views that hand-made files lack."""
    rows = market_rows(world)
    rows["cap_table_values"] = list(_with_values(_ranked(rows), _token_price(rows)))
    prices = {row["token_symbol"]: _wallet_price(rows, row) for row in rows["wallet_balances"]}
    rows["wallet_balance_values"] = [
        next(_with_values([row], prices.get(row["token_symbol"]))) for row in rows["wallet_balances"]
    ]
    rows["token_value_days"] = list(_capitalization(rows, world.subject_keys[LUMEN_ID]))
    rows["token_pairs"] += [
        {name: row.get(name) for name in ("tenant_id", "subject_key", "pair_key", "priced_as", "priced_in")}
        for row in rows["token_prices"]
    ]
    for table in rows:
        rows[table] = [_with_approximations(row) for row in rows[table]]
    _add_other(rows, world)
    return rows


def _capitalization(rows: Rows, subject_key: int) -> Iterator[dict[str, Any]]:
    """Give the token's market capitalization on the days on which its pair has a price."""
    token = next(row for row in rows["token_prices"] if row["subject_key"] == subject_key)
    supply = text_of(SUPPLY, 18)
    for row in rows["system_prices"]:
        if row["pair_key"] == token["pair_key"] and row.get("price_text"):
            yield {
                "tenant_id": token["tenant_id"],
                "subject_key": subject_key,
                "day": row["valid_from"].date(),
                "pair_key": token["pair_key"],
                "supply": supply,
                "price_text": row["price_text"],
                "price_status": "Priced",
                "value": value_of(supply, row["price_text"]),
                "value_status": "Priced",
            }


def _ranked(rows: Rows) -> Iterator[dict[str, Any]]:
    """Give the cap tables of the tokens."""
    ranks: dict[int, int] = {}
    tokens = {row["subject_key"]: row for row in rows["tokens"]}
    for row in sorted(rows["token_holders"], key=lambda row: (-row["quantity_raw"], row["holder_address"])):
        token = tokens[row["subject_key"]]
        rank = ranks[row["subject_key"]] = ranks.get(row["subject_key"], 0) + 1
        quantity = text_of(row["quantity_raw"], token["decimals"])
        percentage = percentage_of(row["quantity_raw"], token["total_supply_raw"])
        yield row | {
            "rank": rank,
            "quantity": quantity,
            "quantity_approx": None if quantity is None else float(quantity),
            "percentage": percentage,
            "percentage_approx": float(percentage),
        }


def _token_price(rows: Rows) -> dict[int, str]:
    return {row["subject_key"]: row.get("price_text") for row in rows["token_prices"]}


def _wallet_price(rows: Rows, balance: dict[str, Any]) -> dict[int, str | None]:
    """Return the newest price of a position's pair, by wallet."""
    pairs = [
        row["pair_key"]
        for row in rows["token_pairs"]
        if (row["subject_key"], row["token_address"]) == (balance["subject_key"], balance["token_address"])
    ]
    newest = [row.get("price_text") for row in rows["system_prices"] if pairs and row["pair_key"] == pairs[0]]
    return {balance["subject_key"]: newest[-1] if newest else None}


def _with_values(rows: list[dict[str, Any]], prices: dict[int, str | None] | None) -> Iterator[dict[str, Any]]:
    for row in rows:
        price = (prices or {}).get(row["subject_key"])
        value = value_of(row["quantity"], price)
        status = "Priced" if value else "NoPair"
        yield row | {"price_text": price, "value": value, "value_status": status, "currency": "USD" if price else None}


def _with_approximations(row: dict[str, Any]) -> dict[str, Any]:
    """Add the columns for charts to those that they come from."""
    names = [name for name in _APPROXIMATED if row.get(name) is not None]
    return row | {f"{name}_approx": float(row[name]) for name in names}


def _add_other(rows: Rows, world: World) -> None:
    """Give the other tenant a copy of token and wallet with other ids and addresses."""
    keys = {
        world.subject_keys[LUMEN_ID]: world.subject_keys[FOREIGN_TOKEN_ID],
        world.subject_keys[TREASURY_ID]: world.subject_keys[FOREIGN_WALLET_ID],
    }
    ids = {LUMEN_ID: FOREIGN_TOKEN_ID, TREASURY_ID: FOREIGN_WALLET_ID}
    for table, present in rows.items():
        kept = [row for row in present if row.get("subject_key") not in keys.values()]
        own = [row for row in present if row.get("subject_key") in keys]
        rows[table] = kept + [
            {name: _other(name, value, ids) for name, value in row.items()}
            | {"tenant_id": world.foreign_tenant_id, "subject_key": keys[row["subject_key"]]}
            for row in own
        ]


def _other(name: str, value: Any, ids: dict[str, str]) -> Any:
    if name in ("holder_address", "address", "counterparty_address", "from_address", "to_address") and value:
        return MARK + value[len(MARK) :]
    if name == "activity_id":
        return f"other-{value}"
    return ids.get(value, value) if isinstance(value, str) else value
