-- Tracked fungible tokens with the supply last read; null where none was, or where tokens were minted or burnt since.
with known as (
    select
        observations.token_address,
        arg_max(observations.total_supply_raw::varchar, observations.block_number) as supply,
        max(observations.block_number) as block_number
    from raw.supply_observations as observations
    where observations.network = $network
    group by observations.token_address
)

select subjects.address, any_value(known.supply)
from raw.window_ranges as ranges
inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
inner join raw.token_metadata as metadata
    on metadata.network = $network and subjects.address = metadata.token_address
    and metadata.contract_status = 'Fungible'
left join known
    on subjects.address = known.token_address
    and not exists (
        select 1 from raw.token_transfers as transfers
        where
            transfers.network = $network
            and transfers.token_address = known.token_address
            and transfers.block_number > known.block_number
            and '0x0000000000000000000000000000000000000000' in (transfers.from_address, transfers.to_address)
    )
where
    subjects.network = $network
    and subjects.kind = 'token'
    and ranges.from_block <= $head
    and coalesce(ranges.to_block, $head) >= $head
group by subjects.address;
