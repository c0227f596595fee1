{{ config(alias='attestations') }}

select
    attestations.tenant_id,
    attestations.subject_key,
    coalesce(
        tokens.name, tokens.symbol, wallets.name, wallets.shown_as, shown.display_address, wallets.address
    ) as subject,
    attestations.attestation_number,
    attestations.block_number,
    attestations.block_time,
    attestations.is_automatic,
    attestations.status,
    attestations.balance_count,
    attestations.read_count,
    attestations.difference_count,
    attestations.unconfirmed_count,
    attestations.balances::double as balances,
    attestations.balances as balances_exact,
    attestations.total_supply::double as total_supply,
    attestations.total_supply as total_supply_exact,
    attestations.attested_at,
    attestations.is_superseded,
    attestations.superseded_by
from {{ beside(ref('attestations')) }} as attestations
left join {{ beside(ref('tokens')) }} as tokens on attestations.subject_key = tokens.subject_key
left join {{ beside(ref('wallets')) }} as wallets on attestations.subject_key = wallets.subject_key
left join {{ beside(ref('addresses')) }} as shown on wallets.address = shown.address
