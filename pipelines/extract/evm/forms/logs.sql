-- Transfers among the logs: three topics, of which two are addresses, and one word of data.
select
    block_number,
    block_hash,
    block_time,
    transaction_index,
    transaction_hash,
    log_index,
    address as token_address,
    '0x' || substr(topics[2], 27) as from_address,
    '0x' || substr(topics[3], 27) as to_address,
    data as amount_raw
from file
where
    topics[1] = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
    and len(topics) = 3
    and length(data) = 66
    and topics[2][:26] = '0x000000000000000000000000'
    and topics[3][:26] = '0x000000000000000000000000'
