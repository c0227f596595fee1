-- Row positions of the activities of a wallet and of their values. It marks fees that another activity of the same
-- transaction can show. Other queries read the result as `places`. Values by links changed since the build are omitted.
with moved as (

    select transaction_hash
    from marts.wallet_activities
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and activity_type <> 'Fee'
        and transaction_hash is not null

),

activity_values as (

    select
        rowid as value_place,
        activity_id
    from marts.wallet_activity_values
    where subject_key = $subject_key and tenant_id = $tenant_id

)

select
    activities.rowid as place,
    case when not list_contains($unlinked || $relinked, activities.token_address) then activity_values.value_place end
        as value_place,
    case when list_contains($relinked, activities.token_address) then 'NoPrice' else 'NoPair' end as status_without_value,
    activities.activity_type = 'Fee'
    and coalesce(activities.transaction_hash in (select moved.transaction_hash from moved), false) as is_folded
from marts.wallet_activities as activities
left join activity_values on activities.activity_id = activity_values.activity_id
where activities.subject_key = $subject_key and activities.tenant_id = $tenant_id
order by activities.rowid
