-- Movements in the tables of this family. The zero address in a token's events means a mint or a burn, not a holder.
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
    null::bignum as fee_raw,
    null::varchar as fee_status,
    null::varchar[] as counterparties,
    null::integer as counterparty_count,
    null::varchar as detail,
    batch_id
from raw.token_transfers

union all

-- The value of a transaction, which goes to the created contract if it creates one, and its fee. The sender of a failed
-- transaction pays the fee too.
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
    null::bignum as fee_raw,
    null::varchar as fee_status,
    null::varchar[] as counterparties,
    null::integer as counterparty_count,
    null::varchar as detail,
    batch_id
from raw.transactions
cross join (values ('Transfer'), ('Fee')) as kinds (kind)

union all

-- Value sent on by contracts, from the node's traces.
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
    null::bignum as fee_raw,
    null::varchar as fee_status,
    null::varchar[] as counterparties,
    null::integer as counterparty_count,
    null::varchar as detail,
    batch_id
from raw.internal_transfers
