{{ config(tags=['audit']) }}

-- Steps that do not end where the next one of their pair begins.
select
    pair_key,
    valid_from,
    valid_until
from {{ ref('system_prices') }}
qualify
    valid_until is distinct from lead(valid_from) over (
        partition by pair_key
        order by valid_from
    )
