-- Holders by {{ key }}, equal ones by rank, or all of it backwards: those behind one.
{%- set ordering = ('' if key == 'rank' else key ~ order ~ ', ') ~ 'rank' ~ order %}
with paged as (

    select *
    from holders
    where
        rank between $first_rank and $last_rank
{%- if key != 'rank' %}
        and ($after_key is null or ({{ key }}, rank) {{ behind }} ($after_key, $after_rank))
{%- endif %}
    order by {{ ordering }}
    limit $row_count offset $skipped

)

select
    rank,
    holder_address,
    quantity_raw,
    reconciliation,
    checked_block_number,
    opened_by
from paged
order by {{ ordering }}
