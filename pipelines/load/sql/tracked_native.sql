-- Wallets in a window that reaches the head, with the native balance last read; null where none was, or where the
-- wallet's transactions moved it since.
select
    subjects.address,
    any_value(known.quantity)
from raw.window_ranges as ranges
inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
left join (
    select
        observations.holder_address,
        arg_max(observations.quantity_raw::varchar, observations.block_number) as quantity,
        max(observations.block_number) as block_number
    from raw.balance_observations as observations
    where observations.network = $network and observations.token_address = 'native'
    group by observations.holder_address
) as known
    on subjects.address = known.holder_address
    and not exists (
        select 1 from raw.transactions
        where
            transactions.network = $network
            and transactions.block_number > known.block_number
            and known.holder_address in (transactions.from_address, transactions.to_address)
    )
where
    subjects.network = $network
    and subjects.kind = 'wallet'
    and ranges.from_block <= $head
    and coalesce(ranges.to_block, $head) >= $head
group by subjects.address;
