{{ config(alias='wallet_value_days') }}

select
    days.tenant_id,
    days.subject_key,
    wallets.wallet_id,
    coalesce(wallets.name, wallets.shown_as, shown.display_address, wallets.address) as wallet,
    days.day,
    days.value_approx as value,
    days.value as value_exact,
    days.value_status,
    days.value_complete,
    array_to_string(days.unpriced, ', ') as unpriced,
    days.holdings_complete,
    totals.currency
from {{ beside(ref('wallet_value_days')) }} as days
inner join {{ beside(ref('wallets')) }} as wallets on days.subject_key = wallets.subject_key
left join {{ beside(ref('wallet_totals')) }} as totals on days.subject_key = totals.subject_key
left join {{ beside(ref('addresses')) }} as shown on wallets.address = shown.address
