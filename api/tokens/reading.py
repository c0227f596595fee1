"""Tokens in lists and details: configuration from the control store, findings from the marts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from api.engine.rows import as_utc
from api.engine.serving import Snapshot
from api.subjects.moments import View, resolve, to_as_of
from api.subjects.windows import to_tracking_status, to_windows
from api.tokens import schemas as tokens
from api.tokens.holders import count_holders
from api.tokens.rows import ContractStatusRow, MetadataRow
from api.tokens.supplies import current_supply
from api.values.reading import CURRENCY, to_link, token_prices
from api.values.rows import TokenPriceRow
from control.subjects import SubjectRow


def contract_statuses(
    snapshot: Snapshot, subjects: Sequence[SubjectRow], tenant_id: str
) -> dict[int, ContractStatusRow]:
    """Return the contract statuses of tokens by subject key; contracts that the pipeline has not read are absent."""
    keys = [subject.subject_key for subject in subjects]
    rows = snapshot.rows("contract_statuses", ContractStatusRow, tenant_id=tenant_id, subject_keys=keys)
    return {row.subject_key: row for row in rows}


def is_fungible(snapshot: Snapshot, token: SubjectRow) -> bool | None:
    """Return whether a token's contract is a fungible token; None if that is unknown."""
    found = contract_statuses(snapshot, [token], token.tenant_id).get(token.subject_key)
    return {"Fungible": True, "NotFungible": False}.get(found.contract_status) if found else None


class _HasHolders(Protocol):
    @property
    def holder_count(self) -> int | None: ...

    @property
    def holders_status(self) -> tokens.HoldersStatus: ...


def to_holder_count_status(found: _HasHolders | None) -> tokens.HolderCountStatus:
    """Return the status of a number of holders: missing, complete, or a lower bound."""
    if found is None or found.holder_count is None:
        return "NotYetCollected"
    return "Counted" if found.holders_status == "Complete" else "LowerBound"


def to_token_summary(
    subject: SubjectRow,
    statuses: Mapping[int, ContractStatusRow],
    tracked: set[int],
    prices: Mapping[int, TokenPriceRow] | None = None,
) -> tokens.TokenSummary:
    """Return the summary of a token for lists."""
    known = (prices or {}).get(subject.subject_key)
    link = to_link(subject, known)
    price = known if link.pair_key is not None else None
    contract = statuses.get(subject.subject_key)
    return tokens.TokenSummary(
        id=subject.id,
        name=subject.name,
        symbol=subject.symbol or "",
        ledger=subject.ledger_name,
        ledger_id=subject.presented_address,
        external_id=subject.external_id,
        tracking_status=to_tracking_status(subject),
        contract_status=contract.contract_status if contract else "Unknown",
        metadata_status=contract.metadata_status if contract else None,
        priced_as=subject.priced_as,
        priced_in=subject.priced_in or (CURRENCY if subject.subject_key in tracked else None),
        pair_id=subject.pair_id,
        price=price.price if price else None,
        price_status=price.price_status if price else link.status,
        market_capitalization=price.market_capitalization if price else None,
        market_capitalization_status=price.market_capitalization_status if price else link.status,
        change24h=price.change24h if price else None,
        change24h_status=price.change24h_status if price else link.status,
    )


def to_token(snapshot: Snapshot, view: View) -> tokens.Token:
    """Return a token with its details."""
    subject, facts = view.subject, view.token
    status = ContractStatusRow(subject.subject_key, facts.contract_status, facts.metadata_status) if facts else None
    summary = to_token_summary(
        subject,
        {subject.subject_key: status} if status else {},
        {subject.subject_key} if view.windows else set(),
        token_prices(snapshot, subject.tenant_id, [subject.subject_key]),
    )
    counted = count_holders(snapshot, subject.tenant_id, [subject.subject_key]).get(subject.subject_key)
    supply = current_supply(view)
    return tokens.Token(
        **{name: getattr(summary, name) for name in summary.__struct_fields__},
        decimals=facts.decimals if facts else None,
        standard=facts.standard if facts else None,
        metadata=_to_metadata(snapshot, subject),
        behaviour=facts.behaviour if facts else None,
        total_supply=supply.shown,
        total_supply_status=supply.status,
        holder_count=counted.holder_count if counted else None,
        holder_count_status=to_holder_count_status(counted),
        windows=to_windows(view.windows),
        created_at=subject.created_at,
        updated_at=subject.updated_at,
        as_of=to_as_of(view, resolve(snapshot, view, None), snapshot),
    )


def _to_metadata(snapshot: Snapshot, token: SubjectRow) -> tokens.TokenMetadata | None:
    row = snapshot.row(
        "token_metadata",
        MetadataRow,
        tenant_id=token.tenant_id,
        network=token.network,
        token_address=token.address,
    )
    if row is None:
        return None
    found = None
    if row.found_at is not None and row.found_contract_status is not None:
        found = tokens.FoundMetadata(
            found_at=as_utc(row.found_at),
            contract_status=row.found_contract_status,
            standard=row.found_standard,
            symbol=row.found_symbol,
            name=row.found_name,
            decimals=row.found_decimals,
        )
    return tokens.TokenMetadata(
        symbol=row.symbol,
        name=row.name,
        detail=row.detail,
        read_at=as_utc(row.read_at),
        checked_at=as_utc(row.checked_at),
        confirmed_at=as_utc(row.confirmed_at),
        found=found,
    )
