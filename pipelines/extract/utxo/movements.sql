-- Change of one watched address by a transaction: its outputs less its inputs. The other side is shown, not booked,
-- because every watched address has a row of its own. A sender's fee is booked with its amount.
select
    network,
    block_number,
    block_hash,
    transaction_index as transaction_position,
    -1 as entry_position,
    transaction_hash,
    if(is_coinbase, 'Coinbase', 'Transfer') as kind,
    'native' as asset,
    case when spent_raw > received_raw then address end as from_address,
    case
        when spent_raw <= received_raw or spent_raw = received_raw + coalesce(fee_raw, 0::bignum) then address
    end as to_address,
    case when counterparty_count = 1 then counterparties[1] end as nobody_address,
    case
        when spent_raw > received_raw then spent_raw - received_raw - coalesce(fee_raw, 0::bignum)
        else received_raw - spent_raw
    end as amount_raw,
    false as is_failed,
    fee_raw,
    fee_status,
    counterparties,
    counterparty_count,
    detail,
    batch_id
from raw.utxo_transactions
