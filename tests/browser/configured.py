"""The market's configuration by a tenant: token, treasury and pairs. Names contain HTML."""

from sqlalchemy.orm import Session

from api.examples import EXAMPLE_LEDGER
from control import ledgers
from control.models import Subject, TrackingWindow
from tests.api.pricing import add_item, add_pair
from tests.api.world import World, time_of
from tests.browser.market import (
    ASSETS,
    DESK,
    LUMEN,
    NEWEST,
    RANGES,
    TREASURY,
    Asset,
)

LUMEN_ID = "tok_01k9zr3m5e8v2c7q4w6t1x0b01"
TREASURY_ID = "wal_01k9zr3m5e8v2c7q4w6t1x0b02"
DESK_ID = "wal_01k9zr3m5e8v2c7q4w6t1x0b03"
# A report of each kind, with its parameters.
REPORTS = {
    "cap-table": {"tokenId": LUMEN_ID},
    "cap-table-changes": {"tokenId": LUMEN_ID, "from": "2026-04-30"},
    "wallet-activity": {"walletId": TREASURY_ID},
}

LUMEN_NAME = "Lumen <b>Network</b>"
TREASURY_NAME = "Treasury & <script>document.title='pwned'</script>"
DESK_NAME = "Exchange <i>desk</i>"


def configure(session: Session, world: World) -> None:
    """Add the subjects and the pairs of their assets to the control store."""
    principal, made_at = world.principals["admin"], time_of(90)
    for asset in ASSETS.values():
        if asset.pair_key is None:
            continue
        item = add_item(
            session,
            world.tenant_id,
            asset.symbol,
            asset.symbol,
            "Cryptocurrency",
            suffix=f"b{asset.pair_key}",
            made_at=made_at,
        )
        add_pair(
            session,
            world.tenant_id,
            asset.pair_key,
            pair_id(asset),
            item,
            ["src_kraken"],
            max_age="P1D",
            max_age_seconds=86_400,
            made_at=made_at,
        )
    ledger_id = ledgers.get(session, principal.tenant_id, EXAMPLE_LEDGER).id
    for subject_id, kind, address, symbol, name, pair_key in (
        (LUMEN_ID, "token", LUMEN, "LMN", LUMEN_NAME, ASSETS[LUMEN].pair_key),
        (TREASURY_ID, "wallet", TREASURY, None, TREASURY_NAME, None),
        (DESK_ID, "wallet", DESK, None, DESK_NAME, None),
    ):
        subject = Subject(
            id=subject_id,
            kind=kind,
            tenant_id=principal.tenant_id,
            ledger_id=ledger_id,
            address=address,
            symbol=symbol,
            name=name,
            pair_key=pair_key,
            search_text="\n".join(part for part in (symbol, name, address) if part).casefold(),
            created_at=made_at,
            updated_at=made_at,
        )
        session.add(subject)
        session.flush()
        world.subject_keys[subject_id] = subject.subject_key
        bounds = [(time_of(first), time_of(last + 1)) for first, last in RANGES]
        session.add_all(
            TrackingWindow(
                subject_key=subject.subject_key,
                opened_at=opened,
                closed_at=closed if closed < time_of(NEWEST) else None,
                opened_by=principal.key_id,
            )
            for opened, closed in bounds
            if subject_id != DESK_ID
        )


def pair_id(asset: Asset) -> str:
    """Return the id of the pair that prices an asset."""
    return f"pair_01k9zr3m5e8v2c7q4w6t1x0b{asset.pair_key}"
