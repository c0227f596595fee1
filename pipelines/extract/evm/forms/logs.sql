-- Transfers among the logs: three topics, of which two are addresses, and one word of data.
select
    block_number,
    block_hash,
    block_time,
    transaction_index,
    transaction_hash,
    log_index,
    address as token_address,
    lower('0x' || substring(topics[2], 27)) as from_address,
    lower('0x' || substring(topics[3], 27)) as to_address,
    data as amount_raw
from file
where
    lower(topics[1]) = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
    and len(topics) = 3
    and strlen(data) = 66
    and starts_with(lower(topics[2]), '0x000000000000000000000000')
    and starts_with(lower(topics[3]), '0x000000000000000000000000')
