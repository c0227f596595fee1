-- Activities of a wallet in covered ranges, by asset, up to moments. Activities that follow from readings (adjustments)
-- have no transaction.
with wanted as (

    select
        generate_subscripts($first_blocks::bigint[], 1) as place,
        unnest($addresses::varchar[]) as address,
        unnest($first_blocks::bigint[]) as first_block,
        unnest($last_blocks::bigint[]) as last_block,
        unnest($end_times::timestamp[]) as end_time

),

numbered as (

    select
        wanted.place,
        activities.activity_id,
        activities.transaction_hash,
        activities.block_number,
        row_number() over (
            partition by wanted.place
            order by
                activities.block_number desc,
                activities.transaction_index desc,
                activities.log_index desc,
                coalesce(activities.trace_index, -1) desc,
                activities.activity_id desc
        ) as number
    from wanted
    inner join marts.wallet_activities as activities
        on
            wanted.address = activities.token_address
            and wanted.first_block <= activities.block_number
            and wanted.last_block >= activities.block_number
            and wanted.end_time > activities.block_time
    where activities.subject_key = $subject_key and activities.tenant_id = $tenant_id

)

select
    place,
    count(*) as movement_count,
    min(block_number) as from_block,
    max(block_number) as to_block,
    count(*) filter (where transaction_hash is null) as adjustment_count,
    list(activity_id order by number) filter (where number <= $most_ids) as latest
from numbered
group by place
order by place
