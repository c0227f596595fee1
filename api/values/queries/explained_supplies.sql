-- Supplies at moments of covered ranges, and the newest readings up to them.
with wanted as (

    select
        generate_subscripts($first_blocks::bigint[], 1) as place,
        unnest($first_blocks::bigint[]) as first_block,
        unnest($last_blocks::bigint[]) as last_block,
        unnest($end_times::timestamp[]) as end_time

)

select
    wanted.place,
    arg_max(changes.total_supply_raw, changes.block_number)::varchar as quantity_raw,
    max(changes.block_number) filter (where changes.is_observed) as anchor_block,
    (arg_max(changes.total_supply_raw, changes.block_number) filter (where changes.is_observed))::varchar as anchor_raw
from wanted
inner join marts.supply_changes as changes
    on
        wanted.first_block = changes.range_from_block
        and wanted.last_block >= changes.block_number
        and wanted.end_time > changes.block_time
where changes.subject_key = $subject_key and changes.tenant_id = $tenant_id
group by wanted.place
order by wanted.place
