-- Fees of transactions, each with the activity that shows it: the first one of the transaction, if it is on the page.
with transactions as (

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
{% include '_report_activity.sql' %},
    transactions.shown_with
from marts.wallet_activities as activities
inner join transactions on activities.transaction_hash = transactions.transaction_hash
inner join places on activities.rowid = places.place
left join marts.wallet_activity_values as activity_values on places.value_place = activity_values.rowid
where
    activities.subject_key = $subject_key
    and activities.tenant_id = $tenant_id
    and activities.block_number between $first_block and $last_block
    and activities.activity_type = 'Fee'
    and transactions.shown_with = any($activities)
order by activities.activity_id
