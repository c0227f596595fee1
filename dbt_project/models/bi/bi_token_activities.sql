{{ config(alias='token_activities') }}

with

address_names as (

    select * from {{ beside(ref('address_names')) }}

),

addresses as (

    select * from {{ beside(ref('addresses')) }}

)

select
    activities.tenant_id,
    activities.subject_key,
    activities.token_id,
    coalesce(tokens.name, tokens.symbol) as token,
    activities.activity_id,
    activities.block_time,
    activities.block_number,
    activities.transaction_index,
    activities.log_index,
    activities.activity_type,
    activities.status,
    coalesce(senders.name, shown_senders.display_address, activities.from_address) as sender,
    coalesce(shown_senders.display_address, activities.from_address) as from_address,
    coalesce(receivers.name, shown_receivers.display_address, activities.to_address) as receiver,
    coalesce(shown_receivers.display_address, activities.to_address) as to_address,
    activities.amount_approx as amount,
    activities.amount as amount_exact,
    valued.value_approx as value,
    valued.value as value_exact,
    coalesce(valued.value_status, 'NoPair') as value_status,
    token_pairs.priced_in as currency,
    activities.transaction_hash
from {{ beside(ref('token_activities')) }} as activities
inner join {{ beside(ref('tokens')) }} as tokens on activities.subject_key = tokens.subject_key
left join {{ beside(ref('token_activity_values')) }} as valued
    on
        activities.subject_key = valued.subject_key
        and activities.activity_id = valued.activity_id
left join {{ beside(ref('token_pairs')) }} as token_pairs on activities.subject_key = token_pairs.subject_key
left join address_names as senders
    on
        tokens.tenant_id = senders.tenant_id
        and tokens.ledger_id = senders.ledger_id
        and activities.from_address = senders.address
left join address_names as receivers
    on
        tokens.tenant_id = receivers.tenant_id
        and tokens.ledger_id = receivers.ledger_id
        and activities.to_address = receivers.address
left join addresses as shown_senders on activities.from_address = shown_senders.address
left join addresses as shown_receivers on activities.to_address = shown_receivers.address
