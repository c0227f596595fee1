-- Wallets of keys of the network, with the last collected index and the highest one that has an output.
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
)

select
    subjects.address,
    any_value(subjects.descriptor) as descriptor,
    any_value(ranges.scanned_to) as scanned_to,
    any_value(used.address_index) as highest_used
from raw.control_subjects as subjects
left join ranges on subjects.address = ranges.address
left join used on subjects.address = used.address
where subjects.network = $network and subjects.descriptor is not null
group by subjects.address
