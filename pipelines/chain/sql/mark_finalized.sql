-- Subjects with rows in their views that became final since the last cycle: their activities' status changes. Readings
-- are marked only for the tenants that may see them.
insert into raw.changes
with parties as (
    select subject_kind, address, block_number, asset = 'native' as is_native, null as tenant_id
    from raw.movement_parties
    where network = $network and block_number between $final_from and $final
    union
    -- Movements without sender and recipient, too: they have no party.
    select 'token', asset, block_number, false, null
    from raw.movements
    where network = $network and block_number between $final_from and $final and asset != 'native'
    union
    select 'token', token_address, block_number, false, unnest(map_keys(visible_to))
    from raw.balance_observations
    where network = $network and block_number between $final_from and $final
    union
    select 'wallet', holder_address, block_number, false, unnest(map_keys(visible_to))
    from raw.balance_observations
    where network = $network and block_number between $final_from and $final
)

select distinct $batch::bigint, subjects.subject_key, $final_from::bigint, $final::bigint, 'Finality'
from raw.control_subjects as subjects
inner join parties
    on
        subjects.kind = parties.subject_kind
        and subjects.address = parties.address
        and subjects.tenant_id = coalesce(parties.tenant_id, subjects.tenant_id)
inner join raw.view_ranges as views
    on
        subjects.subject_key = views.subject_key
        and parties.block_number between views.from_block and coalesce(views.to_block, parties.block_number)
        and (not parties.is_native or views.native = 'full')
where subjects.network = $network;
