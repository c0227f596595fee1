-- Finishes the record of an attestation after its last reading: readings take precedence over known balances.
with readings as (
    select token_address, holder_address, quantity_raw
    from raw.balance_observations
    where network = $network and block_number = $block and visible_to[$tenant] is not null
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
        -- Without any balance these are null.
        coalesce(count_if(balance_raw != 0::bignum), 0) as balance_count,
        coalesce(count_if(is_unconfirmed), 0) as unconfirmed_count,
        coalesce(sum(balance_raw), 0::bignum) as balances_raw,
        coalesce(
            bit_xor(md5_number(concat_ws('|', token_address, holder_address, balance_raw)))
                filter (where balance_raw != 0::bignum),
            0
        ) as balances_digest
    from balances
),

covered as (
    select max(from_block) as from_block
    from raw.covered_ranges
    where subject_key = $subject and not is_native and $block between from_block and to_block
),

supplies as (
    select
        (
            select any_value(total_supply_raw)
            from raw.supply_observations
            where network = $network and token_address = $token and block_number = $block
        ) as read_raw,
        (
            select balance_raw
            from requests.requests__attestations
            where subject_key = $subject and attestation_number = $number and holder_address = 'supply'
        ) as known_raw
)

update raw.attestations as known
set
    range_from_block = coalesce(
        found.range_from_block,
        (select covered.from_block from covered)
    ),
    balance_count = found.balance_count,
    unconfirmed_count = found.unconfirmed_count,
    balances_raw = found.balances_raw,
    balances_digest = found.balances_digest,
    total_supply_raw = supplies.read_raw,
    supply_difference_raw = supplies.read_raw - supplies.known_raw,
    difference_count = known.difference_count + coalesce(supplies.read_raw != supplies.known_raw, false)::bigint,
    attested_at = $now,
    batch_id = $batch
from found, supplies
where known.subject_key = $subject and known.attestation_number = $number;
