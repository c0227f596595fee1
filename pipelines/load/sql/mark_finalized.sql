-- Subjects with rows in blocks that became final since the last cycle: their activities' status changes.
insert into raw.changes
with newly_final as (
    select coalesce(max(final_number), -1) + 1 as from_block, $final::bigint as to_block
    from raw.network_states
    where network = $network
),

parties as (
    select 'token' as kind, transfers.token_address as address
    from raw.token_transfers as transfers, newly_final
    where
        transfers.network = $network
        and transfers.block_number between newly_final.from_block and newly_final.to_block
    union
    select 'wallet' as kind, unnest([transfers.from_address, transfers.to_address]) as address
    from raw.token_transfers as transfers, newly_final
    where
        transfers.network = $network
        and transfers.block_number between newly_final.from_block and newly_final.to_block
    union
    select 'wallet' as kind, unnest([transactions.from_address, transactions.to_address]) as address
    from raw.transactions, newly_final
    where
        transactions.network = $network
        and transactions.block_number between newly_final.from_block and newly_final.to_block
    union
    select 'wallet' as kind, unnest([transfers.from_address, transfers.to_address]) as address
    from raw.internal_transfers as transfers, newly_final
    where
        transfers.network = $network
        and transfers.block_number between newly_final.from_block and newly_final.to_block
    union
    select 'token' as kind, observations.token_address as address
    from raw.balance_observations as observations, newly_final
    where
        observations.network = $network
        and observations.block_number between newly_final.from_block and newly_final.to_block
    union
    select 'wallet' as kind, observations.holder_address as address
    from raw.balance_observations as observations, newly_final
    where
        observations.network = $network
        and observations.block_number between newly_final.from_block and newly_final.to_block
)

select $batch, subjects.subject_key, newly_final.from_block, newly_final.to_block, 'Finality'
from raw.control_subjects as subjects
inner join parties on subjects.kind = parties.kind and subjects.address = parties.address
cross join newly_final
where subjects.network = $network;
