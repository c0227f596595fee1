-- Activities of subjects by interval, and for the whole range (bucket null). Active wallets are senders, recipients and
-- wallets with activities. Adjustments do not count, nor do addresses such as the zero address, which have no owner.
with movements as (

    select
        block_time,
        1 as token_activities,
        0 as wallet_activities,
        case when activity_type <> 'Adjustment' then from_address end as address
    from marts.token_activities
    where tenant_id = $tenant_id and subject_key = any($subject_keys) and block_time >= $from_time and block_time < $to_time

    union all

    select
        block_time,
        0 as token_activities,
        0 as wallet_activities,
        to_address as address
    from marts.token_activities
    where
        tenant_id = $tenant_id
        and subject_key = any($subject_keys)
        and block_time >= $from_time
        and block_time < $to_time
        and activity_type <> 'Adjustment'

    union all

    select
        activities.block_time,
        0 as token_activities,
        1 as wallet_activities,
        case when activities.activity_type <> 'Adjustment' then wallets.address end as address
    from marts.wallet_activities as activities
    inner join marts.wallets as wallets on activities.subject_key = wallets.subject_key
    where
        activities.tenant_id = $tenant_id
        and activities.subject_key = any($subject_keys)
        and activities.block_time >= $from_time
        and activities.block_time < $to_time

),

bucketed as (

    select
        date_trunc($unit, block_time) as bucket,
        token_activities,
        wallet_activities,
        case when not list_contains($nobodies::varchar[], address) then address end as address
    from movements

)

select
    bucket,
    coalesce(sum(token_activities), 0)::bigint as token_activities,
    coalesce(sum(wallet_activities), 0)::bigint as wallet_activities,
    count(distinct address) as active_wallets
from bucketed
group by grouping sets ((bucket), ())
order by bucket nulls first
