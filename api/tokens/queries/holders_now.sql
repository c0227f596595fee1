-- The holders of a token at its newest covered block with their ranks, 1 to n without ties. Other queries read the
-- result as `holders`.
with held as (

    select
        holder_address,
        quantity_raw,
        reconciliation,
        checked_block_number,
        opened_by
    from marts.token_holders
    where subject_key = $subject_key and tenant_id = $tenant_id

)

{% include '_ranked.sql' %}
