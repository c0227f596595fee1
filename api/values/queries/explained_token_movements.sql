-- Activities of holders of a token in covered ranges, up to moments.
with wanted as (

    select
        generate_subscripts($first_blocks::bigint[], 1) as place,
        unnest($addresses::varchar[]) as address,
        unnest($first_blocks::bigint[]) as first_block,
        unnest($last_blocks::bigint[]) as last_block,
        unnest($end_times::timestamp[]) as end_time

),

legs as (

    select
        from_address as address,
        activity_id,
        activity_type,
        block_number,
        block_time,
        transaction_index,
        log_index
    from marts.token_activities
    where subject_key = $subject_key and tenant_id = $tenant_id

    union all

    select
        to_address as address,
        activity_id,
        activity_type,
        block_number,
        block_time,
        transaction_index,
        log_index
    from marts.token_activities
    where subject_key = $subject_key and tenant_id = $tenant_id and to_address is distinct from from_address

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
    inner join legs as activities
        on
            wanted.address = activities.address
            and wanted.first_block <= activities.block_number
            and wanted.last_block >= activities.block_number
            and wanted.end_time > activities.block_time

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
