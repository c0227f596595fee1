-- What the activities of a page were worth.
select
    activity_id,
    pair_key,
    price_text as price,
    value,
    value_status
from marts.token_activity_values
where
    subject_key = $subject_key
    and tenant_id = $tenant_id
    and block_number between $first_block and $last_block
    and activity_id in (select unnest($activity_ids::varchar[]))
