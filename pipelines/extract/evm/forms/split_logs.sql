-- As `logs`, where each topic is a column.
select
    block_number,
    block_hash,
    block_time,
    transaction_index,
    transaction_hash,
    log_index,
    address as token_address,
    '0x' || substring(topic1, 27) as from_address,
    '0x' || substring(topic2, 27) as to_address,
    data as amount_raw
from file
where
    topic0 = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
    and topic3 is null
    and strlen(data) = 66
    and starts_with(topic1, '0x000000000000000000000000')
    and starts_with(topic2, '0x000000000000000000000000')
