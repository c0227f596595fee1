-- Tokens and wallets of other tenants with a view that an import filled: with rows, or with collected blocks.
insert into raw.changes
with filled as (
    select subject_kind, address, asset = 'native' as is_native, block_number as from_block, block_number as to_block
    from raw.movement_parties
    where network = $network and batch_id = $batch
    union all
    select if(subject_kind = 'native', 'wallet', subject_kind), address, subject_kind = 'native', from_block, to_block
    from moved_pieces
)

select $batch, subjects.subject_key, min(filled.from_block), max(filled.to_block), 'Rows'
from filled
inner join raw.control_subjects as subjects
    on filled.subject_kind = subjects.kind and filled.address = subjects.address
inner join raw.view_ranges as views
    on
        subjects.subject_key = views.subject_key
        and views.from_block <= filled.to_block
        and coalesce(views.to_block, filled.from_block) >= filled.from_block
        and (views.native = 'full' or not filled.is_native)
where subjects.network = $network and subjects.tenant_id != $tenant
group by subjects.subject_key;
