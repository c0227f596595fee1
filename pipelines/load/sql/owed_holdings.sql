-- What the wallets and tokens of a newly opened window held at the block before it: a wallet's native balance, the
-- network's common tokens, its tenant's configured tokens and every token seen for it before; and, of a token that was
-- tracked before, every holder that its tenant already knows.
with opened as (
    select
        ranges.window_key,
        subjects.subject_key,
        subjects.kind,
        subjects.tenant_id,
        subjects.address,
        ranges.from_block
    from raw.window_ranges as ranges
    inner join raw.control_subjects as subjects on ranges.subject_key = subjects.subject_key
    where
        subjects.network = $network
        and ranges.from_block > 0
        and ranges.from_block <= $head + 1
        and ranges.window_key not in (select window_key from raw.opened_windows)
),

pairs as (
    select 'native' as token_address, address as holder_address, from_block - 1 as block_number
    from opened
    where kind = 'wallet'
    union
    select tokens.token_address, opened.address, opened.from_block - 1
    from opened
    inner join raw.common_tokens as tokens on tokens.network = $network
    where opened.kind = 'wallet'
    union
    select tokens.address, opened.address, opened.from_block - 1
    from opened
    inner join raw.control_subjects as tokens
        on opened.tenant_id = tokens.tenant_id and tokens.network = $network and tokens.kind = 'token'
    where opened.kind = 'wallet'
    union
    select observations.token_address, opened.address, opened.from_block - 1
    from opened
    inner join raw.balance_observations as observations
        on observations.network = $network and opened.address = observations.holder_address
    where opened.kind = 'wallet'
    union
    select transfers.token_address, parties.holder_address, opened.from_block - 1
    from opened
    inner join raw.window_ranges as earlier
        on opened.subject_key = earlier.subject_key and opened.window_key > earlier.window_key
    inner join raw.token_transfers as transfers
        on transfers.network = $network and opened.address = transfers.token_address
        and transfers.block_number between earlier.from_block and earlier.to_block
    cross join unnest([transfers.from_address, transfers.to_address]) as parties (holder_address)
    where opened.kind = 'token'
)

select pairs.token_address, pairs.holder_address, pairs.block_number
from pairs
anti join raw.balance_observations as observations
    on observations.network = $network
    and pairs.token_address = observations.token_address
    and pairs.holder_address = observations.holder_address
    and pairs.block_number = observations.block_number
where pairs.holder_address != '0x0000000000000000000000000000000000000000';
