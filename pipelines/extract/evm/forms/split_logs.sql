-- As `logs`, where each topic is a column.
select
    block_number,
    block_hash,
    block_time,
    transaction_index,
    transaction_hash,
    log_index,
    address as token_address,
    '0x' || substr(topic1, 27) as from_address,
    '0x' || substr(topic2, 27) as to_address,
    data as amount_raw
from file
where
    topic0 = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
    and topic3 is null
    and length(data) = 66
    and topic1[:26] = '0x000000000000000000000000'
    and topic2[:26] = '0x000000000000000000000000'
