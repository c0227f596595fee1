-- Balances at moments of covered ranges, and the readings before those ranges.
with wanted as (

    select
        generate_subscripts($first_blocks::bigint[], 1) as place,
        unnest($token_addresses::varchar[]) as token_address,
        unnest($holder_addresses::varchar[]) as holder_address,
        unnest($first_blocks::bigint[]) as first_block,
        unnest($last_blocks::bigint[]) as last_block,
        unnest($end_times::timestamp[]) as end_time

)

select
    wanted.place,
    arg_max(changes.balance_raw, changes.block_number)::varchar as quantity_raw,
    any_value(changes.block_number) filter (where changes.block_number < wanted.first_block) as anchor_block,
    (any_value(changes.balance_raw) filter (where changes.block_number < wanted.first_block))::varchar as anchor_raw
from wanted
inner join marts.balance_changes as changes
    on
        wanted.token_address = changes.token_address
        and wanted.holder_address = changes.holder_address
        and wanted.first_block = changes.range_from_block
        and wanted.last_block >= changes.block_number
        and wanted.end_time > changes.block_time
where changes.subject_key = $subject_key and changes.tenant_id = $tenant_id
group by wanted.place
order by wanted.place
