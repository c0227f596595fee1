-- What the tables of this family say of who moved what. A token's events name the zero address where nobody is meant.
select
    network,
    block_number,
    block_hash,
    transaction_index as transaction_position,
    log_index as entry_position,
    transaction_hash,
    case
        when from_address = to_address then 'Transfer'
        when from_address = '0x0000000000000000000000000000000000000000' then 'Mint'
        when to_address = '0x0000000000000000000000000000000000000000' then 'Burn'
        else 'Transfer'
    end as kind,
    token_address as asset,
    nullif(from_address, '0x0000000000000000000000000000000000000000') as from_address,
    nullif(to_address, '0x0000000000000000000000000000000000000000') as to_address,
    '0x0000000000000000000000000000000000000000' as nobody_address,
    amount_raw,
    false as is_failed,
    batch_id
from raw.token_transfers

union all

-- What a transaction carries, which goes to what it created where it is a creation, and its fee, which the sender of one
-- that failed pays too.
select
    network,
    block_number,
    block_hash,
    transaction_index as transaction_position,
    -1 as entry_position,
    transaction_hash,
    kind,
    'native' as asset,
    from_address,
    case kind when 'Transfer' then coalesce(to_address, created_address) end as to_address,
    null as nobody_address,
    case kind when 'Transfer' then value_raw else fee_raw end as amount_raw,
    kind = 'Transfer' and not is_success as is_failed,
    batch_id
from raw.transactions
cross join (values ('Transfer'), ('Fee')) as kinds (kind)

union all

-- Value that contracts sent on, as the node traced it.
select
    network,
    block_number,
    block_hash,
    transaction_index as transaction_position,
    trace_index as entry_position,
    transaction_hash,
    'Internal' as kind,
    'native' as asset,
    from_address,
    to_address,
    null as nobody_address,
    amount_raw,
    false as is_failed,
    batch_id
from raw.internal_transfers
