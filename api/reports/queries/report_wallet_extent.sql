-- Number of different counterparties, and the time of the newest activity.
with seen as (

    select
        activity_type,
        counterparty_address,
        counterparties,
        block_time
    from marts.wallet_activities
    where
        subject_key = $subject_key
        and tenant_id = $tenant_id
        and block_time >= $from_time
        and block_time < $to_time

),

met as (

    select counterparty_address as address
    from seen
    where activity_type <> 'Self' and counterparties is null
    union all
    select unnest(counterparties) as address
    from seen
    where activity_type <> 'Self'

)

select
    (select count(distinct met.address) from met) as counterparty_count,
    max(block_time) as last_time
from seen
