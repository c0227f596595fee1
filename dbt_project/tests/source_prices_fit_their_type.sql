{{ config(tags=['audit']) }}

-- Prices that differ from the number of their text, or that count although no type can represent them.
select
    pair_key,
    source_id,
    effective_from
from {{ ref('source_prices') }}
where
    price is distinct from nullif(try_cast(price_text as decimal(38, 18)), 0)
    or (price is null) != (reason is not distinct from 'OutOfRange')
    or (price is null and state not in ('Quarantined', 'Rejected'))
