-- The fees of some transactions, each with the activity that it is shown with: the transaction's first, of those given.
with {% include '_report_activity_values.sql' %},

transactions as (

    select
        transaction_hash,
        arg_min(activity_id, (log_index, coalesce(trace_index, -1), activity_id)) as shown_with
    from marts.wallet_activities
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_number between $first_block and $last_block
        and transaction_hash = any($transactions)
        and activity_type <> 'Fee'
    group by transaction_hash

)

select
    fees.activity_id,
    fees.activity_type,
    fees.direction,
    fees.status,
    fees.block_number,
    fees.block_time,
    fees.transaction_index,
    fees.log_index,
    fees.trace_index,
    fees.transaction_hash,
    fees.counterparty_address,
    fees.token_address,
    fees.token_id,
    fees.token_symbol,
    fees.amount_raw::varchar as amount_raw,
    fees.amount,
    fees.is_located,
    fees.amount_status,
    '' as sort_key,
    activity_values.pair_key,
    activity_values.price,
    activity_values.value,
    activity_values.value_status,
    transactions.shown_with
from marts.wallet_activities as fees
inner join transactions on fees.transaction_hash = transactions.transaction_hash
left join activity_values on fees.activity_id = activity_values.activity_id
where
    fees.subject_key = $subject_key
    and fees.tenant_id = $tenant_id
    and fees.block_number between $first_block and $last_block
    and fees.activity_type = 'Fee'
    and transactions.shown_with = any($activities)
order by fees.activity_id
