-- The record of an attestation of which all was read: what was read stands before what was known until then.
with readings as (
    select token_address, holder_address, quantity_raw
    from raw.balance_observations
    where network = $network and block_number = $block and owed_to[$tenant] is not null
),

balances as (
    select
        listed.token_address,
        listed.holder_address,
        listed.range_from_block,
        coalesce(readings.quantity_raw, listed.balance_raw) as balance_raw,
        readings.quantity_raw is null and listed.confirming_block is null as is_unconfirmed
    from attested_balances as listed
    left join readings
        on listed.token_address = readings.token_address and listed.holder_address = readings.holder_address
),

found as (
    select
        max(range_from_block) as range_from_block,
        -- Of no balance at all these are null.
        coalesce(count_if(balance_raw != 0::bignum), 0) as balance_count,
        coalesce(count_if(is_unconfirmed), 0) as unconfirmed_count,
        coalesce(sum(balance_raw), 0::bignum) as balances_raw,
        coalesce(
            bit_xor(md5_number(concat_ws('|', token_address, holder_address, balance_raw)))
                filter (where balance_raw != 0::bignum),
            0
        ) as balances_digest
    from balances
)

update raw.attestations as known
set
    range_from_block = coalesce(
        found.range_from_block,
        (
            select max(covered.from_block)
            from raw.covered_ranges as covered
            where
                covered.subject_key = $subject
                and not covered.is_native
                and $block between covered.from_block and covered.to_block
        )
    ),
    balance_count = found.balance_count,
    unconfirmed_count = found.unconfirmed_count,
    balances_raw = found.balances_raw,
    balances_digest = found.balances_digest,
    total_supply_raw = (
        select any_value(supplies.total_supply_raw)
        from raw.supply_observations as supplies
        where supplies.network = $network and supplies.token_address = $token and supplies.block_number = $block
    ),
    attested_at = $now,
    batch_id = $batch
from found
where known.subject_key = $subject and known.attestation_number = $number;
