-- A subject's attestations, the newest block first, after a position.
select
    attestation_number,
    block_number,
    block_hash,
    block_time,
    is_automatic,
    status,
    balance_count,
    read_count,
    difference_count,
    unconfirmed_count,
    balances_raw::varchar as balances_raw,
    balances,
    total_supply_raw::varchar as total_supply_raw,
    total_supply,
    supply_difference_raw::varchar as supply_difference_raw,
    supply_difference,
    attested_at,
    superseded_by
from marts.attestations
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and (block_number, attestation_number) < ($before_block, $before_number)
order by block_number desc, attestation_number desc
limit $row_count
