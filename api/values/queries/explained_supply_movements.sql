-- Mints and burns of a token in covered ranges, up to moments.
with wanted as (

    select
        generate_subscripts($first_blocks::bigint[], 1) as place,
        unnest($first_blocks::bigint[]) as first_block,
        unnest($last_blocks::bigint[]) as last_block,
        unnest($end_times::timestamp[]) as end_time

),

numbered as (

    select
        wanted.place,
        activities.activity_id,
        activities.activity_type,
        activities.block_number,
        row_number() over (
            partition by wanted.place
            order by
                activities.block_number desc,
                activities.transaction_index desc,
                activities.log_index desc,
                activities.activity_id desc
        ) as number
    from wanted
    inner join marts.token_activities as activities
        on
            wanted.first_block <= activities.block_number
            and wanted.last_block >= activities.block_number
            and wanted.end_time > activities.block_time
    where
        activities.subject_key = $subject_key
        and activities.tenant_id = $tenant_id
        and activities.activity_type in ('Mint', 'Burn')

)

select
    place,
    count(*) as movement_count,
    min(block_number) as from_block,
    max(block_number) as to_block,
    count(*) filter (where activity_type = 'Adjustment') as adjustment_count,
    list(activity_id order by number) filter (where number <= $most_ids) as latest
from numbered
group by place
order by place
