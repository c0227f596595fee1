{{ config(alias='wallet_activities') }}

select
    activities.tenant_id,
    activities.subject_key,
    activities.wallet_id,
    coalesce(wallets.name, wallets.shown_as, shown_wallets.display_address, wallets.address) as wallet,
    activities.activity_id,
    activities.block_time,
    activities.block_number,
    activities.transaction_index,
    activities.log_index,
    activities.activity_type,
    activities.direction,
    activities.status,
    coalesce(activities.token_symbol, shown_tokens.display_address, activities.token_address) as token,
    coalesce(shown_tokens.display_address, activities.token_address) as token_address,
    coalesce(names.name, names.shown_as, shown.display_address, activities.counterparty_address) as counterparty,
    coalesce(names.shown_as, shown.display_address, activities.counterparty_address) as counterparty_address,
    activities.amount_approx as amount,
    activities.amount as amount_exact,
    case activities.direction when 'In' then 1 when 'Out' then -1 else 0 end * activities.amount_approx
    - coalesce(activities.fee::double, 0) as signed_amount,
    activities.amount_status,
    activities.fee::double as fee,
    activities.fee as fee_exact,
    activities.fee_status,
    activities.counterparty_count,
    activities.counterparty_status,
    valued.value_approx as value,
    valued.value as value_exact,
    coalesce(
        valued.value_status,
        case when activities.amount_raw is null then 'UnknownAmount' else 'NoPair' end
    ) as value_status,
    case activities.direction when 'In' then 1 when 'Out' then -1 else 0 end * valued.value_approx as signed_value,
    token_pairs.priced_in as currency,
    activities.transaction_hash
from {{ beside(ref('wallet_activities')) }} as activities
inner join {{ beside(ref('wallets')) }} as wallets on activities.subject_key = wallets.subject_key
left join {{ beside(ref('wallet_activity_values')) }} as valued
    on
        activities.subject_key = valued.subject_key
        and activities.activity_id = valued.activity_id
left join {{ beside(ref('token_pairs')) }} as token_pairs
    on
        activities.subject_key = token_pairs.subject_key
        and activities.token_address = token_pairs.token_address
left join {{ beside(ref('address_names')) }} as names
    on
        wallets.tenant_id = names.tenant_id
        and wallets.ledger_id = names.ledger_id
        and activities.counterparty_address = names.address
left join {{ beside(ref('addresses')) }} as shown_wallets on wallets.address = shown_wallets.address
left join {{ beside(ref('addresses')) }} as shown_tokens on activities.token_address = shown_tokens.address
left join {{ beside(ref('addresses')) }} as shown on activities.counterparty_address = shown.address
