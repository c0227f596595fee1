-- The unattributed part of a past supply in whole tokens and as a share, by the marts' own functions.
select
    marts.to_amount($unattributed_raw::bignum, $decimals) as unattributed,
    marts.percentage($unattributed_raw::bignum, nullif($total_supply_raw, '0')::bignum) as unattributed_percentage
