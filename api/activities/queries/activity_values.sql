-- Values of the activities of a page. The result may contain other activities of the same blocks, or for one block, of
-- the same transactions.
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
