-- Wallets of keys of the network, each with one of its tenants. Of each one: the last collected index, the highest one
-- that has an output, and the number of indices with stored scripts in every branch.
with used as (
    select address, max(address_index) as address_index
    from (
        select address, address_index from raw.utxo_outputs
        where network = $network and address_index is not null
        union all
        select address, address_index from raw.utxo_openings
        where network = $network and address_index is not null
    )
    group by address
),

ranges as (
    select address, max(scanned_to) as scanned_to
    from raw.utxo_key_ranges
    where network = $network
    group by address
),

derived as (
    select address, min(indices) as indices
    from (
        select address, branch, count(*) as indices
        from raw.utxo_scripts
        where network = $network
        group by address, branch
    )
    group by address
)

select
    subjects.address,
    any_value(subjects.descriptor) as descriptor,
    any_value(ranges.scanned_to) as scanned_to,
    any_value(used.address_index) as highest_used,
    coalesce(any_value(derived.indices), 0) as stored_indices,
    bool_or(subjects.subject_key in (select subject_key from raw.view_ranges)) as is_viewed,
    arg_min(subjects.tenant_id, subjects.subject_key) as tenant_id
from raw.control_subjects as subjects
left join ranges on subjects.address = ranges.address
left join used on subjects.address = used.address
left join derived on subjects.address = derived.address
where subjects.network = $network and subjects.descriptor is not null
group by subjects.address
order by min(subjects.subject_key)
