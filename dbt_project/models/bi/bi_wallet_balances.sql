{{ config(alias='wallet_balances') }}

select
    balances.tenant_id,
    balances.subject_key,
    wallets.wallet_id,
    coalesce(wallets.name, wallets.shown_as, shown_wallets.display_address, wallets.address) as wallet,
    coalesce(balances.token_symbol, shown.display_address, balances.token_address) as token,
    coalesce(shown.display_address, balances.token_address) as token_address,
    balances.quantity_approx as quantity,
    balances.quantity as quantity_exact,
    balances.price_text::double as price,
    balances.price_text as price_exact,
    balances.value_approx as value,
    balances.value as value_exact,
    balances.value_status,
    balances.currency,
    balances.reconciliation,
    balances.checked_block_number,
    balances.unread_reason
from {{ beside(ref('wallet_balance_values')) }} as balances
inner join {{ beside(ref('wallets')) }} as wallets on balances.subject_key = wallets.subject_key
left join {{ beside(ref('addresses')) }} as shown_wallets on wallets.address = shown_wallets.address
left join {{ beside(ref('addresses')) }} as shown on balances.token_address = shown.address
