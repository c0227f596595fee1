-- What the activities of a page were worth, and few others: those of its blocks, or of its transactions in one block.
select
    activity_id,
    pair_key,
    price_text as price,
    value,
    value_status
from marts.{{ kind }}_activity_values
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and transaction_index between $first_transaction and $last_transaction
