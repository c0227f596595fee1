moved as (

    -- Transactions with more than their fee.
    select transaction_hash
    from marts.wallet_activities
    where
        $is_folded
        and subject_key = $subject_key
        and tenant_id = $tenant_id
        and activity_type <> 'Fee'
        and transaction_hash is not null

)
