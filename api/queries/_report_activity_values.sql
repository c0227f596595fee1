activity_values as (

    select
        activity_id,
        pair_key,
        price_text as price,
        value,
        value_status
    from marts.wallet_activity_values
    where subject_key = $subject_key and tenant_id = $tenant_id

)
