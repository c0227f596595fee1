{{ config(alias='wallets') }}

select
    wallets.tenant_id,
    wallets.subject_key,
    wallets.wallet_id,
    coalesce(wallets.name, wallets.shown_as, shown.display_address, wallets.address) as wallet,
    coalesce(wallets.shown_as, shown.display_address, wallets.address) as wallet_address,
    wallets.ledger,
    wallets.network,
    wallets.external_id,
    wallets.holdings_complete,
    totals.total_value_approx as total_value,
    totals.total_value as total_value_exact,
    totals.total_value_status,
    totals.value_complete,
    array_to_string(totals.unpriced, ', ') as unpriced,
    totals.change24h_approx as change24h,
    totals.change24h as change24h_exact,
    totals.change24h_status,
    array_to_string(totals.change24h_omitted, ', ') as change24h_omitted,
    totals.currency,
    wallets.as_of_block_number,
    wallets.as_of_block_time,
    wallets.as_of_finality
from {{ beside(ref('wallets')) }} as wallets
left join {{ beside(ref('wallet_totals')) }} as totals on wallets.subject_key = totals.subject_key
left join {{ beside(ref('addresses')) }} as shown on wallets.address = shown.address
